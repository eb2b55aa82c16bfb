#pragma once

// Messages to the coordinator thread: replies of the source, outcomes of handlers, user commands.
//
// Shared with every pending callback, so that a reply that arrives after the worker's destruction
// is dropped safely. Bounded: every message is the reply to a call of the coordinator, except a few
// commands and at most one notes_added per handler.

#include <cstdint>
#include <utility>
#include <variant>
#include <vector>

#include "jobs/model/requests.hpp"
#include "jobs/worker/handler.hpp"
#include "sluice/sync/guarded.hpp"

namespace sluice::jobs::detail {

using assignment_id = std::uint64_t;  // one lease of one job in this worker

struct lease_reply {
  result<std::vector<leased_job>> jobs;
};
struct handler_ended {
  assignment_id id = 0;
  job_outcome outcome;
};
struct extend_reply {
  assignment_id id = 0;
  result<extension> reply;
};
// The reply to an ack, a failure or a release.
struct end_reply {
  assignment_id id = 0;
  void_result reply;
};
struct ack_replies {
  std::vector<assignment_id> ids;
  std::vector<void_result> replies;
};
// A handler has added progress or log lines.
struct notes_added {
  assignment_id id = 0;
};
// The source has replied to a report or log call.
struct notes_reply {
  assignment_id id = 0;
};
enum class command : std::uint8_t { close, stop_now };

using message = std::variant<lease_reply, handler_ended, extend_reply, end_reply, ack_replies,
                             notes_added, notes_reply, command>;

class inbox {
 public:
  void put(message m) { messages_.lock()->push_back(std::move(m)); }

  // Waits for a message or the deadline, and takes all messages.
  std::vector<message> take(deadline until) {
    std::vector<message> taken;
    auto held = messages_.lock_when([](const auto& m) { return !m.empty(); }, until);
    if (held) taken.swap(*held);
    return taken;
  }

 private:
  guarded<std::vector<message>> messages_;
};

}  // namespace sluice::jobs::detail
