#include "jobs/protocol/faktory/detail/pattern.hpp"

#include <utility>

namespace sluice::jobs::faktory {
namespace {

constexpr std::size_t byte_values = 256;

// Removes a set such as [a-z] from the front of a pattern, after its '['. Returns whether it
// contains `c`.
bool set_has(std::string_view& pattern, char c) {
  const bool is_not = !pattern.empty() && pattern.front() == '^';
  if (is_not) pattern.remove_prefix(1);
  bool has = false;
  while (!pattern.empty() && pattern.front() != ']') {
    if (pattern.front() == '\\' && pattern.size() >= 2) pattern.remove_prefix(1);
    char low = pattern.front();
    char high = low;
    pattern.remove_prefix(1);
    if (pattern.size() >= 2 && pattern.front() == '-' && pattern[1] != ']') {
      high = pattern[1];
      pattern.remove_prefix(2);
      if (low > high) std::swap(low, high);
    }
    has = has || (c >= low && c <= high);
  }
  if (!pattern.empty()) pattern.remove_prefix(1);
  return has != is_not;
}

// Removes one element, which is not a star, from the front of a pattern. Returns whether it matches
// `c`.
bool takes(std::string_view& pattern, char c) {
  const char next = pattern.front();
  pattern.remove_prefix(1);
  if (next == '?') return true;
  if (next == '[') return set_has(pattern, c);
  if (next != '\\' || pattern.empty()) return next == c;
  const char literal = pattern.front();
  pattern.remove_prefix(1);
  return literal == c;
}

}  // namespace

pattern::pattern(std::string_view text) {
  words_ = text.size() / 64 + 1;  // no element is shorter than a byte
  stays_.resize(words_);
  takes_.resize(byte_values * words_);
  const auto set = [](std::uint64_t* of, std::size_t bit) {
    of[bit / 64] |= std::uint64_t{1} << (bit % 64);
  };
  while (!text.empty()) {
    if (text.front() == '*') {
      text.remove_prefix(1);
      set(stays_.data(), last_);
      continue;
    }
    ++last_;
    std::string_view behind = text;
    for (std::size_t byte = 0; byte < byte_values; ++byte) {
      behind = text;
      if (takes(behind, static_cast<char>(byte))) set(&takes_[byte * words_], last_);
    }
    text = behind;
  }
}

bool pattern::matches(std::string_view text) const {
  const bool ends_with_star = has(stays_, last_);
  bits at(words_);
  at[0] = 1;
  for (const char c : text) {
    if (ends_with_star && has(at, last_)) return true;
    const std::uint64_t* const led_to = &takes_[static_cast<unsigned char>(c) * words_];
    std::uint64_t carry = 0, any = 0;
    for (std::size_t i = 0; i < words_; ++i) {
      const std::uint64_t next = (((at[i] << 1U) | carry) & led_to[i]) | (at[i] & stays_[i]);
      carry = at[i] >> 63U;
      any |= at[i] = next;
    }
    if (any == 0) return false;
  }
  return has(at, last_);
}

bool matches(std::string_view pattern, std::string_view text) {
  return faktory::pattern(pattern).matches(text);
}

}  // namespace sluice::jobs::faktory
