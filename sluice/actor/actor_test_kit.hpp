#pragma once

// Runs actors deterministically in a test: only when the test runs them, on its own thread, and in
// virtual time.
//
// Use it with `actor_probe` to check which messages actors send, and in which order. Prefer a real
// pool, and the same probe, for interactions of threads.
//
// Guarantees: `settle` runs all ready work, and the work that this makes ready, and returns its
// amount; if that does not end, it throws actor_test_error. `advance` moves time forward and
// settles at every timer on the way, so that each handler sees the time at which it was due.
// Failures of actors are recorded in `failures`, unless options::on_failure is set. The destructor
// stops the actors and runs them to their end.
// Only the test's thread may call it. It does not wait for an actor with a thread of its own.
//
//     actor_test_kit kit;
//     auto door = kit.spawn<door_actor>(5s);
//     actor_probe<opened, closed> hall(kit);
//     (void)door.send(open{hall.ref()});
//     hall.expect<opened>();
//     kit.advance(5s);
//     hall.expect<closed>();

#include <chrono>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "sluice/actor/actor_system.hpp"
#include "sluice/actor/actor_test_error.hpp"
#include "sluice/base/clock.hpp"
#include "sluice/base/unique_function.hpp"
#include "sluice/executor/manual_executor.hpp"
#include "sluice/sync/guarded.hpp"

namespace sluice {

class actor_test_kit {
 public:
  // A `settle` that runs more work than this is endless.
  static constexpr std::size_t settle_max = 1'000'000;

  // Replaces options::time by its own clock.
  explicit actor_test_kit(actor_system_options o = {});
  actor_test_kit(const actor_test_kit&) = delete;
  actor_test_kit& operator=(const actor_test_kit&) = delete;
  ~actor_test_kit();

  template <class A, class... Args>
  sluice::ref<A> spawn(Args&&... args) {
    return system_.spawn<A>(std::forward<Args>(args)...);
  }
  template <class A, class... Args>
  sluice::ref<A> spawn_with(const actor_options& o, Args&&... args) {
    return system_.spawn_with<A>(o, std::forward<Args>(args)...);
  }

  std::size_t settle();
  void advance(std::chrono::nanoseconds by);
  // Settles; then advances time from timer to timer, by at most `at_most`, until `is_true` holds.
  // Returns false if it never did.
  bool advance_until(std::chrono::nanoseconds at_most, unique_function<bool()> is_true);

  actor_system& system() noexcept { return system_; }
  manual_clock& time() noexcept { return time_; }
  manual_executor& runs_on() noexcept { return on_; }
  // Returns "name: exception text" for each failure, in order.
  std::vector<std::string> failures() const;

 private:
  actor_system_options prepared(actor_system_options o);

  guarded<std::vector<std::string>> failures_;
  manual_clock time_;
  manual_executor on_;
  actor_system system_;
};

}  // namespace sluice
