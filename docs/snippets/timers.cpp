// The snippets of docs/reference/timers.md.
#include <chrono>
#include <cstdio>
#include <stop_token>

#include "sluice/base/clock.hpp"
#include "sluice/executor/manual_executor.hpp"
#include "sluice/executor/thread_pool.hpp"
#include "sluice/future/spawn.hpp"
#include "sluice/future/sync_wait.hpp"
#include "sluice/future/timers.hpp"
#include "sluice/sync/event.hpp"

using namespace std::chrono_literals;

namespace {

// Blinks until it is asked to stop.
sluice::task<int> blink(sluice::clock& clock) {
  int blinks = 0;
  while (co_await sluice::sleep_for(500ms, clock)) ++blinks;
  co_return blinks;
}

bool time_in_a_test() {
  sluice::manual_clock clock;
  sluice::manual_executor here;
  auto f = sluice::spawn(here, blink(clock));
  here.run_all();
  for (int half_seconds = 0; half_seconds < 20; ++half_seconds) {
    clock.advance(500ms);
    here.run_all();
  }
  f.cancel();
  here.run_all();
  return f.get() == 20;
}

bool a_future_that_is_a_time() {
  bool rang = false;
  auto ringing = sluice::after(1ms).then([&] { rang = true; });
  ringing.get();
  return rang;
}

bool again_and_again(sluice::executor& pool) {
  int calls = 0;
  sluice::event enough;
  auto ticking = sluice::every(1ms, pool, [&] {
    if (++calls == 3) enough.set();
  });
  enough.wait();
  ticking.cancel();
  ticking.get();  // no call is running
  return calls >= 3;
}

}  // namespace

int main() {
  sluice::thread_pool pool(1);
  const bool all = time_in_a_test() && a_future_that_is_a_time() && again_and_again(pool);
  std::puts(all ? "ok" : "failed");
  return all ? 0 : 1;
}
