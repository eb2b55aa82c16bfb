#pragma once

// How everything that happens reaches the one thread that decides: what the source answered, what
// handlers ended with, what the user asks for.
//
// It is shared with everyone who may still have something to say, so that an answer that comes when
// the worker is gone goes nowhere. Bounded by what is under way: every message is the answer to
// something that the coordinator began, but for a handful of commands, and one word of each handler
// that has something to say.

#include <cstdint>
#include <utility>
#include <variant>
#include <vector>

#include "jobs/model/requests.hpp"
#include "jobs/worker/handler.hpp"
#include "sluice/sync/guarded.hpp"

namespace sluice::jobs::detail {

using ticket = std::uint64_t;  // one lease of one job, in this worker

struct leases_came {
  result<std::vector<leased_job>> jobs;
};
struct handler_ended {
  ticket which = 0;
  job_outcome outcome;
};
struct lease_extended {
  ticket which = 0;
  result<extension> how;
};
struct told {
  ticket which = 0;
  void_result how;
};
struct acks_told {
  std::vector<ticket> which;
  std::vector<void_result> how;
};
// A handler has said something of its attempt; and: the source knows.
struct noted {
  ticket which = 0;
};
struct notes_told {
  ticket which = 0;
};
enum class command : std::uint8_t { close, stop_now };

using message = std::variant<leases_came, handler_ended, lease_extended, told, acks_told, noted,
                             notes_told, command>;

class inbox {
 public:
  void put(message m) { messages_.lock()->push_back(std::move(m)); }

  // Waits until there is something or the deadline has come, and takes all there is.
  std::vector<message> take(deadline until) {
    std::vector<message> taken;
    auto held = messages_.lock_when_within(until, [](const auto& m) { return !m.empty(); });
    if (held) taken.swap(*held);
    return taken;
  }

 private:
  guarded<std::vector<message>> messages_;
};

}  // namespace sluice::jobs::detail
