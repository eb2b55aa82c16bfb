// Delivers webhooks to a server that is sometimes down. A rate limit and a bulkhead bound the calls
// per second and the concurrent calls, failed calls are retried, and a circuit breaker stops the
// calls while the server is down. Time is a manual clock's: half a minute passes at once.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "sluice/base/clock.hpp"
#include "sluice/base/random.hpp"
#include "sluice/executor/manual_executor.hpp"
#include "sluice/flow/bulkhead.hpp"
#include "sluice/flow/circuit_breaker.hpp"
#include "sluice/flow/rate_limiter.hpp"
#include "sluice/flow/retry.hpp"
#include "sluice/future/future.hpp"
#include "sluice/future/spawn.hpp"
#include "sluice/future/task.hpp"
#include "sluice/future/timers.hpp"

using namespace std::chrono_literals;

namespace {

constexpr int hooks = 200;

struct server_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Answers after 50 ms; one in ten fails; from second 2 to second 6 it is down.
class flaky_server {
 public:
  explicit flaky_server(sluice::manual_clock& clock) : clock_(clock), start_(clock.now()) {}

  sluice::task<> post(int hook) {
    ++calls;
    most_at_once = std::max(most_at_once, ++at_once_);
    (void)co_await sluice::sleep_for(50ms, clock_);
    --at_once_;
    const auto now = clock_.now() - start_;
    if (now >= 2s && now < 6s) throw server_error("503 down for maintenance");
    if (dice_.below(10) == 0) throw server_error("500 try again");
    received.push_back(hook);
  }

  int calls = 0;
  int most_at_once = 0;
  std::vector<int> received;

 private:
  sluice::manual_clock& clock_;
  const sluice::time_point start_;
  sluice::random dice_{2024};
  int at_once_ = 0;
};

// The limits between the application and the server.
class sender {
 public:
  sender(flaky_server& server, sluice::manual_clock& clock)
      : server_(server),
        rate_({.rate = {40, 1s}, .burst = 10, .clock = &clock}),
        breaker_({.name = "server",
                  .consecutive_failures = 5,
                  .open_for = 500ms,
                  .on_change =
                      [&clock, start = clock.now()](const sluice::circuit_change& c) {
                        const auto now = std::chrono::duration<double>(clock.now() - start);
                        std::printf("  %5.2f s  the circuit is %s\n", now.count(),
                                    std::string(to_string(c.new_state)).c_str());
                      },
                  .clock = &clock}) {
    policy_.clock = &clock;
    policy_.seed = 7;
  }

  // One hook. Each attempt waits for its turn, then for a place, and then asks the breaker.
  sluice::task<> deliver(int hook) {
    return sluice::async_retry(policy_, [this, hook] { return attempt(hook); });
  }

  sluice::circuit_stats circuit() const { return breaker_.stats(); }

 private:
  sluice::task<> attempt(int hook) {
    (void)co_await rate_.async_acquire();
    co_await places_.call(
        [this, hook] { return breaker_.call([this, hook] { return server_.post(hook); }); });
  }

  flaky_server& server_;
  sluice::rate_limiter rate_;
  sluice::bulkhead places_{{.active_max = 8, .waiting_max = hooks}};
  sluice::circuit_breaker breaker_;
  sluice::retry_policy policy_{.attempts_max = 12, .first_delay = 200ms, .delay_max = 5s};
};

}  // namespace

int main() {
  sluice::manual_clock clock;
  sluice::manual_executor here({.capacity = hooks});
  flaky_server server(clock);
  sender out(server, clock);

  std::printf("%d webhooks at 40 a second; the server is down from second 2 to 6:\n", hooks);
  std::vector<sluice::future<void>> all;
  for (int hook = 0; hook < hooks; ++hook) {
    all.push_back(sluice::spawn(here, out.deliver(hook)));
  }
  for (int step = 0; step < 60'000 && server.received.size() < hooks; ++step) {
    here.run_all();
    clock.advance(1ms);
  }
  here.run_all();

  int failed = 0;
  for (auto& each : all) {
    try {
      each.get();
    } catch (const sluice::retry_error& e) {
      std::printf("  given up: %s\n", e.what());
      ++failed;
    }
  }
  const auto circuit = out.circuit();
  std::printf("  delivered %zu, given up %d, calls %d, refused while open %llu, at once %d\n",
              server.received.size(), failed, server.calls,
              static_cast<unsigned long long>(circuit.refused), server.most_at_once);
  const bool all_there = server.received.size() == hooks && failed == 0;
  const bool spared = circuit.refused > 0 && server.calls < 2 * hooks;
  return all_there && spared && server.most_at_once <= 8 ? 0 : 1;
}
