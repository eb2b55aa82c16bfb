#include "sluice/actor/detail/late_note.hpp"

#include <string>

#include "sluice/actor/detail/cell.hpp"
#include "sluice/actor/detail/envelope.hpp"
#include "sluice/actor/detail/system_core.hpp"
#include "sluice/sync/waiter.hpp"

namespace sluice::detail {

// It does not hold the actor: a responder may be kept by what the actor was made from, which lives
// as long as that is referred to.
class late_note {
 public:
  late_note(const cell& asked, const envelope_ops& what, actor_id asker)
      : system_(asked.system()),
        name_(system_.options().on_late_reply ? asked.name() : std::string()),
        told_{.asked = asked.id(), .type = asked.type(), .message = what.type, .asker = asker} {
    system_.add_ref();
  }
  late_note(const late_note&) = delete;
  late_note& operator=(const late_note&) = delete;
  ~late_note() { system_.release(); }
  void tell() const noexcept {
    late_reply late = told_;
    late.name = name_;
    system_.answered_late(late);
  }

 private:
  system_core& system_;
  const std::string name_;  // empty: nobody would hear it
  const late_reply told_;
};

void late_note_deleter::operator()(late_note* of) const noexcept {
  free_envelope(*of);
}

late_note_ptr note_if_limited(cell& asked, const envelope_ops& what, const wait_limits& limits) {
  if (limits.deadline.is_never() && !limits.stop.stop_possible()) return {};
  const cell* const by = cell::current();
  return late_note_ptr(make_envelope<late_note>(asked, what, by == nullptr ? 0 : by->id()));
}

void tell_late(const late_note& of) noexcept {
  of.tell();
}

}  // namespace sluice::detail
