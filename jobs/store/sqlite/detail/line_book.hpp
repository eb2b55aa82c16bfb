#pragma once

// The lines of keys in memory: the number of active and of waiting jobs per key.
//
// In the file every line would be a row on its own page: a thousand jobs with a thousand keys would
// write hundreds of pages for nothing else. In memory a line costs no page; it is rebuilt from the
// rows of the jobs when a store is opened. The number of lines is limited; when the book is full,
// the caller keeps further lines in the file.
//
// Guarantees: plain value, one thread. `undo` reverts the changes since `keep`.
// Cost: at most 32 bytes per line, in one block; allocates only when it grows.

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "jobs/store/gates.hpp"

namespace sluice::jobs::detail {

class line_book {
 public:
  explicit line_book(std::size_t lines_max) : lines_max_(lines_max), slots_(slots_least) {}

  std::size_t size() const noexcept { return size_; }
  bool is_full() const noexcept { return size_ >= lines_max_; }

  // Returns null if the line is not in the book. Valid until the next `set`.
  const line_counts* find(line_number line) const noexcept;
  // Stores the counts of a line; removes an empty line. The book must not be full for a new line.
  void set(line_number line, line_counts now);
  // Like `set`, for opening a store: cannot be undone, and ignores lines_max.
  void load(line_number line, line_counts now) { store(line, now); }

  void keep() noexcept { undo_.clear(); }
  void undo();

 private:
  struct slot {
    line_number line = 0;
    line_counts counts{};  // zero: the slot is free
  };
  static constexpr std::size_t slots_least = 1024;  // the number of slots is a power of two

  static bool is_free(const slot& s) noexcept {
    return s.counts.active == 0 && s.counts.waiting == 0;
  }
  std::size_t home_of(line_number line) const noexcept {
    return static_cast<std::size_t>(line) & (slots_.size() - 1);  // line numbers are hashes
  }
  std::size_t slot_of(line_number line) const noexcept;  // its slot, or the free slot for it
  void store(line_number line, line_counts now);
  void erase(std::size_t at);
  void resize(std::size_t slots);

  std::size_t lines_max_;
  std::vector<slot> slots_;
  std::size_t size_ = 0;
  std::vector<std::pair<line_number, line_counts>> undo_;  // earlier values
};

}  // namespace sluice::jobs::detail
