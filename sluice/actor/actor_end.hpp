#pragma once

// The end of an actor, as reported by a death watch: which actor ended, and why.

#include <exception>
#include <string>

#include "sluice/actor/actor_options.hpp"

namespace sluice {

struct actor_end {
  actor_id id = 0;
  std::string name{};
  end_reason why = end_reason::stopped;
  std::exception_ptr error{};  // if it failed
};

}  // namespace sluice
