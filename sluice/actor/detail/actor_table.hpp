#pragma once

// Per-actor data of an observer, by actor id. Sharded with a lock per shard: many threads report at
// a time.

#include <array>
#include <cstddef>
#include <unordered_map>
#include <utility>

#include "sluice/actor/actor_options.hpp"
#include "sluice/sync/guarded.hpp"

namespace sluice::detail {

template <class Value>
class actor_table {
 public:
  // Calls f(Value&) under the shard's lock; creates a missing value.
  template <class F>
  auto with(actor_id id, F f) {
    return shard_of(id).with([&](auto& all) { return f(all[id]); });
  }
  // Calls f(Value&) if there is a value. Returns whether there is one.
  template <class F>
  bool with_existing(actor_id id, F f) {
    return shard_of(id).with([&](auto& all) {
      const auto at = all.find(id);
      if (at == all.end()) return false;
      f(at->second);
      return true;
    });
  }
  // Calls f(Value&) if there is a value, and erases it.
  template <class F>
  void take(actor_id id, F f) {
    shard_of(id).with([&](auto& all) {
      const auto at = all.find(id);
      if (at == all.end()) return;
      f(at->second);
      all.erase(at);
    });
  }
  void erase(actor_id id) {
    take(id, [](Value&) {});
  }
  // Calls f(id, Value&) for every actor, shard by shard, in no order.
  template <class F>
  void for_each(F f) {
    for (auto& each : shards_) {
      each.with([&](auto& all) {
        for (auto& [id, value] : all) f(id, value);
      });
    }
  }
  void clear() {
    for (auto& each : shards_) each.with([](auto& all) { all.clear(); });
  }

 private:
  using shard = guarded<std::unordered_map<actor_id, Value>>;
  static constexpr std::size_t shard_count = 16;

  shard& shard_of(actor_id id) noexcept { return shards_[id % shard_count]; }

  std::array<shard, shard_count> shards_;
};

}  // namespace sluice::detail
