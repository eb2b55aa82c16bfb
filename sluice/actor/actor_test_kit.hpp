#pragma once

// Actors in a test that goes the same way every time: they run when the test says so, on its own
// thread, and time stands still until the test moves it.
//
// Use it with `actor_probe` for what actors do and in which order. Prefer a real pool, and the same
// probe, for what threads do to each other.
//
// Guarantees: `settle` runs all that is ready, and all that this makes ready, and returns how much
// that was; if there is no end to it, it throws actor_test_error. `advance` moves time on and
// settles at every timer on the way, so that each handler sees the time at which it was due. What
// actors fail with is kept in `failures`, unless the options say where it goes. At its destruction
// the actors are stopped and run to their end.
// The test's thread alone calls it. An actor with a thread of its own does not belong here: nothing
// waits for it.
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
  // More than that in one `settle` is no end.
  static constexpr std::size_t settle_max = 1'000'000;

  // options::time is the kit's.
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
  // Settles; then moves time on, from timer to timer and at most so far, until it is true.
  bool advance_until(std::chrono::nanoseconds at_most, unique_function<bool()> is_true);

  actor_system& system() noexcept { return system_; }
  manual_clock& time() noexcept { return time_; }
  manual_executor& runs_on() noexcept { return on_; }
  // "name: what it threw", in order.
  std::vector<std::string> failures() const;

 private:
  actor_system_options prepared(actor_system_options o);

  guarded<std::vector<std::string>> failures_;
  manual_clock time_;
  manual_executor on_;
  actor_system system_;
};

}  // namespace sluice
