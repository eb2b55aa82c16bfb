// The snippets of docs/reference/flow.md: rate limits, circuit breakers, bulkheads, retries.
#include <chrono>
#include <cstdio>
#include <optional>
#include <stdexcept>
#include <string>

#include "sluice/flow/bulkhead.hpp"
#include "sluice/flow/circuit_breaker.hpp"
#include "sluice/flow/keyed_rate_limiter.hpp"
#include "sluice/flow/rate_limiter.hpp"
#include "sluice/flow/retry.hpp"
#include "sluice/future/sync_wait.hpp"
#include "sluice/future/task.hpp"

using namespace std::chrono_literals;

namespace {

struct answer {
  int code = 0;
  std::chrono::nanoseconds retry_after{};
};

bool not_faster_than() {
  sluice::manual_clock clock;
  sluice::rate_limiter calls({.rate = {100, 1s}, .burst = 20, .clock = &clock});
  const auto serve = [&]() -> answer {
    if (!calls.try_acquire()) return {429, calls.time_until()};
    return {200};
  };
  bool good = true;
  for (int i = 0; i < 20; ++i) good &= serve().code == 200;  // the burst
  const auto refused = serve();
  return good && refused.code == 429 && refused.retry_after == 10ms;
}

bool not_faster_than_per_client() {
  sluice::keyed_rate_limiter<std::string> per_client(
      {.rate = {10, 1s}, .burst = 2, .keys_max = 100'000});
  bool good = per_client.try_acquire("anna") && per_client.try_acquire("anna");
  good &= !per_client.try_acquire("anna");
  return good && per_client.try_acquire("bert");
}

bool a_permit_for_each_call() {
  sluice::circuit_breaker mailer({
      .name = "mailer",
      .consecutive_failures = 3,
      .failure_share = 0.5,  // of the last 100 calls
      .open_for = 2s,
  });
  const auto send = [&](bool works) -> answer {
    auto permit = mailer.try_enter();
    if (!permit) return {503, permit.retry_after()};
    if (!works) {
      permit.failure();
      return {502};
    }
    permit.success();
    return {200};
  };
  bool good = send(true).code == 200;
  for (int i = 0; i < 3; ++i) good &= send(false).code == 502;
  return good && send(true).code == 503;
}

bool at_most_so_many_at_once() {
  sluice::bulkhead printing({.active_max = 1, .waiting_max = 1});
  const auto print = [&]() -> answer {
    const auto place = printing.enter(1ms);
    if (!place) return {place.status() == sluice::status::full ? 503 : 504};
    return {200};  // the place is free again at the end of the scope
  };
  bool good = print().code == 200;
  const auto busy = printing.try_enter();
  good &= print().code == 504;
  return good;
}

int calls = 0;

int fetch() {
  if (++calls < 3) throw std::runtime_error("try again");
  return 7;
}

sluice::task<int> fetch_later() {
  co_return fetch();
}

bool again_when_it_failed() {
  sluice::retry_budget shared({.ratio = 0.1});
  const sluice::retry_policy policy{
      .attempts_max = 5,
      .first_delay = 1ms,
      .jitter = sluice::jitter::full,
      .budget = &shared,
  };
  const auto in_time = sluice::deadline::after(1min);
  const int page = sluice::retry(policy, fetch, in_time);
  calls = 0;
  const int later = sluice::sync_wait(sluice::async_retry(policy, [] { return fetch_later(); }));
  return page == 7 && later == 7;
}

bool all_of_them() {
  sluice::rate_limiter rate({.rate = {1'000, 1s}, .burst = 10});
  sluice::bulkhead places({.active_max = 8, .waiting_max = 100});
  sluice::circuit_breaker breaker({.consecutive_failures = 5});
  calls = 0;
  const int page = sluice::retry({.attempts_max = 5, .first_delay = 1ms}, [&] {
    rate.acquire();
    return places.call([&] { return breaker.call([] { return fetch(); }); });
  });
  return page == 7;
}

}  // namespace

int main() {
  const bool all = not_faster_than() && not_faster_than_per_client() && a_permit_for_each_call() &&
                   at_most_so_many_at_once() && again_when_it_failed() && all_of_them();
  std::puts(all ? "ok" : "failed");
  return all ? 0 : 1;
}
