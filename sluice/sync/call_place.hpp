#pragma once

// Where in the program a wait was asked for: file, line and function of the call.
//
// A waiting call takes one as its last argument and is given none: the default is the place of the
// call itself. A call made by somebody else's header (std::lock_guard) has that header as its
// place; the address of the code that called then says more, and is printed instead.
//
//     void lock(call_place at = {});

#include <cstdint>
#include <source_location>

namespace sluice {

class call_place {
 public:
  call_place(std::source_location at = std::source_location::current()) noexcept : at_(at) {}

  const char* file() const noexcept { return at_.file_name(); }
  const char* function() const noexcept { return at_.function_name(); }
  std::uint32_t line() const noexcept { return at_.line(); }
  // Null: not known.
  const void* address() const noexcept { return address_; }

  // The same place, with the address of the code that called; one that is known already stays.
  call_place called_from(const void* address) const noexcept {
    call_place with(*this);
    if (with.address_ == nullptr) with.address_ = address;
    return with;
  }

 private:
  std::source_location at_;
  const void* address_ = nullptr;
};

}  // namespace sluice
