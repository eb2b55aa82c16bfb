#pragma once

// A name for a lock, a semaphore, an event: what reports call it.
//
// Use it for the few objects that everybody waits for. What has options takes its name there
// (`{.name = "emails"}`); what has none takes a `named` as the last argument of its constructor.
//
// Guarantees: the name is kept beside the object, so one without a name is neither larger nor
// slower. Any thread may ask for the name of anything at any time.
// Cost: naming is one entry in a table; the end of an object without a name is two relaxed loads.
//
//     mutex ledger(named("ledger"));
//     semaphore slots(8, named("uploads"));

#include <array>
#include <cstddef>
#include <cstdint>
#include <source_location>
#include <string>
#include <string_view>

#include "sluice/base/atomic.hpp"
#include "sluice/base/call_site.hpp"
#include "sluice/sync/watch.hpp"

namespace sluice {

class named {
 public:
  explicit constexpr named(std::string_view name) noexcept : name_(name) {}
  constexpr std::string_view name() const noexcept { return name_; }

 private:
  std::string_view name_;
};

namespace watch {

// Empty: it has none.
std::string name_of(const void* object);
// In place of the name that it had. An empty name is none.
void set_name(const void* object, std::string_view name);
// The same for a party that is no object: an actor.
inline const void* key_of(party who) noexcept {
  return reinterpret_cast<const void*>(who.word());  // no object has such an address
}
inline std::string name_of(party who) {
  return name_of(key_of(who));
}
// And the executor that it runs on. Without a name: neither is kept any longer.
void set_name(party who, std::string_view name, const void* executor);
const void* executor_of(party who);  // null: it is not known

namespace detail {
inline constexpr std::size_t name_filter_size = 256;
// How many objects with a name have an address of this kind.
extern std::array<atomic<std::uint32_t>, name_filter_size> name_filter;
inline std::size_t kind_of_address(const void* object) noexcept {
  const auto address = reinterpret_cast<std::uintptr_t>(object);
  return ((address >> 4) ^ (address >> 12)) % name_filter_size;
}
}  // namespace detail

// For destructors: the object takes its name, and what is known of it, with it.
inline void gone(const void* object) noexcept {
  // relaxed: who destroys an object has seen how it was made, and named.
  if (glance(detail::name_filter[detail::kind_of_address(object)]) != 0) [[unlikely]] {
    set_name(object, {});
  }
  if (is_on()) [[unlikely]]
    detail::gone(object);
}

// As `contract_broken` (base/check.hpp), with the name of the object.
[[noreturn]] void contract_broken(const void* object, const char* type, const char* expected,
                                  std::source_location where) noexcept;
[[noreturn]] void contract_broken(const void* object, const char* type, const char* expected,
                                  call_site caller, std::source_location where) noexcept;

}  // namespace watch

// As `check`, for an object that may have a name.
inline void check_object(bool holds, const void* object, const char* type, const char* expected,
                         std::source_location where = std::source_location::current()) noexcept {
  if (!holds) [[unlikely]] watch::contract_broken(object, type, expected, where);
}
inline void check_object(bool holds, const void* object, const char* type, const char* expected,
                         call_site caller,
                         std::source_location where = std::source_location::current()) noexcept {
  if (!holds) [[unlikely]] watch::contract_broken(object, type, expected, caller, where);
}
// `caller` may be null.
inline void check_object(bool holds, const void* object, const char* type, const char* expected,
                         const call_site* caller,
                         std::source_location where = std::source_location::current()) noexcept {
  if (holds) [[likely]] return;
  if (caller == nullptr) watch::contract_broken(object, type, expected, where);
  watch::contract_broken(object, type, expected, *caller, where);
}

}  // namespace sluice
