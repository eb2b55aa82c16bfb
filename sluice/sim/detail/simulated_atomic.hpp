#pragma once

// The atomic of a simulated build: every access is a switch point, and a load returns any value
// that the declared order allows (memory_model.hpp). Outside of a schedule it is a std::atomic. It
// has the same size, so that layouts do not change.

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <source_location>
#include <type_traits>

namespace sluice::sim::detail {

// True while code of a schedule runs.
extern constinit bool exploring;

void atomic_made(const void* at, std::uint64_t bits) noexcept;
std::uint64_t atomic_load(const void* at, std::size_t bytes, std::memory_order order,
                          const std::source_location& where) noexcept;
void atomic_store(void* at, std::size_t bytes, std::uint64_t bits, std::memory_order order,
                  const std::source_location& where) noexcept;
// A read-modify-write in two calls, without a switch point in between.
std::uint64_t atomic_begin_change(const void* at, std::size_t bytes,
                                  const std::source_location& where) noexcept;
void atomic_end_change(void* at, std::size_t bytes, std::uint64_t bits,
                       std::memory_order order) noexcept;
void atomic_leave(const void* at, std::memory_order order) noexcept;  // the value does not change
void atomic_pass_fence(std::memory_order order, const std::source_location& where) noexcept;
// Returns true if a weak compare-exchange is to fail spuriously.
bool atomic_fails_spuriously() noexcept;

}  // namespace sluice::sim::detail

namespace sluice {

inline void atomic_fence(std::memory_order order,
                         std::source_location where = std::source_location::current()) noexcept {
  if (!sim::detail::exploring) return std::atomic_thread_fence(order);
  sim::detail::atomic_pass_fence(order, where);
}

template <class T>
class atomic {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= 8);
  using where_from = std::source_location;
  using step = std::conditional_t<std::is_pointer_v<T>, std::ptrdiff_t, T>;
  using order_type = std::memory_order;
  static constexpr auto strongest = std::memory_order_seq_cst;

 public:
  using value_type = T;
  static constexpr bool is_always_lock_free = std::atomic<T>::is_always_lock_free;

  constexpr atomic() noexcept(std::is_nothrow_default_constructible_v<T>) : atomic(T{}) {}
  constexpr atomic(T value) noexcept : value_(value) {
    if (!std::is_constant_evaluated() && sim::detail::exploring) {
      sim::detail::atomic_made(&value_, bits_of(value));
    }
  }
  atomic(const atomic&) = delete;
  atomic& operator=(const atomic&) = delete;

  bool is_lock_free() const noexcept { return value_.is_lock_free(); }

  T load(order_type order = strongest, where_from where = where_from::current()) const noexcept {
    if (!sim::detail::exploring) return value_.load(order);
    return value_of(sim::detail::atomic_load(&value_, sizeof(T), order, where));
  }
  void store(T value, order_type order = strongest,
             where_from where = where_from::current()) noexcept {
    if (!sim::detail::exploring) return value_.store(value, order);
    sim::detail::atomic_store(&value_, sizeof(T), bits_of(value), order, where);
  }
  T exchange(T value, order_type order = strongest,
             where_from where = where_from::current()) noexcept {
    if (!sim::detail::exploring) return value_.exchange(value, order);
    return change([value](T) { return value; }, order, where);
  }
  bool compare_exchange_strong(T& expected, T wanted, order_type order, order_type otherwise,
                               where_from where = where_from::current()) noexcept {
    if (!sim::detail::exploring) {
      return value_.compare_exchange_strong(expected, wanted, order, otherwise);
    }
    return compare(expected, wanted, order, otherwise, where);
  }
  bool compare_exchange_strong(T& expected, T wanted, order_type order = strongest,
                               where_from where = where_from::current()) noexcept {
    return compare_exchange_strong(expected, wanted, order, weaker(order), where);
  }
  bool compare_exchange_weak(T& expected, T wanted, order_type order, order_type otherwise,
                             where_from where = where_from::current()) noexcept {
    if (!sim::detail::exploring) {
      return value_.compare_exchange_weak(expected, wanted, order, otherwise);
    }
    if (sim::detail::atomic_fails_spuriously()) {
      expected = load(otherwise, where);
      return false;
    }
    return compare(expected, wanted, order, otherwise, where);
  }
  bool compare_exchange_weak(T& expected, T wanted, order_type order = strongest,
                             where_from where = where_from::current()) noexcept {
    return compare_exchange_weak(expected, wanted, order, weaker(order), where);
  }

