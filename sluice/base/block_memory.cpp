#include "sluice/base/block_memory.hpp"

#include <mutex>
#include <utility>

#include "sluice/base/atomic.hpp"
#include "sluice/base/seam.hpp"

namespace sluice {

constinit thread_local kept_blocks this_thread_keeps{};

namespace {

using block = kept_blocks::block;

void free_all(block* first) noexcept {
  while (first != nullptr) {
    block* const next = first->next;
    ::operator delete(first);
    first = next;
  }
}

// Whole magazines of one size. What is in it at the end of the program stays.
class depot {
 public:
  block* take() noexcept {
    if (count_.load(relaxed) == 0) return nullptr;  // a guess: looked at again under the lock
    const std::lock_guard hold(guard_);
    const std::uint32_t count = count_.load(relaxed);
    if (count == 0) return nullptr;
    count_.store(count - 1, relaxed);
    return magazines_[count - 1];
  }
  // False: it is full.
  bool give(block* magazine) noexcept {
    const std::lock_guard hold(guard_);
    const std::uint32_t count = count_.load(relaxed);
    if (count == depot_magazines) return false;
    magazines_[count] = magazine;
    count_.store(count + 1, relaxed);
    return true;
  }

 private:
  seam::os_mutex guard_;
  atomic<std::uint32_t> count_{0};  // written under guard_
  block* magazines_[depot_magazines]{};
};

constinit depot depots[block_sizes];

// Its destructor runs at the end of the thread. Blocks that are given back after that, by other
// thread_local objects, are freed at once.
struct free_at_thread_end {
  ~free_at_thread_end() {
    this_thread_keeps.stage = 2;
    for (auto& kept : this_thread_keeps.of_size) {
      free_all(std::exchange(kept.first, nullptr));
      free_all(std::exchange(kept.spare, nullptr));
      kept.count = 0;
    }
  }
  void touch() const noexcept {}
};

}  // namespace

bool begin_to_keep() noexcept {
  if (this_thread_keeps.stage != 0) return this_thread_keeps.stage == 1;
  thread_local const free_at_thread_end at_end;
  at_end.touch();
  this_thread_keeps.stage = 1;
  return true;
}

void* take_block_from_others(std::size_t size) {
  auto& kept = this_thread_keeps.of_size[size];
  block* magazine = std::exchange(kept.spare, nullptr);
  if (magazine == nullptr && begin_to_keep()) magazine = depots[size].take();
  if (magazine == nullptr) return ::operator new((size + 1) * block_unit);
  kept.first = magazine->next;
  kept.count = magazine_blocks - 1;
  return magazine;
}

void give_block_to_others(void* at, std::size_t size) noexcept {
  if (!begin_to_keep()) return ::operator delete(at);
  auto& kept = this_thread_keeps.of_size[size];
  if (kept.count == magazine_blocks) {
    if (kept.spare != nullptr && !depots[size].give(kept.spare)) return ::operator delete(at);
    kept.spare = std::exchange(kept.first, nullptr);
    kept.count = 0;
  }
  kept.first = ::new (at) block{kept.first};
  ++kept.count;
}

}  // namespace sluice
