#include "jobs/store/sqlite/detail/line_book.hpp"

#include "sluice/base/check.hpp"

namespace sluice::jobs::detail {

std::size_t line_book::slot_of(line_number line) const noexcept {
  std::size_t at = home_of(line);
  while (!is_free(slots_[at]) && slots_[at].line != line) at = (at + 1) & (slots_.size() - 1);
  return at;
}

const line_counts* line_book::find(line_number line) const noexcept {
  const slot& s = slots_[slot_of(line)];
  return is_free(s) ? nullptr : &s.counts;
}

void line_book::set(line_number line, line_counts now) {
  const line_counts* const before = find(line);
  check(before != nullptr || !is_full(), "sluice::jobs::line_book", "a free slot for a new line");
  undo_.emplace_back(line, before != nullptr ? *before : line_counts{});
  store(line, now);
}

void line_book::undo() {
  for (auto at = undo_.rbegin(); at != undo_.rend(); ++at) store(at->first, at->second);
  undo_.clear();
}

void line_book::store(line_number line, line_counts now) {
  const std::size_t at = slot_of(line);
  const bool was_there = !is_free(slots_[at]);
  const bool is_there = now.active != 0 || now.waiting != 0;
  if (is_there) {
    slots_[at] = {line, now};
    if (!was_there && ++size_ * 2 > slots_.size()) resize(slots_.size() * 2);
  } else if (was_there) {
    erase(at);
    if (--size_ * 16 < slots_.size() && slots_.size() > slots_least) resize(slots_.size() / 4);
  }
}

// Moves later entries of the probe sequence up, so that linear probing finds them.
void line_book::erase(std::size_t at) {
  const std::size_t mask = slots_.size() - 1;
  std::size_t hole = at;
  for (std::size_t next = (hole + 1) & mask; !is_free(slots_[next]); next = (next + 1) & mask) {
    const std::size_t home = home_of(slots_[next].line);
    if (((next - home) & mask) < ((next - hole) & mask)) continue;
    slots_[hole] = slots_[next];
    hole = next;
  }
  slots_[hole] = {};
}

void line_book::resize(std::size_t slots) {
  std::vector<slot> old(slots);
  old.swap(slots_);
  for (const slot& s : old) {
    if (!is_free(s)) slots_[slot_of(s.line)] = s;
  }
}

}  // namespace sluice::jobs::detail