  operator T() const noexcept { return load(); }
  T operator=(T value) noexcept {
    store(value);
    return value;
  }

  T fetch_add(step by, order_type order = strongest,
              where_from where = where_from::current()) noexcept {
    if (!sim::detail::exploring) return value_.fetch_add(by, order);
    return change([by](T old) { return static_cast<T>(old + by); }, order, where);
  }
  T fetch_sub(step by, order_type order = strongest,
              where_from where = where_from::current()) noexcept {
    if (!sim::detail::exploring) return value_.fetch_sub(by, order);
    return change([by](T old) { return static_cast<T>(old - by); }, order, where);
  }
  T fetch_and(T with, order_type order = strongest,
              where_from where = where_from::current()) noexcept {
    if (!sim::detail::exploring) return value_.fetch_and(with, order);
    return change([with](T old) { return static_cast<T>(old & with); }, order, where);
  }
  T fetch_or(T with, order_type order = strongest,
             where_from where = where_from::current()) noexcept {
    if (!sim::detail::exploring) return value_.fetch_or(with, order);
    return change([with](T old) { return static_cast<T>(old | with); }, order, where);
  }
  T fetch_xor(T with, order_type order = strongest,
              where_from where = where_from::current()) noexcept {
    if (!sim::detail::exploring) return value_.fetch_xor(with, order);
    return change([with](T old) { return static_cast<T>(old ^ with); }, order, where);
  }
  friend T load_untracked(const atomic& at) noexcept {
    return at.value_.load(std::memory_order_relaxed);
  }

  T operator++() noexcept { return static_cast<T>(fetch_add(1) + 1); }
  T operator++(int) noexcept { return fetch_add(1); }
  T operator--() noexcept { return static_cast<T>(fetch_sub(1) - 1); }
  T operator--(int) noexcept { return fetch_sub(1); }
  T operator+=(step by) noexcept { return static_cast<T>(fetch_add(by) + by); }
  T operator-=(step by) noexcept { return static_cast<T>(fetch_sub(by) - by); }

 private:
  static constexpr order_type weaker(order_type order) noexcept {
    return order == std::memory_order_acq_rel   ? std::memory_order_acquire
           : order == std::memory_order_release ? std::memory_order_relaxed
                                                : order;
  }
  static std::uint64_t bits_of(const T& value) noexcept {
    std::uint64_t bits = 0;
    std::memcpy(&bits, std::addressof(value), sizeof(T));
    return bits;
  }
  static T value_of(std::uint64_t bits) noexcept {
    alignas(T) std::byte bytes[sizeof(T)];
    std::memcpy(bytes, &bits, sizeof(T));
    return *std::launder(reinterpret_cast<T*>(bytes));
  }

  template <class F>
  T change(F&& update, order_type order, const where_from& where) noexcept {
    const T old = value_of(sim::detail::atomic_begin_change(&value_, sizeof(T), where));
    sim::detail::atomic_end_change(&value_, sizeof(T), bits_of(update(old)), order);
    return old;
  }
  bool compare(T& expected, const T& wanted, order_type order, order_type otherwise,
               const where_from& where) noexcept {
    const auto found = sim::detail::atomic_begin_change(&value_, sizeof(T), where);
    if (found == bits_of(expected)) {
      sim::detail::atomic_end_change(&value_, sizeof(T), bits_of(wanted), order);
      return true;
    }
    sim::detail::atomic_leave(&value_, otherwise);
    expected = value_of(found);
    return false;
  }

  std::atomic<T> value_;
};

}  // namespace sluice
