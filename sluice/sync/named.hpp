#pragma once

// A name for a lock, a semaphore, an event, shown in reports.
//
// Use it for the few objects that many parties wait for. A type with options has a name option
// (`{.name = "emails"}`); the others take a `named` as the last argument of the constructor.
//
// Guarantees: the name is stored beside the object, so an object without a name is neither larger
// nor slower. Any thread may read the name of any object at any time.
// Cost: naming is one entry in a table; the destruction of an object without a name is two relaxed
// loads.
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
#include "sluice/sync/detail/wait_report.hpp"

namespace sluice {

class named {
 public:
  explicit constexpr named(std::string_view name) noexcept : name_(name) {}
  constexpr std::string_view name() const noexcept { return name_; }

 private:
  std::string_view name_;
};

namespace wait_report {

// Returns an empty string if the object has no name.
std::string name_of(const void* object);
// Replaces the name; an empty name removes it.
void set_name(const void* object, std::string_view name);
// The key of an actor, which is a party but not an object.
inline const void* key_of(party p) noexcept {
  return reinterpret_cast<const void*>(p.word());  // no object has such an address
}
inline std::string name_of(party p) {
  return name_of(key_of(p));
}
// Also sets the executor that the party runs on. An empty name removes both.
void set_name(party p, std::string_view name, const void* executor);
const void* executor_of(party p);  // null if not known

namespace detail {
inline constexpr std::size_t name_filter_size = 256;
// The number of named objects per hash of the address.
extern std::array<atomic<std::uint32_t>, name_filter_size> name_filter;
inline std::size_t kind_of_address(const void* object) noexcept {
  const auto address = reinterpret_cast<std::uintptr_t>(object);
  return ((address >> 4) ^ (address >> 12)) % name_filter_size;
}
}  // namespace detail

// Called by destructors: removes the name and all records of the object.
inline void destroyed(const void* object) noexcept {
  // relaxed: the naming of an object happens before its destruction.
  if (load_untracked(detail::name_filter[detail::kind_of_address(object)]) != 0) [[unlikely]] {
    set_name(object, {});
  }
  if (is_on()) [[unlikely]]
    detail::destroyed(object);
}

// Same as `contract_broken` (base/check.hpp), with the name of the object.
[[noreturn]] void contract_broken(const void* object, const char* type, const char* expected,
                                  std::source_location where) noexcept;
[[noreturn]] void contract_broken(const void* object, const char* type, const char* expected,
                                  call_site caller, std::source_location where) noexcept;

}  // namespace wait_report

// Same as `check`, for an object that may have a name.
inline void check_object(bool holds, const void* object, const char* type, const char* expected,
                         std::source_location where = std::source_location::current()) noexcept {
  if (!holds) [[unlikely]] wait_report::contract_broken(object, type, expected, where);
}
inline void check_object(bool holds, const void* object, const char* type, const char* expected,
                         call_site caller,
                         std::source_location where = std::source_location::current()) noexcept {
  if (!holds) [[unlikely]] wait_report::contract_broken(object, type, expected, caller, where);
}
// `caller` may be null.
inline void check_object(bool holds, const void* object, const char* type, const char* expected,
                         const call_site* caller,
                         std::source_location where = std::source_location::current()) noexcept {
  if (holds) [[likely]] return;
  if (caller == nullptr) wait_report::contract_broken(object, type, expected, where);
  wait_report::contract_broken(object, type, expected, *caller, where);
}

}  // namespace sluice
