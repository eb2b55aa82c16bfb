#pragma once

// What is kept beside a request that is not waited for without limits: who was asked what by whom,
// to be told if the answer comes when nobody waits for it any more.

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
  void operator()(late_note* of) const noexcept;
};
using late_note_ptr = std::unique_ptr<late_note, late_note_deleter>;

// Where several are asked and the first answer is taken: whether that has come. Those after it are
// expected, and none of them is late.
using first_answer = std::shared_ptr<atomic<bool>>;
first_answer first_if_limited(const wait_limits& limits);

// Null: there is no limit, so no answer comes too late.
late_note_ptr note_if_limited(cell& asked, const envelope_ops& what, const wait_limits& limits,
                              first_answer first = {});
// An answer has come; if it `is_unwanted`, when who asked had given up.
void note_answer(const late_note& of, bool is_unwanted) noexcept;

}  // namespace sluice::detail
