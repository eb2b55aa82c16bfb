#include "sluice/sync/named.hpp"

#include <mutex>
#include <unordered_map>
#include <utility>

#include "sluice/base/check.hpp"
#include "sluice/sync/spin_lock.hpp"

namespace sluice::wait_report {

namespace detail {
constinit std::array<atomic<std::uint32_t>, name_filter_size> name_filter{};
}

namespace {

// A party that is not an object.
struct known_party {
  std::string name{};
  const void* executor = nullptr;
};

struct name_table {
  spin_lock guard;
  std::unordered_map<const void*, std::string> names;  // protected by guard
  // protected by guard, by their keys. Separate from the objects, because there may be very many
  // parties, and the destruction of an object must stay cheap.
  std::unordered_map<const void*, known_party> parties;
};

// Never freed: objects with names may be destroyed after all static objects.
name_table& table() {
  static auto* const all = new name_table;
  return *all;
}

bool is_party(const void* key) noexcept {
  return party::from_word(reinterpret_cast<std::uintptr_t>(key)).type() != party::kind::none;
}

// Must hold the guard. Returns null if there is no name.
const std::string* find_name(const name_table& all, const void* key) noexcept {
  if (is_party(key)) {
    const auto found = all.parties.find(key);
    return found == all.parties.end() ? nullptr : &found->second.name;
  }
  const auto found = all.names.find(key);
  return found == all.names.end() ? nullptr : &found->second;
}

}  // namespace

std::string name_of(const void* object) {
  auto& all = table();
  std::string copy;
  for (;;) {
    std::size_t length = 0;
    {
      const std::lock_guard hold(all.guard);
      const std::string* const name = find_name(all, object);
      if (name == nullptr) return {};
      length = name->size();
      if (length <= copy.capacity()) {
        copy = *name;
        return copy;
      }
    }
    copy.reserve(length);  // outside the lock
  }
}

void contract_broken(const void* object, const char* type, const char* expected,
                     std::source_location where) noexcept {
  sluice::contract_broken(type, name_of(object).c_str(), expected, where);
}

void contract_broken(const void* object, const char* type, const char* expected, call_site caller,
                     std::source_location where) noexcept {
  sluice::contract_broken(type, name_of(object).c_str(), expected, caller, where);
}

void set_name([[maybe_unused]] const void* object, [[maybe_unused]] std::string_view name) {
#if !defined(SLUICE_SIM)  // a simulated schedule must not depend on the names of earlier objects
  auto& filter = detail::name_filter[detail::kind_of_address(object)];
  auto& all = table();
  std::string kept(name);  // allocated, and the old name freed, outside the lock
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

void set_name([[maybe_unused]] party p, [[maybe_unused]] std::string_view name,
              [[maybe_unused]] const void* executor) {
#if !defined(SLUICE_SIM)
  known_party kept{std::string(name), executor};  // allocated outside the lock
  auto& all = table();
  if (!name.empty()) {
    const std::lock_guard hold(all.guard);
    std::swap(all.parties[key_of(p)], kept);
    return;
  }
  {
    const std::lock_guard hold(all.guard);
    const auto found = all.parties.find(key_of(p));
    if (found != all.parties.end()) {
      std::swap(found->second, kept);
      all.parties.erase(found);
    }
  }
  if (is_on()) detail::destroyed(key_of(p));
#endif
}

const void* executor_of(party p) {
  auto& all = table();
  const std::lock_guard hold(all.guard);
  const auto found = all.parties.find(key_of(p));
  return found == all.parties.end() ? nullptr : found->second.executor;
}

}  // namespace sluice::wait_report
