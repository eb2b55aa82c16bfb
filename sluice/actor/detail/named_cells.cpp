#include "sluice/actor/detail/named_cells.hpp"

#include <algorithm>
#include <mutex>

#include "sluice/actor/detail/become.hpp"

namespace sluice::detail {

bool named_cells::add(std::string name, const cell_ptr& who, type_mark type) {
  entry gone;  // destroyed without the lock
  bool is_first = false;
  {
    wake_batch wakes;
    const std::lock_guard hold(guard_);
    const auto [at, is_new] = entries_.try_emplace(name);
    if (!is_new) {
      if (!at->second.who->is_over()) return false;
      std::erase(names_of_[at->second.who.get()], name);  // it is about to be forgotten
    }
    gone = std::exchange(at->second, entry{who, type});
    const auto [names, is_unwatched] = names_of_.try_emplace(who.get());
    is_first = is_unwatched;
    names->second.push_back(name);
    const auto waits = waits_.find(wanted(std::move(name), type));
    if (waits != waits_.end()) {
      while (auto* const first = claim_front<name_wait::node>(waits->second)) {
        first->found = who;
        wakes.add(*first->who);
      }
      waits_.erase(waits);
    }
  }
  // Without the lock: it may call back at once.
  if (is_first) {
    watch_end(*who, [names = weak_from_this(), which = who.get()](const actor_end&) {
      if (const auto still_there = names.lock()) still_there->forget(which);
    });
  }
  return true;
}

void named_cells::forget(const cell* who) {
  std::vector<entry> gone;  // destroyed without the lock
  const std::lock_guard hold(guard_);
  const auto found = names_of_.find(who);
  if (found == names_of_.end()) return;
  for (const std::string& name : found->second) {
    const auto at = entries_.find(name);
    gone.push_back(std::move(at->second));
    entries_.erase(at);
  }
  names_of_.erase(found);
}

bool named_cells::remove(std::string_view name, const cell& who) {
  entry gone;
  const std::lock_guard hold(guard_);
  const auto at = entries_.find(name);
  if (at == entries_.end() || at->second.who.get() != &who) return false;
  std::erase(names_of_[&who], at->first);
  gone = std::move(at->second);
  entries_.erase(at);
  return true;
}

cell_ptr named_cells::find_locked(std::string_view name, type_mark type) const {
  const auto at = entries_.find(name);
  if (at == entries_.end() || at->second.type != type || at->second.who->is_over()) return {};
  return at->second.who;
}

cell_ptr named_cells::find(std::string_view name, type_mark type) const {
  const std::lock_guard hold(guard_);
  return find_locked(name, type);
}

std::vector<std::string> named_cells::names() const {
  std::vector<std::string> all;
  const std::lock_guard hold(guard_);
  for (const auto& [name, who] : entries_) all.push_back(name);
  return all;
}

std::size_t named_cells::size() const noexcept {
  const std::lock_guard hold(guard_);
  return entries_.size();
}

std::size_t named_cells::waiting() const noexcept {
  const std::lock_guard hold(guard_);
  std::size_t all = 0;
  for (const auto& [what, waits] : waits_) all += waits.size();
  return all;
}

// ---- waiting

bool name_wait::attempt() {
  place_.found = in_.find(wanted_.first, wanted_.second);
  return static_cast<bool>(place_.found);
}

enlisted name_wait::enlist(waiter& who) {
  const std::lock_guard hold(in_.guard_);
  place_.found = in_.find_locked(wanted_.first, wanted_.second);
  if (place_.found) return enlisted::finished;
  return join(in_.waits_[wanted_], place_, who);
}

void name_wait::retract() {
  const std::lock_guard hold(in_.guard_);
  if (place_.linked()) place_.unlink();
  const auto at = in_.waits_.find(wanted_);
  if (at != in_.waits_.end() && at->second.empty()) in_.waits_.erase(at);
}

}  // namespace sluice::detail
