#pragma once

// A table of a fixed size for what is known of objects, by address: it never allocates, and what
// does not fit is counted and left out.
//
// Shards, each behind a short lock, so that threads that lock different things do not meet. Inside
// a shard the search begins at a place that the address gives and goes around.

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "sluice/base/atomic.hpp"
#include "sluice/sync/spin_lock.hpp"

namespace sluice::inspect::detail {

// Entry has `const void* object`, null when it is free.
template <class Entry, std::size_t Shards, std::size_t Slots>
class fixed_table {
 public:
  class shard {
   public:
    // With `guard` held. The first entry for which `matches` is true, or null.
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
    // A free entry, now of this object; null: there is none.
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
    // When none is free: the one for which `may_go` is true that comes first by `less`, or null.
    template <class MayGo, class Less>
    Entry* first_to_go(MayGo&& may_go, Less&& less) noexcept {
      Entry* first = nullptr;
      for (auto& e : slots_) {
        if (e.object == nullptr || !may_go(e)) continue;
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

  // The shard of an object, locked for as long as the result lives.
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

  // An entry can be found again by its place, for as long as it is there.
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

  // All entries, one shard after the other; what that needs is allocated while none is locked.
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
