#pragma once

// The place of a call in the user's program: file, line and function.
//
// A function that waits or checks a contract takes one as its last parameter. Callers omit it: the
// default is the source location of the call. A call made inside another header (std::lock_guard)
// has that header as its location; `called_from` adds the return address of the call, which reports
// resolve instead.
//
//     void lock(call_site at = {});

#include <cstdint>
#include <source_location>

namespace sluice {

class call_site {
 public:
  call_site(std::source_location at = std::source_location::current()) noexcept : at_(at) {}

  const char* file() const noexcept { return at_.file_name(); }
  const char* function() const noexcept { return at_.function_name(); }
  std::uint32_t line() const noexcept { return at_.line(); }
  // Null if unknown.
  const void* address() const noexcept { return address_; }

  // Returns a copy with this return address, unless one is set already.
  call_site called_from(const void* address) const noexcept {
    call_site with(*this);
    if (with.address_ == nullptr) with.address_ = address;
    return with;
  }
  // Returns a copy with this address.
  call_site with_address(const void* address) const noexcept {
    call_site with(*this);
    with.address_ = address;
    return with;
  }

 private:
  std::source_location at_;
  const void* address_ = nullptr;
};

}  // namespace sluice
