#pragma once

// Publishes a value of which readers always see one whole version.
//
// Use it for values that are read often and replaced rarely: configuration, routing tables, price
// lists. Prefer `guarded<T, shared_mutex>` when the value is large and often changed in place,
// because every change here makes a new copy.
//
// Guarantees: any thread may call anything. `load` returns a view: the version that was current, as
// a constant, kept alive as long as a view of it exists (also beyond the snapshot itself).
// Readers never block on writers. One thread never sees versions go backwards; a publish
// synchronizes with every load that sees it. Versions are numbered 1, 2, 3 and so on, in the order
// of publication. Writers are serialized by a mutex: `update` runs its function exactly once, on a
// copy of the newest version, and nothing is published in between; if the function throws, nothing
// is published. Publishing from inside that function is a broken contract. A replaced version is
// destroyed by its last holder, outside every lock.
// Cost: `load` is one atomic add, and no allocation; releasing a view is another. A reader that
// keeps its view and calls `refresh` pays one plain load until a new version is published.
// `publish` is one allocation.
// Limits: addresses of 48 bits, and fewer than 32,768 threads inside `load` at the same instant;
// both are checked. The number of views alive is not limited.
//
//     snapshot<routes> table(read_routes());
//     const auto now = table.load();                       // any thread, at any time
//     send(now->find(host));
//     table.update([&](routes& next) { next.insert(host, address); });

#include <cstdint>
#include <memory>
#include <mutex>
#include <type_traits>
#include <utility>

#include "sluice/base/atomic.hpp"
#include "sluice/base/check.hpp"
#include "sluice/base/race_checked.hpp"
#include "sluice/sync/mutex.hpp"

namespace sluice {

namespace detail {

// A version and the number of parties that hold it.
//
// The count is split. While a version is current, `load` counts in the word beside its address
// (see version_word), so that finding the version and holding it is one step; releasing counts
// down here. Neither alone is the number of holders. `not_retired` represents the count that is
// still in the word: it keeps `holders` far from zero until the version is replaced and the two
// are added. From then on `holders` is exact, and the holder that brings it to zero destroys the
// version.
struct version_base {
  static constexpr std::int64_t not_retired = std::int64_t{1} << 62;

  explicit version_base(std::uint64_t n) noexcept : number(n) {}

  // Returns true for the last holder: the caller must destroy the version.
  [[nodiscard]] bool change_holders(std::int64_t by) noexcept {
    // acq_rel: each holder's use of the value happens before its destruction by the last holder.
    return holders.fetch_add(by, acq_rel) + by == 0;
  }

  atomic<std::int64_t> holders{not_retired};
  std::uint64_t number;
};

// The address of the current version and how often it was loaded.
//
// word_: bits 0..47 the address; bits 48..63 loads that are not yet in `holders`.
// From `TransferAt` loads on, a loader first moves the count to `holders`, so that the bits
// overflow only if 65,536 - TransferAt threads are between their add and that move.
template <std::uint64_t TransferAt = 32'768>
class version_word {
 public:
  explicit version_word(version_base* first) noexcept : word_(pack(first)) {}

  // Returns the current version, held.
  version_base* hold() noexcept {
    // acquire: pairs with the release in `replace`. In between there are only read-modify-writes,
    // which continue its release sequence.
    const auto before = word_.fetch_add(one, acquire);
    auto* const held = address(before);
    if (count(before) >= TransferAt - 1) [[unlikely]] transfer(*held, count(before));
    return held;
  }

  // One writer at a time. Returns the loads of the replaced version, to add to its holders.
  std::int64_t replace(version_base* next) noexcept {
    // release: pairs with the acquire in `hold`. acquire: pairs with the release in `transfer`, so
    // that the moved count reaches `holders` before the count returned here.
    return static_cast<std::int64_t>(count(word_.exchange(pack(next), acq_rel)));
  }

 private:
  static constexpr int address_bits = 48;
  static constexpr std::uint64_t one = std::uint64_t{1} << address_bits;
  static_assert(TransferAt > 0 && TransferAt <= 32'768);

  static std::uint64_t pack(version_base* version) noexcept {
    const auto bits = reinterpret_cast<std::uintptr_t>(version);
    check(bits < one, "sluice::snapshot", "addresses of at most 48 bits");
    return bits;
  }
  static version_base* address(std::uint64_t word) noexcept {
    return reinterpret_cast<version_base*>(word & (one - 1));
  }
  static std::uint64_t count(std::uint64_t word) noexcept { return word >> address_bits; }

  // The caller holds `held`, so its address cannot be reused for another version.
  void transfer(version_base& held, std::uint64_t seen_count) noexcept {
    check(seen_count < 0xffff, "sluice::snapshot", "fewer than 32,768 threads inside load");
    for (auto seen = word_.load(relaxed); address(seen) == &held && count(seen) >= TransferAt;) {
      const auto moved = static_cast<std::int64_t>(count(seen));
      // First add here, then remove from the word: a holder may be counted twice for a moment, but
      // is always counted. The results cannot be zero, because the caller itself holds.
      [[maybe_unused]] const bool up = held.change_holders(moved);
      // release: pairs with the acquire in `replace`.
      if (word_.compare_exchange_weak(seen, seen & (one - 1), release, relaxed)) return;
      [[maybe_unused]] const bool down = held.change_holders(-moved);
    }
  }

  atomic<std::uint64_t> word_;
};

}  // namespace detail

template <class T>
class snapshot {
  static_assert(std::is_object_v<T> && !std::is_const_v<T>, "a snapshot is of a plain value type");
  struct version_node;

