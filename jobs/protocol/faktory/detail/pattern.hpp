#pragma once

// Matches text with glob patterns as Redis does for keys: * is any text, ? one byte, [abc], [^a]
// and [a-z] a set of bytes, \ escapes the next byte.
//
// Cost: a few operations for each byte of the text and each 64 elements of the pattern, in the
// worst case: a bit-parallel NFA, where each state is a bit and a step handles 64 states.

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace sluice::jobs::faktory {

class pattern {
 public:
  explicit pattern(std::string_view text);

  bool matches(std::string_view text) const;
  // Returns the number of operations per byte.
  std::size_t cost() const noexcept { return words_; }

 private:
  using bits = std::vector<std::uint64_t>;
  static bool has(const bits& of, std::size_t bit) {
    return (of[bit / 64] >> (bit % 64) & 1U) != 0;
  }

  // Bit n is the state after n elements; last_: after all.
  std::size_t last_ = 0;
  std::size_t words_ = 1;
  bits stays_{};  // states with a star: any byte leads to the same state
  bits takes_{};  // words_ words for each byte: the states that it leads to from the previous ones
};

// For a pattern that is used once.
bool matches(std::string_view pattern, std::string_view text);

}  // namespace sluice::jobs::faktory
