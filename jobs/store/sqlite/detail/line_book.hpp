#pragma once

// The lines of keys in memory: how many jobs have a place under a key, and how many wait for one.
//
// On disk a line would be a row at a place of its own: a thousand jobs of a thousand keys would
// write hundreds of pages that have nothing else to be written for. Kept here, a job's line costs
// no page; it is found again from the rows of the jobs when a store is opened. Only so many are
// kept: who finds it full keeps the line elsewhere.
//
// Guarantees: plain value, one thread. What was changed since `keep` is undone by `undo`.
// Cost: 32 bytes for each line at most, in one block; no allocation to enter or to leave, but when
// it grows.

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

  // Null: it is not here. Valid until the next `set`.
  const line_counts* find(line_number line) const noexcept;
  // A line in which nobody is any more is forgotten. A new one must not be set when it is full.
  void set(line_number line, line_counts now);
  // As `set`, when a store is opened: not undone, and however many there are.
  void load(line_number line, line_counts now) { store(line, now); }

  void keep() noexcept { undo_.clear(); }
  void undo();

 private:
  struct slot {
    line_number line = 0;
    line_counts counts{};  // nobody: the slot is free
  };
  static constexpr std::size_t slots_least = 1024;  // and always a power of two

  static bool is_free(const slot& s) noexcept {
    return s.counts.active == 0 && s.counts.waiting == 0;
  }
  std::size_t home_of(line_number line) const noexcept {
    return static_cast<std::size_t>(line) & (slots_.size() - 1);  // it is a mixed number already
  }
  std::size_t slot_of(line_number line) const noexcept;  // its own, or the free one for it
  void store(line_number line, line_counts now);
  void erase(std::size_t at);
  void resize(std::size_t slots);

  std::size_t lines_max_;
  std::vector<slot> slots_;
  std::size_t size_ = 0;
  std::vector<std::pair<line_number, line_counts>> undo_;  // as they were before
};

}  // namespace sluice::jobs::detail
