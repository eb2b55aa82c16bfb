#pragma once

// Does one thing to every job of a state that a filter lets through: MUTATE, and the removal of a
// queue's jobs.
//
// Goes in pages, each done before the next is read, so that memory stays bounded however many jobs
// there are; jobs that come meanwhile may or may not be among them. Where much text is searched, it
// rests in between, so that the others of its loop have their turns. Jobs in the server's own
// queues are left alone. When it is stopped, or its client has gone, what was done stays done.

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
  act what = act::discard;
  list_request which{};                    // queue, state, kind
  std::unordered_set<std::string> jids{};  // empty: any
  std::string pattern{};                   // of the whole job's text; empty: any
  std::stop_token until{};                 // no further page when it asks
  // Calls a function in a later turn of the client's loop.
  std::function<void(std::function<void()>)> in_next_turn{};
};

// Calls `then` on the client's loop when all is done, or with the first reason why it is not. A job
// that is no longer as it was found is left alone: that is none.
void begin_sweep(engine& jobs, protocol::client& on, sweep_request what,
                 std::function<void(void_result)> then);

}  // namespace sluice::jobs::faktory
