#pragma once

// What those hear who watch an actor: which one is no more, and why.

#include <exception>
#include <string>

#include "sluice/actor/actor_options.hpp"

namespace sluice {

struct actor_end {
  actor_id id = 0;
  std::string name{};
  end_reason why = end_reason::stopped;
  std::exception_ptr error{};  // of one that failed
};

}  // namespace sluice
