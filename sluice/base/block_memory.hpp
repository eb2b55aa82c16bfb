#pragma once

// Memory for small things that are made and gone in great number, such as the states of futures
// and the messages of actors: each thread keeps the blocks it gave back, up to a bound, and takes
// them again. They have few sizes and come and go on few threads, so nearly every block is one that
// was just given back.
//
// Where blocks are taken on one thread and given back on another, as messages are, they travel back
// in whole magazines of `magazine_blocks` through a depot that all threads share: one lock for so
// many blocks.
//
// Bounded: two magazines of each size up to 256 bytes on a thread, and `depot_magazines` in the
// depot; the rest, and what is larger, goes to operator new and delete. A thread frees what it
// keeps when it ends. Under a sanitizer and in a simulation nothing is kept, so that they see every
// use after free.

#include <cstddef>
#include <cstdint>
#include <new>

#include "sluice/base/per_thread.hpp"

namespace sluice {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(SLUICE_SIM)
inline constexpr bool keeps_blocks = false;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
    __has_feature(memory_sanitizer)
inline constexpr bool keeps_blocks = false;
#else
inline constexpr bool keeps_blocks = true;
#endif
#else
inline constexpr bool keeps_blocks = true;
#endif

inline constexpr std::size_t block_unit = 16;
inline constexpr std::size_t block_sizes = 16;  // 16, 32, ... 256 bytes
inline constexpr std::uint32_t magazine_blocks = 512;
inline constexpr std::uint32_t depot_magazines = 32;

struct kept_blocks {
  struct block {
    block* next;
  };
  struct {
    block* first;         // taken from, given to
    std::uint32_t count;  // of those
    block* spare;         // a whole magazine, or null
  } of_size[block_sizes];
  // 0 nothing kept yet; 1 keeps; 2 the thread is ending
  std::uint32_t stage;
};
extern constinit thread_local kept_blocks this_thread_keeps;

bool begin_to_keep() noexcept;
// None is at hand, or no more can be kept there.
void* take_block_from_others(std::size_t size);
void give_block_to_others(void* at, std::size_t size) noexcept;

SLUICE_PER_THREAD inline void* take_block(std::size_t bytes) {
  const auto size = (bytes - 1) / block_unit;
  if (keeps_blocks && size < block_sizes) [[likely]] {
    auto& kept = this_thread_keeps.of_size[size];
    if (kept.first != nullptr) [[likely]] {
      auto* const taken = kept.first;
      kept.first = taken->next;
      // It may be in the cache of the core that gave it back: so it comes while this one is used.
      __builtin_prefetch(kept.first, 1);
      --kept.count;
      return taken;
    }
    return take_block_from_others(size);
  }
  return ::operator new(bytes);
}

SLUICE_PER_THREAD inline void give_block(void* at, std::size_t bytes) noexcept {
  const auto size = (bytes - 1) / block_unit;
  if (keeps_blocks && size < block_sizes) [[likely]] {
    auto& mine = this_thread_keeps;
    auto& kept = mine.of_size[size];
    if (kept.count < magazine_blocks && mine.stage == 1) [[likely]] {
      kept.first = ::new (at) kept_blocks::block{kept.first};
      ++kept.count;
      return;
    }
    return give_block_to_others(at, size);
  }
  ::operator delete(at);
}

}  // namespace sluice
