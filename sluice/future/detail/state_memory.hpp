#pragma once

// Memory for the states of futures: each thread keeps the blocks it gave back, up to a bound, and
// takes them again. A chain of futures is built and torn down on few threads, and its states have
// few sizes, so nearly every state is one that was just given back.
//
// Bounded: at most `kept_max` blocks of a size up to 256 bytes on a thread; the rest, and what is
// larger, goes to operator new and delete. A thread frees what it keeps when it ends. Under a
// sanitizer nothing is kept, so that it sees every use after free.

#include <cstddef>
#include <cstdint>
#include <new>

#include "sluice/base/per_thread.hpp"

namespace sluice::detail {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
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
inline constexpr std::uint32_t kept_max = 1024;

struct kept_blocks {
  struct block {
    block* next;
  };
  struct {
    block* first;
    std::uint32_t count;
  } of_size[block_sizes];
  // 0 nothing kept yet; 1 keeps; 2 the thread is ending
  std::uint32_t stage;
};
extern constinit thread_local kept_blocks this_thread_keeps;

bool begin_to_keep() noexcept;

SLUICE_PER_THREAD inline void* take_block(std::size_t bytes) {
  const auto size = (bytes - 1) / block_unit;
  if (keeps_blocks && size < block_sizes) [[likely]] {
    auto& kept = this_thread_keeps.of_size[size];
    if (kept.first != nullptr) [[likely]] {
      auto* const taken = kept.first;
      kept.first = taken->next;
      --kept.count;
      return taken;
    }
    return ::operator new((size + 1) * block_unit);
  }
  return ::operator new(bytes);
}

SLUICE_PER_THREAD inline void give_block(void* at, std::size_t bytes) noexcept {
  const auto size = (bytes - 1) / block_unit;
  if (keeps_blocks && size < block_sizes) [[likely]] {
    auto& mine = this_thread_keeps;
    auto& kept = mine.of_size[size];
    if (kept.count < kept_max && (mine.stage == 1 || begin_to_keep())) [[likely]] {
      kept.first = ::new (at) kept_blocks::block{kept.first};
      ++kept.count;
      return;
    }
  }
  ::operator delete(at);
}

}  // namespace sluice::detail
