#include "sluice/base/detail/block_memory.hpp"

#include <mutex>
#include <utility>

#include "sluice/base/atomic.hpp"
#include "sluice/base/seam.hpp"

namespace sluice::detail {

constinit thread_local block_cache this_thread_cache{};

namespace {

using block = block_cache::block;

void free_all(block* first) noexcept {
  while (first != nullptr) {
    block* const next = first->next;
    ::operator delete(first);
    first = next;
  }
}

// Full magazines of one size, shared by all threads. Not freed at the end of the program.
class depot {
 public:
  block* take() noexcept {
    if (count_.load(relaxed) == 0) return nullptr;  // a guess: checked again under the lock
    const std::lock_guard hold(guard_);
    const std::uint32_t count = count_.load(relaxed);
    if (count == 0) return nullptr;
    count_.store(count - 1, relaxed);
    return magazines_[count - 1];
  }
  // Returns false if the depot is full.
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

// Its destructor runs when the thread ends. Blocks that later destructors of thread_local objects
// give back are freed at once.
struct free_at_thread_end {
  ~free_at_thread_end() {
    this_thread_cache.stage = 2;
    for (auto& blocks : this_thread_cache.of_size) {
      free_all(std::exchange(blocks.first, nullptr));
      free_all(std::exchange(blocks.spare, nullptr));
      blocks.count = 0;
    }
  }
  void touch() const noexcept {}
};

}  // namespace

bool start_cache() noexcept {
  if (this_thread_cache.stage != 0) return this_thread_cache.stage == 1;
  thread_local const free_at_thread_end at_end;
  at_end.touch();
  this_thread_cache.stage = 1;
  return true;
}

void* take_block_slow(std::size_t size) {
  auto& blocks = this_thread_cache.of_size[size];
  block* magazine = std::exchange(blocks.spare, nullptr);
  if (magazine == nullptr && start_cache()) magazine = depots[size].take();
  if (magazine == nullptr) return ::operator new((size + 1) * block_unit);
  blocks.first = magazine->next;
  blocks.count = magazine_blocks - 1;
  return magazine;
}

void give_block_slow(void* at, std::size_t size) noexcept {
  if (!start_cache()) return ::operator delete(at);
  auto& blocks = this_thread_cache.of_size[size];
  if (blocks.count == magazine_blocks) {
    if (blocks.spare != nullptr && !depots[size].give(blocks.spare)) return ::operator delete(at);
    blocks.spare = std::exchange(blocks.first, nullptr);
    blocks.count = 0;
  }
  blocks.first = ::new (at) block{blocks.first};
  ++blocks.count;
}

}  // namespace sluice::detail
