#include "sluice/actor/detail/named_cells.hpp"

#include <algorithm>
#include <mutex>

#include "sluice/actor/detail/become.hpp"

namespace sluice::detail {

bool named_cells::add(std::string name, const cell_ptr& target, type_mark type) {
  entry removed;  // destroyed after unlock
  bool is_first = false;
  {
    wake_batch wakes;
    const std::lock_guard hold(guard_);
    const auto [at, is_new] = entries_.try_emplace(name);
    if (!is_new) {
      if (!at->second.target->is_terminated()) return false;
      std::erase(names_of_[at->second.target.get()], name);  // its entry is replaced here
    }
    removed = std::exchange(at->second, entry{target, type});
    const auto [names, is_unwatched] = names_of_.try_emplace(target.get());
    is_first = is_unwatched;
    names->second.push_back(name);
    const auto waits = waits_.find(name_key(std::move(name), type));
    if (waits != waits_.end()) {
      while (auto* const first = claim_front<name_wait::node>(waits->second)) {
        first->found = target;
        wakes.add(*first->waiting);
      }
      waits_.erase(waits);
    }
  }
  // Without the lock: the callback may run at once.
  if (is_first) {
    watch_end(*target, [weak = weak_from_this(), ended = target.get()](const actor_end&) {
      if (const auto table = weak.lock()) table->forget(ended);
    });
  }
  return true;
}

void named_cells::forget(const cell* ended) {
  std::vector<entry> removed;  // destroyed after unlock
  const std::lock_guard hold(guard_);
  const auto found = names_of_.find(ended);
  if (found == names_of_.end()) return;
  for (const std::string& name : found->second) {
    const auto at = entries_.find(name);
    removed.push_back(std::move(at->second));
    entries_.erase(at);
  }
  names_of_.erase(found);
}

bool named_cells::remove(std::string_view name, const cell& target) {
  entry removed;
  const std::lock_guard hold(guard_);
  const auto at = entries_.find(name);
  if (at == entries_.end() || at->second.target.get() != &target) return false;
  std::erase(names_of_[&target], at->first);
  removed = std::move(at->second);
  entries_.erase(at);
  return true;
}

cell_ptr named_cells::find_locked(std::string_view name, type_mark type) const {
  const auto at = entries_.find(name);
  if (at == entries_.end() || at->second.type != type || at->second.target->is_terminated())
    return {};
  return at->second.target;
}

cell_ptr named_cells::find(std::string_view name, type_mark type) const {
  const std::lock_guard hold(guard_);
  return find_locked(name, type);
}

std::vector<std::string> named_cells::names() const {
  std::vector<std::string> all;
  const std::lock_guard hold(guard_);
  for (const auto& [name, target] : entries_) all.push_back(name);
  return all;
}

std::size_t named_cells::size() const noexcept {
  const std::lock_guard hold(guard_);
  return entries_.size();
}

std::size_t named_cells::waiting() const noexcept {
  const std::lock_guard hold(guard_);
  std::size_t all = 0;
  for (const auto& [key, waits] : waits_) all += waits.size();
  return all;
}

// ---- waiting

bool name_wait::attempt() {
  place_.found = table_.find(key_.first, key_.second);
  return static_cast<bool>(place_.found);
}

enlisted name_wait::enlist(waiter& waiting) {
  const std::lock_guard hold(table_.guard_);
  place_.found = table_.find_locked(key_.first, key_.second);
  if (place_.found) return enlisted::finished;
  return link_waiter(table_.waits_[key_], place_, waiting);
}

void name_wait::retract() {
  const std::lock_guard hold(table_.guard_);
  if (place_.linked()) place_.unlink();
  const auto at = table_.waits_.find(key_);
  if (at != table_.waits_.end() && at->second.empty()) table_.waits_.erase(at);
}

}  // namespace sluice::detail
