#pragma once

// The memory of one schedule. The explored program allocates from it, so that every schedule sees
// the same addresses, leaks are found at the end, and freed memory is not reused and is recognized.

#include <cstddef>
#include <cstdint>

namespace sluice::sim::detail {

class arena {
 public:
  arena();
  arena(const arena&) = delete;
  arena& operator=(const arena&) = delete;
  ~arena();

  // Returns null if the arena is exhausted.
  void* allocate(std::size_t bytes, std::size_t alignment, std::uint32_t step) noexcept;
  // Returns false if `at` is not a block of this arena, or was freed before.
  bool release(void* at) noexcept;

  bool owns(const void* at) const noexcept { return at >= begin_ && at < begin_ + bytes_; }
  // Returns true for an address in freed memory.
  bool is_freed(const void* at) const noexcept {
    return owns(at) &&
           shadow_[static_cast<std::size_t>(static_cast<const std::byte*>(at) - begin_) / unit] ==
               freed;
  }

  // Frees all blocks and forgets them.
  void reset() noexcept;

  std::size_t live_blocks() const noexcept { return live_; }
  // Returns the size and the allocating step of a live block. Requires live_blocks() > 0.
  struct block_facts {
    std::size_t bytes;
    std::uint32_t step;
  };
  block_facts first_live() const noexcept;

 private:
  static constexpr std::size_t unit = 16;
  static constexpr std::uint8_t never = 0, live = 1, freed = 2;
  struct header {
    std::uint64_t bytes;
    std::uint32_t step;
    std::uint32_t mark;
  };
  static constexpr std::uint32_t live_mark = 0x5141e11e, freed_mark = 0xdead10c4;
  // Freed blocks are reused only after this many bytes were allocated: never in a schedule of usual
  // length.
  static constexpr std::size_t reuse_after = std::size_t{64} << 20;
  static constexpr std::size_t classes = 28;
  struct free_block {
    free_block* next;
  };

  void shade(const void* at, std::size_t bytes, std::uint8_t as) noexcept;
  static std::size_t class_of(std::size_t bytes) noexcept;

  std::byte* begin_ = nullptr;
  std::size_t bytes_ = 0;
  std::uint8_t* shadow_ = nullptr;
  std::size_t used_ = 0;
  std::size_t live_ = 0;
  free_block* free_[classes] = {};
};

}  // namespace sluice::sim::detail
