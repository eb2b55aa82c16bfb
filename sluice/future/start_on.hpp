#pragma once

// The executor and the priority with which a function or a task starts: the argument of `async`,
// `spawn` and `scope`.
//
// An executor converts to it, with priority 0 as in `submit`. A larger priority is more urgent;
// only executors with priorities use it. It applies to the start only: the steps of a task after a
// wait, and functions attached to a future, are posts, and posts have no priority.
//
//     auto mail = async({pool, 9}, send_password_mail);
//     auto page = spawn({pool, 9}, render(request));
//     co_await with_scope({pool, -1}, tidy_up);

#include <cstdint>

#include "sluice/executor/executor.hpp"

namespace sluice {

struct start_on {
  start_on(executor& where, std::int32_t urgency = 0) noexcept : on(where), priority(urgency) {}

  executor& on;
  std::int32_t priority;
};

}  // namespace sluice
