#pragma once

// An allocator for small short-lived objects, such as the states of futures and the messages of
// actors: each thread caches the blocks that it frees, up to a bound, and allocates from this
// cache. The objects have few sizes and live on few threads, so nearly every allocation reuses a
// block that was just freed.
//
// Blocks that one thread allocates and another frees, such as messages, return through a depot that
// all threads share, in magazines of `magazine_blocks`: one lock for each magazine.
//
// Bounded: two magazines of each size up to 256 bytes in a thread, and `depot_magazines` of each in
// the depot. All other blocks, and larger ones, use operator new and delete. A thread frees its
// cache when it ends. Under a sanitizer and in a simulation nothing is cached, so that they detect
// every use after free.

#include <cstddef>
#include <cstdint>
#include <new>

#include "sluice/base/detail/per_thread.hpp"

namespace sluice::detail {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(SLUICE_SIM)
inline constexpr bool caches_blocks = false;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
    __has_feature(memory_sanitizer)
inline constexpr bool caches_blocks = false;
#else
inline constexpr bool caches_blocks = true;
#endif
#else
inline constexpr bool caches_blocks = true;
#endif

inline constexpr std::size_t block_unit = 16;
inline constexpr std::size_t block_sizes = 16;  // 16, 32, ... 256 bytes
inline constexpr std::uint32_t magazine_blocks = 512;
inline constexpr std::uint32_t depot_magazines = 32;

struct block_cache {
  struct block {
    block* next;
  };
  struct {
    block* first;         // free list: allocations pop, frees push
    std::uint32_t count;  // of the blocks in `first`
    block* spare;         // a full magazine, or null
  } of_size[block_sizes];
  // 0 nothing cached yet; 1 caches; 2 the thread is ending
  std::uint32_t stage;
};
extern constinit thread_local block_cache this_thread_cache;

// Starts the thread's cache. Returns false if the thread is ending.
bool start_cache() noexcept;
// The slow paths: `first` is empty or full.
void* take_block_slow(std::size_t size);
void give_block_slow(void* at, std::size_t size) noexcept;

SLUICE_PER_THREAD inline void* take_block(std::size_t bytes) {
  const auto size = (bytes - 1) / block_unit;
  if (caches_blocks && size < block_sizes) [[likely]] {
    auto& blocks = this_thread_cache.of_size[size];
    if (blocks.first != nullptr) [[likely]] {
      auto* const taken = blocks.first;
      blocks.first = taken->next;
      // The next block may be in another core's cache: fetches it while this one is used.
      __builtin_prefetch(blocks.first, 1);
      --blocks.count;
      return taken;
    }
    return take_block_slow(size);
  }
  return ::operator new(bytes);
}

SLUICE_PER_THREAD inline void give_block(void* at, std::size_t bytes) noexcept {
  const auto size = (bytes - 1) / block_unit;
  if (caches_blocks && size < block_sizes) [[likely]] {
    auto& cache = this_thread_cache;
    auto& blocks = cache.of_size[size];
    if (blocks.count < magazine_blocks && cache.stage == 1) [[likely]] {
      blocks.first = ::new (at) block_cache::block{blocks.first};
      ++blocks.count;
      return;
    }
    return give_block_slow(at, size);
  }
  ::operator delete(at);
}

}  // namespace sluice::detail
