#pragma once

// What is kept beside a request that is not waited for without limits: who was asked what by whom,
// to be told if the answer comes when nobody waits for it any more.

#include <memory>

#include "sluice/actor/actor_options.hpp"

namespace sluice {
struct wait_limits;
}

namespace sluice::detail {

class cell;
struct envelope_ops;
class late_note;

struct late_note_deleter {
  void operator()(late_note* of) const noexcept;
};
using late_note_ptr = std::unique_ptr<late_note, late_note_deleter>;

// Null: there is no limit, so no answer comes too late.
late_note_ptr note_if_limited(cell& asked, const envelope_ops& what, const wait_limits& limits);
// The answer has come, and who asked has given up.
void tell_late(const late_note& of) noexcept;

}  // namespace sluice::detail
