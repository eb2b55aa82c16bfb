#include "sluice/actor/observer_list.hpp"

#include "sluice/base/check.hpp"

namespace sluice {

observer_list::observer_list(std::vector<actor_observer*> all) {
  for (actor_observer* const one : all) {
    check(one != nullptr, "sluice::observer_list", "no null observer");
    const unsigned bits = one->note_bits();
    check(bits_ + bits <= 64, "sluice::observer_list", "note_bits of at most 64 in total");
    // A shift by 64 is undefined: an observer without note bits gets shift 0.
    const std::uint64_t mask = bits == 0 ? 0 : ~std::uint64_t{0} >> (64 - bits);
    members_.push_back({one, bits == 0 ? 0 : bits_, mask});
    bits_ += bits;
  }
}

void observer_list::spawned(actor_id id, actor_id parent, std::string_view name,
                            std::string_view type) noexcept {
  for (const member& m : members_) m.observer->spawned(id, parent, name, type);
}
void observer_list::ended(actor_id id, end_reason why) noexcept {
  for (const member& m : members_) m.observer->ended(id, why);
}
std::uint64_t observer_list::sent(actor_id from, actor_id receiver,
                                  std::string_view message) noexcept {
  std::uint64_t note = 0;
  for (const member& m : members_) {
    note |= (m.observer->sent(from, receiver, message) & m.mask) << m.shift;
  }
  return note;
}
void observer_list::begun(actor_id id, std::string_view message, std::uint64_t note) noexcept {
  for (const member& m : members_) m.observer->begun(id, message, m.own(note));
}
void observer_list::handled(actor_id id, std::string_view message, std::uint64_t note) noexcept {
  for (const member& m : members_) m.observer->handled(id, message, m.own(note));
}
void observer_list::resumed(actor_id id, std::string_view message, std::uint64_t note) noexcept {
  for (const member& m : members_) m.observer->resumed(id, message, m.own(note));
}
void observer_list::failed(actor_id id, const std::exception_ptr& error) noexcept {
  for (const member& m : members_) m.observer->failed(id, error);
}
void observer_list::restarted(actor_id id) noexcept {
  for (const member& m : members_) m.observer->restarted(id);
}
void observer_list::lost(actor_id receiver, std::string_view message, std::uint64_t note,
                         loss why) noexcept {
  for (const member& m : members_) m.observer->lost(receiver, message, m.own(note), why);
}
void observer_list::wait_begun(actor_id id, actor_id target, actor_wait reason,
                               std::uint64_t wait) noexcept {
  for (const member& m : members_) m.observer->wait_begun(id, target, reason, wait);
}
void observer_list::wait_ended(actor_id id, actor_id target, actor_wait reason,
                               std::uint64_t wait) noexcept {
  for (const member& m : members_) m.observer->wait_ended(id, target, reason, wait);
}

}  // namespace sluice
