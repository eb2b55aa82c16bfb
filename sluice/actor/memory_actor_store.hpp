#pragma once

// A store of actors' states that is gone with the process: for tests, and for programs whose
// entities may be forgotten at their end.
//
// Guarantees: those of actor_store.hpp, but that nothing outlives a crash. Every call is done when
// it returns. Cost: a lock and a map.
// For tests: `fail_with` makes the calls that follow fail, until `fail_with(nullptr)`; `hold` keeps
// calls from being done, in their order, until `let_go`.
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
  void let_go();
  std::size_t held() const;  // calls that wait for let_go

 private:
  using inside = detail::memory_states;

  template <class T, class F>
  future<T> do_or_hold(F f);

  guarded<inside> inside_;
};

}  // namespace sluice
