#include "sluice/actor/detail/late_note.hpp"

#include <new>

#include "sluice/actor/detail/cell.hpp"
#include "sluice/actor/detail/envelope.hpp"
#include "sluice/actor/detail/system_core.hpp"
#include "sluice/base/block_memory.hpp"
#include "sluice/sync/waiter.hpp"

namespace sluice::detail {

class late_note {
 public:
  late_note(cell& asked, const envelope_ops& what, actor_id asker) noexcept
      : asked_(&asked), what_(what), asker_(asker) {}
  void tell() const noexcept { asked_->system().answered_late(*asked_, what_, asker_); }

 private:
  const cell_ptr asked_;
  const envelope_ops& what_;
  const actor_id asker_;
};

void late_note_deleter::operator()(late_note* of) const noexcept {
  of->~late_note();
  give_block(of, sizeof(late_note));
}

late_note_ptr note_if_limited(cell& asked, const envelope_ops& what, const wait_limits& limits) {
  if (limits.deadline.is_never() && !limits.stop.stop_possible()) return {};
  const cell* const by = cell::current();
  void* const at = take_block(sizeof(late_note));
  return late_note_ptr(::new (at) late_note(asked, what, by == nullptr ? 0 : by->id()));
}

void tell_late(const late_note& of) noexcept {
  of.tell();
}

}  // namespace sluice::detail
