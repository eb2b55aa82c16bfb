#pragma once

// std::isdigit without the locale.

namespace sluice::jobs {

constexpr bool is_digit(char c) noexcept {
  return c >= '0' && c <= '9';
}

}  // namespace sluice::jobs
