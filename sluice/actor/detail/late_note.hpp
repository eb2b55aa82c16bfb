#pragma once

// Metadata of an ask that has a deadline or stop token (receiver, message type, sender). Used to
// report a reply that arrives after the asker gave up.

#include <memory>

#include "sluice/actor/actor_options.hpp"
#include "sluice/base/atomic.hpp"

namespace sluice {
struct wait_limits;
}

namespace sluice::detail {

class cell;
struct envelope_ops;
class late_note;

struct late_note_deleter {
  void operator()(late_note* note) const noexcept;
};
using late_note_ptr = std::unique_ptr<late_note, late_note_deleter>;

// Shared by the requests of an ask to several actors: whether the first answer has arrived. Later
// answers are expected then, and not late replies.
using first_answer = std::shared_ptr<atomic<bool>>;
first_answer first_if_limited(const wait_limits& limits);

// Null if there is no limit: no reply is late.
late_note_ptr note_if_limited(cell& asked, const envelope_ops& ops, const wait_limits& limits,
                              first_answer first = {});
// Called when a reply is set. `is_unwanted`: the asker has given up.
void note_reply(const late_note& note, bool is_unwanted) noexcept;

}  // namespace sluice::detail