 public:
  class view;

  explicit snapshot(T initial) : snapshot(new version_node(1, std::move(initial))) {}
  snapshot(const snapshot&) = delete;
  snapshot& operator=(const snapshot&) = delete;
  ~snapshot() { retire(current_, word_.replace(nullptr)); }

  [[nodiscard]] view load() const noexcept {
    return view(static_cast<version_node*>(word_.hold()));
  }

  // Makes `current`, a view of this snapshot or an empty one, a view of the newest version. Returns
  // false if it already was.
  bool refresh(view& current) const noexcept {
    // A load may already have seen a version whose number is not stored yet: hence not `==`.
    if (current && current.version() >= version()) return false;
    current = load();
    return true;
  }

  // The number of the newest version; a later load sees this or a newer one.
  std::uint64_t version() const noexcept {
    // acquire: pairs with the release in `replace`, so that the word is at least as new.
    return version_.load(acquire);
  }

  // Replaces the current value. Returns the number of the new version.
  std::uint64_t publish(T value) {
    auto next = std::make_unique<version_node>(0, std::move(value));
    std::unique_lock turn(writers_);
    return replace(std::move(next), turn);
  }

  // Copies the newest value, calls `change(T&)` on the copy, publishes it. Returns its number.
  template <class F>
  std::uint64_t update(F&& change) {
    std::unique_lock turn(writers_);
    auto next = std::make_unique<version_node>(0, std::as_const(current_->value));
    std::forward<F>(change)(next->value);
    return replace(std::move(next), turn);
  }

 private:
  struct version_node : detail::version_base {
    template <class U>
    version_node(std::uint64_t n, U&& from)
        : detail::version_base(n), value(std::forward<U>(from)) {}
    T value;
  };

  explicit snapshot(version_node* first) : word_(first), current_(first) {}

  std::uint64_t replace(std::unique_ptr<version_node> next, std::unique_lock<mutex>& turn) {
    auto* const old = current_;
    current_ = next.release();
    seam::writes_plain(current_);
    const auto number = current_->number = old->number + 1;
    const auto loads = word_.replace(current_);
    version_.store(number, release);  // after the word: see `version`
    turn.unlock();
    retire(old, loads);
    return number;
  }

  static void retire(version_node* old, std::int64_t loads) noexcept {
    drop(old, loads - detail::version_base::not_retired);
  }
  static void drop(version_node* held, std::int64_t by) noexcept {
    if (!held->change_holders(by)) return;
    seam::writes_plain(held);
    delete held;
  }

  mutable detail::version_word<> word_;
  // Not in the cache line of the word, which every load writes.
  alignas(64) atomic<std::uint64_t> version_{1};
  mutex writers_;
  version_node* current_;  // protected by writers_; the same address as in the word
};

// Keeps a version alive. Copying it is one atomic add. Empty if default-constructed or moved from;
// reading an empty one is a broken contract. A view belongs to one thread at a time.
template <class T>
class snapshot<T>::view {
 public:
  view() noexcept = default;
  view(const view& other) noexcept : held_(other.held_) {
    // Cannot be the last: `other` holds.
    if (held_ != nullptr) held_->holders.fetch_add(1, relaxed);
  }
  view(view&& other) noexcept : held_(std::exchange(other.held_, nullptr)) {}
  view& operator=(view other) noexcept {
    std::swap(held_, other.held_);
    return *this;
  }
  ~view() {
    if (held_ != nullptr) drop(held_, -1);
  }

  explicit operator bool() const noexcept { return held_ != nullptr; }
  const T& operator*() const noexcept { return get().value; }
  const T* operator->() const noexcept { return &get().value; }
  std::uint64_t version() const noexcept { return get().number; }

 private:
  friend class snapshot;
  explicit view(version_node* held) noexcept : held_(held) {}

  version_node& get() const noexcept {
    check(held_ != nullptr, "sluice::snapshot::view", "a view that holds a version");
    seam::reads_plain(held_);
    return *held_;
  }

  version_node* held_ = nullptr;
};

}  // namespace sluice
