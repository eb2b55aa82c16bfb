#pragma once

// Whether a text is as a pattern says, as Redis matches keys: * is anything, ? one byte, [abc],
// [^a] and [a-z] one of several, \ takes the next byte as it is.
//
// Cost: a few operations for each byte of the text and each 64 elements of the pattern, whatever
// both are: every place in the pattern that the text may have reached is a bit, and all bits take
// a step at once.

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace sluice::jobs::faktory {

class pattern {
 public:
  explicit pattern(std::string_view text);

  bool matches(std::string_view text) const;
  // How many operations a byte takes.
  std::size_t cost() const noexcept { return words_; }

 private:
  using bits = std::vector<std::uint64_t>;
  static bool has(const bits& of, std::size_t bit) {
    return (of[bit / 64] >> (bit % 64) & 1U) != 0;
  }

  // Bit n stands for the place behind n elements; the last: behind all.
  std::size_t last_ = 0;
  std::size_t words_ = 1;
  bits stays_{};  // where a star is: any byte leads here again
  bits takes_{};  // for each byte so many words: the places that it leads to from those before
};

// For one text.
bool matches(std::string_view pattern, std::string_view text);

}  // namespace sluice::jobs::faktory
