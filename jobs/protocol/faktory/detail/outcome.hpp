#pragma once

// What became of a call of the engine, as one result: also when the engine has ended before it.

#include <utility>

#include "jobs/model/result.hpp"
#include "jobs/protocol/session.hpp"

namespace sluice::jobs::faktory {

inline error engine_is_over() {
  return {error_code::shutting_down, "the server is shutting down"};
}

template <class T>
result<T> outcome_of(settled<result<T>> ended) {
  if (!ended) return engine_is_over();
  return std::move(ended).value();
}

// The job is no longer as it was found: somebody else was first, and nothing is wrong.
inline bool came_too_late(const error& why) {
  return why.code == error_code::not_found || why.code == error_code::wrong_state ||
         why.code == error_code::lease_lost;
}

}  // namespace sluice::jobs::faktory
