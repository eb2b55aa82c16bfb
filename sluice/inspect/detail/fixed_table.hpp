#pragma once

// A table of fixed size for records of objects, by address: never allocates. The caller counts the
// records that do not fit.
//
// Divided into shards, each with a short lock, so that threads that use different objects do not
// contend. Within a shard, linear probing from a slot that the address selects.

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "sluice/base/atomic.hpp"
#include "sluice/sync/spin_lock.hpp"

namespace sluice::inspect::detail {

// Entry has `const void* object`, null in a free entry.
template <class Entry, std::size_t Shards, std::size_t Slots>
class fixed_table {
 public:
  class shard {
   public:
    // Must hold `guard`, like all below. Returns the first entry that `matches`, or null.
    template <class Matches>
    Entry* find(const void* object, Matches&& matches) noexcept {
      if (count_ == 0) return nullptr;
      std::size_t seen = 0;
      for (std::size_t step = 0; step < Slots && seen < count_; ++step) {
        Entry& e = at(object, step);
        if (e.object == nullptr) continue;
        ++seen;
        if (e.object == object && matches(e)) return &e;
      }
      return nullptr;
    }
    Entry* find(const void* object) noexcept {
      return find(object, [](const Entry&) { return true; });
    }
    // Returns a new entry for the object, or null if the shard is full.
    Entry* add(const void* object) noexcept {
      if (count_ == Slots) return nullptr;
      for (std::size_t step = 0;; ++step) {
        Entry& e = at(object, step);
        if (e.object != nullptr) continue;
        e = Entry{};
        e.object = object;
        ++count_;
        return &e;
      }
    }
    // Returns the least entry by `less` for which `may_evict` is true, or null.
    template <class MayEvict, class Less>
    Entry* victim(MayEvict&& may_evict, Less&& less) noexcept {
      Entry* first = nullptr;
      for (auto& e : slots_) {
        if (e.object == nullptr || !may_evict(e)) continue;
        if (first == nullptr || less(e, *first)) first = &e;
      }
      return first;
    }
    bool is_full() const noexcept { return count_ == Slots; }
    std::size_t slot_of(const Entry& e) const noexcept {
      return static_cast<std::size_t>(&e - slots_.data());
    }
    Entry& in_slot(std::size_t slot) noexcept { return slots_[slot]; }
    void erase(Entry& e) noexcept {
      e.object = nullptr;
      --count_;
    }
    template <class F>
    void for_each(F&& f) {
      if (count_ == 0) return;
      for (auto& e : slots_) {
        if (e.object != nullptr) f(e);
      }
    }
    void clear() noexcept {
      slots_.fill(Entry{});
      count_ = 0;
    }

    spin_lock guard;

   private:
    Entry& at(const void* object, std::size_t step) noexcept {
      return slots_[((reinterpret_cast<std::uintptr_t>(object) >> 10) + step) % Slots];
    }

    std::size_t count_ = 0;
    std::array<Entry, Slots> slots_{};
  };

  // Returns the shard of the object, locked for the life of the result.
  struct locked {
    std::unique_lock<spin_lock> hold;
    shard* of;
    shard* operator->() const noexcept { return of; }
  };
  locked of(const void* object) noexcept {
    const auto address = reinterpret_cast<std::uintptr_t>(object);
    shard& s = shards_[((address >> 4) ^ (address >> 9)) % Shards];
    return {std::unique_lock(s.guard), &s};
  }

  // The place of an entry identifies it until it is erased.
  static constexpr std::size_t places = Shards * Slots;
  std::size_t place_of(const locked& in, const Entry& e) const noexcept {
    const auto before = static_cast<const padded_shard*>(in.of) - shards_.data();
    return static_cast<std::size_t>(before) * Slots + in.of->slot_of(e);
  }
  locked with(std::size_t place) noexcept {
    shard& s = shards_[place / Slots];
    return {std::unique_lock(s.guard), &s};
  }
  static Entry& entry_at(const locked& in, std::size_t place) noexcept {
    return in.of->in_slot(place % Slots);
  }

  // Returns all entries. Locks one shard at a time, and allocates while none is locked.
  std::vector<Entry> copies() {
    std::vector<Entry> all;
    for (auto& s : shards_) {
      if (all.capacity() - all.size() < Slots) all.reserve(2 * all.capacity() + Slots);
      const std::lock_guard hold(s.guard);
      s.for_each([&](const Entry& e) { all.push_back(e); });
    }
    return all;
  }
  void clear() noexcept {
    for (auto& s : shards_) {
      const std::lock_guard hold(s.guard);
      s.clear();
    }
  }

 private:
  struct alignas(64) padded_shard : shard {};
  std::array<padded_shard, Shards> shards_{};
};

}  // namespace sluice::inspect::detail
