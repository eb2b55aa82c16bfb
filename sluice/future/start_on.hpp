#pragma once

// Where a function or a task is to start, and how urgent that is: what `async`, `spawn` and `scope`
// take in the place of a bare executor.
//
// An executor converts to it, with the priority 0 that `submit` uses. A larger priority is more
// urgent, and only an executor with priorities looks at it. It is that of the start: what a task
// does after a wait, and what is attached to a future, is posted, and posts have no priority.
//
//     auto mail = async({pool, 9}, send_password_mail);
//     auto page = spawn({pool, 9}, render(request));
//     co_await with_scope({pool, -1}, tidy_up);

#include <cstdint>

#include "sluice/executor/executor.hpp"

namespace sluice {

struct start_on {
  start_on(executor& where, std::int32_t how_urgent = 0) noexcept
      : on(where), priority(how_urgent) {}

  executor& on;
  std::int32_t priority;
};

}  // namespace sluice
