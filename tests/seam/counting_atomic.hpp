#pragma once

// An atomic that counts its accesses, in place of std::atomic: shows that every atomic of the
// library goes through the seam, and that the seam has all operations that the library uses.

#include <atomic>
#include <cstdint>

namespace sluice {

inline void atomic_fence(std::memory_order order) noexcept { std::atomic_thread_fence(order); }

template <class A>
auto load_untracked(const A& at) noexcept {
  return at.load(std::memory_order_relaxed);
}

inline std::atomic<std::uint64_t> seam_accesses{0};

template <class T>
class atomic {
 public:
  constexpr atomic() noexcept = default;
  constexpr atomic(T initial) noexcept : value_(initial) {}
  atomic(const atomic&) = delete;
  atomic& operator=(const atomic&) = delete;

  T load(std::memory_order order = std::memory_order_seq_cst) const noexcept {
    return counted(value_).load(order);
  }
  void store(T value, std::memory_order order = std::memory_order_seq_cst) noexcept {
    counted(value_).store(value, order);
  }
  T exchange(T value, std::memory_order order = std::memory_order_seq_cst) noexcept {
    return counted(value_).exchange(value, order);
  }
  bool compare_exchange_strong(T& expected, T desired, std::memory_order good,
                               std::memory_order bad) noexcept {
    return counted(value_).compare_exchange_strong(expected, desired, good, bad);
  }
  bool compare_exchange_weak(T& expected, T desired, std::memory_order good,
                             std::memory_order bad) noexcept {
    return counted(value_).compare_exchange_weak(expected, desired, good, bad);
  }
  T fetch_add(T by, std::memory_order order = std::memory_order_seq_cst) noexcept {
    return counted(value_).fetch_add(by, order);
  }
  T fetch_sub(T by, std::memory_order order = std::memory_order_seq_cst) noexcept {
    return counted(value_).fetch_sub(by, order);
  }
  T fetch_and(T with, std::memory_order order = std::memory_order_seq_cst) noexcept {
    return counted(value_).fetch_and(with, order);
  }

 private:
  template <class Value>
  static Value& counted(Value& value) noexcept {
    seam_accesses.fetch_add(1, std::memory_order_relaxed);
    return value;
  }

  std::atomic<T> value_;
};

}  // namespace sluice
