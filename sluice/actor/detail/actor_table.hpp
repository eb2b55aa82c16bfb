#pragma once

// What an observer keeps for each actor, by its number. In several parts with a lock each, because
// many threads tell it things at a time.

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
  // f(Value&), which is made if it is not there.
  template <class F>
  auto with(actor_id who, F f) {
    return part_of(who).with([&](auto& all) { return f(all[who]); });
  }
  // f(Value&) if it is there.
  template <class F>
  bool with_existing(actor_id who, F f) {
    return part_of(who).with([&](auto& all) {
      const auto at = all.find(who);
      if (at == all.end()) return false;
      f(at->second);
      return true;
    });
  }
  // The same, and it is gone.
  template <class F>
  void take(actor_id who, F f) {
    part_of(who).with([&](auto& all) {
      const auto at = all.find(who);
      if (at == all.end()) return;
      f(at->second);
      all.erase(at);
    });
  }
  void erase(actor_id who) {
    take(who, [](Value&) {});
  }
  // f(id, Value&), part by part and in no order.
  template <class F>
  void for_each(F f) {
    for (auto& one : parts_) {
      one.with([&](auto& all) {
        for (auto& [who, value] : all) f(who, value);
      });
    }
  }
  void clear() {
    for (auto& one : parts_) one.with([](auto& all) { all.clear(); });
  }

 private:
  using part = guarded<std::unordered_map<actor_id, Value>>;
  static constexpr std::size_t parts = 16;

  part& part_of(actor_id who) noexcept { return parts_[who % parts]; }

  std::array<part, parts> parts_;
};

}  // namespace sluice::detail
