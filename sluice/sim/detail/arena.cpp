#include "sluice/sim/detail/arena.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "sluice/base/check.hpp"

namespace sluice::sim::detail {
namespace {

constexpr std::size_t arena_bytes = std::size_t{1} << 30;
constexpr std::uint8_t poison = 0xdd;  // as a pointer, an unmapped address

// Requested at the same address in every process, so that a schedule that depends on addresses is
// the same in all of them. The kernel picks another address if it is taken.
void* const wanted = reinterpret_cast<void*>(std::uintptr_t{0x6000'0000'0000});

void* reserve(std::size_t bytes, void* at = nullptr) {
  void* const got =
      ::mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  check(got != MAP_FAILED, "sluice::sim", "address space for the memory of a schedule");
  return got;
}

}  // namespace

arena::arena()
    : begin_(static_cast<std::byte*>(reserve(arena_bytes, wanted))),
      bytes_(arena_bytes),
      shadow_(static_cast<std::uint8_t*>(reserve(arena_bytes / unit))) {}

arena::~arena() {
  ::munmap(begin_, bytes_);
  ::munmap(shadow_, bytes_ / unit);
}

std::size_t arena::class_of(std::size_t bytes) noexcept {
  return std::min<std::size_t>(static_cast<std::size_t>(std::bit_width(bytes - 1)), classes - 1);
}

void arena::shade(const void* at, std::size_t bytes, std::uint8_t as) noexcept {
  const auto from = static_cast<std::size_t>(static_cast<const std::byte*>(at) - begin_);
  std::memset(shadow_ + from / unit, as, (bytes + unit - 1) / unit);
}

void* arena::allocate(std::size_t bytes, std::size_t alignment, std::uint32_t step) noexcept {
  bytes = std::max<std::size_t>(bytes, 1);
  const bool reuses = used_ > reuse_after && alignment <= unit;
  const auto kind = class_of(bytes);
  std::byte* at = nullptr;
  if (reuses && free_[kind] != nullptr && kind + 1 < classes) {
    at = reinterpret_cast<std::byte*>(free_[kind]);
    free_[kind] = free_[kind]->next;
  } else {
    const auto align = std::max(alignment, unit);
    const auto room = kind + 1 < classes ? std::size_t{1} << kind : bytes;
    const auto start = (used_ + sizeof(header) + align - 1) / align * align;
    // A block beyond the limit may be reused by any request of its size class, so it has the full
    // length of the class; below the limit, the requested length.
    const auto length = start > reuse_after ? std::max(room, bytes) : bytes;
    if (start + length + unit > bytes_) return nullptr;
    at = begin_ + start;
    used_ = start + (length + unit - 1) / unit * unit;
  }
  auto* const head = reinterpret_cast<header*>(at) - 1;
  *head = {.bytes = bytes, .step = step, .mark = live_mark};
  shade(at, bytes, live);
  ++live_;
  return at;
}

bool arena::release(void* at) noexcept {
  if (!owns(at)) return false;
  auto* const head = static_cast<header*>(at) - 1;
  if (head->mark != live_mark) return false;
  head->mark = freed_mark;
  shade(at, head->bytes, freed);
  std::memset(at, poison, head->bytes);
  --live_;
  if (used_ > reuse_after && head->bytes >= sizeof(free_block)) {
    const auto kind = class_of(head->bytes);
    // Only blocks beyond the limit have the full length of their class.
    if (static_cast<std::size_t>(static_cast<std::byte*>(at) - begin_) > reuse_after) {
      free_[kind] = ::new (at) free_block{free_[kind]};
    }
  }
  return true;
}

void arena::reset() noexcept {
  std::memset(shadow_, never, used_ / unit + 1);
  used_ = 0;
  live_ = 0;
  std::fill_n(free_, classes, nullptr);
}

arena::block_facts arena::first_live() const noexcept {
  for (std::size_t i = 0; i <= used_ / unit; ++i) {
    if (shadow_[i] != live) continue;
    const auto* const head = reinterpret_cast<const header*>(begin_ + i * unit) - 1;
    return {.bytes = head->bytes, .step = head->step};
  }
  return {.bytes = 0, .step = 0};
}

}  // namespace sluice::sim::detail
