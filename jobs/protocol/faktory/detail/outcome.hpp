#pragma once

// Converts the settled future of an engine call to a result, also if the engine has stopped.

#include <utility>

#include "jobs/model/result.hpp"
#include "jobs/protocol/session.hpp"

namespace sluice::jobs::faktory {

inline error shutdown_error() {
  return {error_code::shutting_down, "the server is shutting down"};
}

template <class T>
result<T> outcome_of(settled<result<T>> ended) {
  if (!ended) return shutdown_error();
  return std::move(ended).value();
}

// Returns whether the call failed only because the job's state changed meanwhile.
inline bool is_too_late(const error& why) {
  return why.code == error_code::not_found || why.code == error_code::wrong_state ||
         why.code == error_code::lease_lost;
}

}  // namespace sluice::jobs::faktory
