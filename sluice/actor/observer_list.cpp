#include "sluice/actor/observer_list.hpp"

#include "sluice/base/check.hpp"

namespace sluice {

observer_list::observer_list(std::vector<actor_observer*> all) {
  for (actor_observer* const one : all) {
    check(one != nullptr, "sluice::observer_list", "observers that are there");
    const unsigned bits = one->note_bits();
    check(bits_ + bits <= 64, "sluice::observer_list", "notes that fit into 64 bits together");
    // To shift by 64 is not defined: one without a note has none wherever it begins.
    const std::uint64_t mask = bits == 0 ? 0 : ~std::uint64_t{0} >> (64 - bits);
    members_.push_back({one, bits == 0 ? 0 : bits_, mask});
    bits_ += bits;
  }
}

void observer_list::spawned(actor_id who, actor_id parent, std::string_view name,
                            std::string_view type) noexcept {
  for (const member& m : members_) m.observer->spawned(who, parent, name, type);
}
void observer_list::ended(actor_id who, end_reason why) noexcept {
  for (const member& m : members_) m.observer->ended(who, why);
}
std::uint64_t observer_list::sent(actor_id from, actor_id to, std::string_view message) noexcept {
  std::uint64_t note = 0;
  for (const member& m : members_) {
    note |= (m.observer->sent(from, to, message) & m.mask) << m.shift;
  }
  return note;
}
void observer_list::begun(actor_id who, std::string_view message, std::uint64_t note) noexcept {
  for (const member& m : members_) m.observer->begun(who, message, m.own(note));
}
void observer_list::handled(actor_id who, std::string_view message, std::uint64_t note) noexcept {
  for (const member& m : members_) m.observer->handled(who, message, m.own(note));
}
void observer_list::resumed(actor_id who, std::string_view message, std::uint64_t note) noexcept {
  for (const member& m : members_) m.observer->resumed(who, message, m.own(note));
}
void observer_list::failed(actor_id who, const std::exception_ptr& error) noexcept {
  for (const member& m : members_) m.observer->failed(who, error);
}
void observer_list::restarted(actor_id who) noexcept {
  for (const member& m : members_) m.observer->restarted(who);
}
void observer_list::lost(actor_id to, std::string_view message, std::uint64_t note,
                         loss why) noexcept {
  for (const member& m : members_) m.observer->lost(to, message, m.own(note), why);
}
void observer_list::waits(actor_id who, actor_id for_whom, actor_wait what,
                          std::uint64_t wait) noexcept {
  for (const member& m : members_) m.observer->waits(who, for_whom, what, wait);
}
void observer_list::waits_no_more(actor_id who, actor_id for_whom, actor_wait what,
                                  std::uint64_t wait) noexcept {
  for (const member& m : members_) m.observer->waits_no_more(who, for_whom, what, wait);
}

}  // namespace sluice
