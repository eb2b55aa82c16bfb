#pragma once

// An actor store in memory: for tests, and for programs whose entities may be lost at their end.
//
// Guarantees: those of actor_store.hpp, except durability. Every call is complete when it returns.
// Cost: a lock and a map.
// For tests: `fail_with` makes the following calls fail, until `fail_with(nullptr)`; `hold` delays
// calls, which take effect in their order at `release`.
//
//     memory_actor_store store;
//     keyed_actors<room> rooms(system, {.store = &store});

#include <cstddef>
#include <deque>
#include <exception>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "sluice/actor/actor_store.hpp"
#include "sluice/base/unique_function.hpp"
#include "sluice/sync/guarded.hpp"

namespace sluice {

namespace detail {
struct memory_states {
  std::map<std::pair<std::string, std::string>, std::string> states;
  std::exception_ptr failure;
  bool holds = false;
  std::deque<unique_function<void()>> held;
};
}  // namespace detail

class memory_actor_store final : public actor_store {
 public:
  future<std::optional<std::string>> load(std::string type, std::string key) override;
  future<void> save(std::string type, std::string key, std::string state) override;
  future<void> remove(std::string type, std::string key) override;

  std::size_t size() const;

  void fail_with(std::exception_ptr why);
  void hold();
  void release();
  std::size_t held() const;  // the number of delayed calls

 private:
  using inside = detail::memory_states;

  template <class T, class F>
  future<T> do_or_hold(F f);

  guarded<inside> inside_;
};

}  // namespace sluice
