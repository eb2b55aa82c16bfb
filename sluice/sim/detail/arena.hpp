#pragma once

// The memory of one schedule. What the explored program allocates comes from here, so that every
// schedule sees the same addresses, what is not given back is known at the end, and what was given
// back is not used again and is known as such.

#include <cstddef>
#include <cstdint>

namespace sluice::sim::detail {

class arena {
 public:
  arena();
  arena(const arena&) = delete;
  arena& operator=(const arena&) = delete;
  ~arena();

  // Null: it is used up.
  void* take(std::size_t bytes, std::size_t alignment, std::uint32_t step) noexcept;
  // False: not a block of this arena, or given back before.
  bool give_back(void* at) noexcept;

  bool owns(const void* at) const noexcept { return at >= begin_ && at < begin_ + bytes_; }
  // True for an address that was given back.
  bool is_gone(const void* at) const noexcept {
    return owns(at) &&
           shadow_[static_cast<std::size_t>(static_cast<const std::byte*>(at) - begin_) / unit] ==
               gone;
  }

  // Everything is forgotten.
  void reset() noexcept;

  std::size_t live_blocks() const noexcept { return live_; }
  // One that is still there: how large, and taken at which step. Call with live_blocks() > 0.
  struct block_facts {
    std::size_t bytes;
    std::uint32_t step;
  };
  block_facts first_live() const noexcept;

 private:
  static constexpr std::size_t unit = 16;
  static constexpr std::uint8_t never = 0, live = 1, gone = 2;
  struct header {
    std::uint64_t bytes;
    std::uint32_t step;
    std::uint32_t mark;
  };
  static constexpr std::uint32_t live_mark = 0x5141e11e, gone_mark = 0xdead10c4;
  // A block that was given back waits so many bytes before it may be taken again: in a schedule of
  // usual length never.
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
