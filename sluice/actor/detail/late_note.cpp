#include "sluice/actor/detail/late_note.hpp"

#include <string>
#include <utility>

#include "sluice/actor/detail/cell.hpp"
#include "sluice/actor/detail/envelope.hpp"
#include "sluice/actor/detail/system_core.hpp"
#include "sluice/sync/waiter.hpp"

namespace sluice::detail {

// Holds the system, not the cell: the arguments that the actor was spawned with may contain a
// responder, and a reference to the cell would then be a cycle.
class late_note {
 public:
  late_note(const cell& asked, const envelope_ops& ops, actor_id asker, first_answer first)
      : first_(std::move(first)),
        system_(asked.system()),
        name_(system_.options().on_late_reply ? asked.name() : std::string()),
        reply_{.asked = asked.id(), .type = asked.type(), .message = ops.type, .asker = asker} {
    system_.add_ref();
  }
  late_note(const late_note&) = delete;
  late_note& operator=(const late_note&) = delete;
  ~late_note() { system_.release(); }
  // relaxed: a request that the first answer cancelled sees this flag through its cancellation.
  void answered(bool is_unwanted) const noexcept {
    if (is_unwanted && (first_ == nullptr || !first_->load(relaxed))) return report();
    if (first_ != nullptr) first_->store(true, relaxed);
  }

 private:
  void report() const noexcept {
    late_reply late = reply_;
    late.name = name_;
    system_.report_late_reply(late);
  }

  const first_answer first_;  // null: a single actor was asked
  system_core& system_;
  const std::string name_;  // empty: late replies are not reported
  const late_reply reply_;
};

void late_note_deleter::operator()(late_note* note) const noexcept {
  free_envelope(*note);
}

namespace {

bool is_limited(const wait_limits& limits) noexcept {
  return !limits.deadline.is_never() || limits.stop.stop_possible();
}

}  // namespace

first_answer first_if_limited(const wait_limits& limits) {
  return is_limited(limits) ? std::make_shared<atomic<bool>>(false) : nullptr;
}

late_note_ptr note_if_limited(cell& asked, const envelope_ops& ops, const wait_limits& limits,
                              first_answer first) {
  if (!is_limited(limits)) return {};
  const cell* const asker = cell::current();
  return late_note_ptr(
      make_envelope<late_note>(asked, ops, asker == nullptr ? 0 : asker->id(), std::move(first)));
}

void note_reply(const late_note& note, bool is_unwanted) noexcept {
  note.answered(is_unwanted);
}

}  // namespace sluice::detail
