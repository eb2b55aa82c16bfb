#include "sluice/actor/detail/late_note.hpp"

#include <string>
#include <utility>

#include "sluice/actor/detail/cell.hpp"
#include "sluice/actor/detail/envelope.hpp"
#include "sluice/actor/detail/system_core.hpp"
#include "sluice/sync/waiter.hpp"

namespace sluice::detail {

// It does not hold the actor: a responder may be kept by what the actor was made from, which lives
// as long as that is referred to.
class late_note {
 public:
  late_note(const cell& asked, const envelope_ops& what, actor_id asker, first_answer first)
      : first_(std::move(first)),
        system_(asked.system()),
        name_(system_.options().on_late_reply ? asked.name() : std::string()),
        told_{.asked = asked.id(), .type = asked.type(), .message = what.type, .asker = asker} {
    system_.add_ref();
  }
  late_note(const late_note&) = delete;
  late_note& operator=(const late_note&) = delete;
  ~late_note() { system_.release(); }
  // relaxed: whoever is cancelled because of the first answer has seen that it was cancelled.
  void answered(bool is_unwanted) const noexcept {
    if (is_unwanted && (first_ == nullptr || !first_->load(relaxed))) return tell();
    if (first_ != nullptr) first_->store(true, relaxed);
  }

 private:
  void tell() const noexcept {
    late_reply late = told_;
    late.name = name_;
    system_.answered_late(late);
  }

  const first_answer first_;  // null: one is asked alone
  system_core& system_;
  const std::string name_;  // empty: nobody would hear it
  const late_reply told_;
};

void late_note_deleter::operator()(late_note* of) const noexcept {
  free_envelope(*of);
}

namespace {

bool is_limited(const wait_limits& limits) noexcept {
  return !limits.deadline.is_never() || limits.stop.stop_possible();
}

}  // namespace

first_answer first_if_limited(const wait_limits& limits) {
  return is_limited(limits) ? std::make_shared<atomic<bool>>(false) : nullptr;
}

late_note_ptr note_if_limited(cell& asked, const envelope_ops& what, const wait_limits& limits,
                              first_answer first) {
  if (!is_limited(limits)) return {};
  const cell* const by = cell::current();
  return late_note_ptr(
      make_envelope<late_note>(asked, what, by == nullptr ? 0 : by->id(), std::move(first)));
}

void note_answer(const late_note& of, bool is_unwanted) noexcept {
  of.answered(is_unwanted);
}

}  // namespace sluice::detail
