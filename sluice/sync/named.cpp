#include "sluice/sync/named.hpp"

#include <mutex>
#include <unordered_map>

#include "sluice/sync/spin_lock.hpp"

namespace sluice::watch {

namespace detail {
constinit std::array<atomic<std::uint32_t>, name_filter_size> name_filter{};
}

namespace {

struct name_table {
  spin_lock guard;
  std::unordered_map<const void*, std::string> names;      // protected by guard
  std::unordered_map<const void*, const void*> executors;  // protected by guard; of parties
};

// Never freed: objects with names may be gone after everything else.
name_table& table() {
  static auto* const all = new name_table;
  return *all;
}

}  // namespace

std::string name_of(const void* object) {
  auto& all = table();
  const std::lock_guard hold(all.guard);
  const auto found = all.names.find(object);
  return found == all.names.end() ? std::string() : found->second;
}

void set_name([[maybe_unused]] const void* object, [[maybe_unused]] std::string_view name) {
#if !defined(SLUICE_SIM)  // whose schedules must not depend on what others have named
  auto& filter = detail::name_filter[detail::kind_of_address(object)];
  auto& all = table();
  std::string kept(name);  // outside the lock, as is what it replaces
  const std::lock_guard hold(all.guard);
  if (kept.empty()) {
    if (all.names.erase(object) != 0) filter.fetch_sub(1, relaxed);
    return;
  }
  const auto [place, is_new] = all.names.try_emplace(object);
  place->second.swap(kept);
  if (is_new) filter.fetch_add(1, relaxed);
#endif
}

void set_name([[maybe_unused]] party who, [[maybe_unused]] std::string_view name,
              [[maybe_unused]] const void* executor) {
#if !defined(SLUICE_SIM)
  set_name(key_of(who), name);
  auto& all = table();
  const std::lock_guard hold(all.guard);
  if (name.empty()) {
    all.executors.erase(key_of(who));
  } else {
    all.executors.insert_or_assign(key_of(who), executor);
  }
#endif
}

const void* executor_of(party who) {
  auto& all = table();
  const std::lock_guard hold(all.guard);
  const auto found = all.executors.find(key_of(who));
  return found == all.executors.end() ? nullptr : found->second;
}

}  // namespace sluice::watch
