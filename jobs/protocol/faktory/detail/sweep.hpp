#pragma once

// Applies one action to all jobs that match a filter: MUTATE and QUEUE REMOVE.
//
// Works page by page, so memory stays bounded for any number of jobs; jobs that are pushed
// meanwhile may or may not be included. While much text is searched, yields to other connections of
// the loop. Skips jobs in the server's own queues. If it is stopped or its client has gone, the
// actions that were performed remain.

#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <unordered_set>

#include "jobs/engine/engine.hpp"
#include "jobs/model/own_queue.hpp"
#include "jobs/protocol/faktory/detail/pattern.hpp"
#include "jobs/protocol/session.hpp"

namespace sluice::jobs::faktory {

struct sweep_request {
  enum class act : std::uint8_t { kill, requeue, discard };
  act action = act::discard;
  list_request filter{};                   // queue, state, kind
  std::unordered_set<std::string> jids{};  // empty: any
  std::string pattern{};                   // of the whole job's text; empty: any
  std::stop_token stop{};                  // ends before the next page
  // Calls a function in a later turn of the client's loop.
  std::function<void(std::function<void()>)> defer{};
};

// Calls `then` on the client's loop at the end, with the first error if there was one. A job whose
// state changed since it was listed is skipped; that is not an error.
void begin_sweep(engine& jobs, protocol::client& client, sweep_request request,
                 std::function<void(void_result)> then);

}  // namespace sluice::jobs::faktory
