#include "sluice/flow/rate_limiter.hpp"

#include <array>
#include <chrono>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>

#include "sluice/flow/keyed_rate_limiter.hpp"
#include "sluice/future/sync_wait.hpp"
#include "sluice/future/task.hpp"
#include "sluice/sim/testing/scenario.hpp"

namespace sluice::sim {
namespace {

using namespace std::chrono_literals;

// One token per minute: the waiter for the n-th token has waited n - 1 minutes.
void grants_do_not_exceed_the_rate() {
  rate_limiter calls({.rate = {1, 1min}, .burst = 1});
  const auto began = seam::now();
  atomic<int> served{0};
  const auto two = [&] {
    for (int i = 0; i < 2; ++i) {
      calls.acquire();
      const int nth = served.fetch_add(1) + 1;
      check(seam::now() - began >= (nth - 1) * 1min, "at most the burst and the rate");
    }
  };
  {
    std::jthread other(two);
    two();
  }
  check(served.load() == 4 && calls.stats().granted == 4, "all to be served");
}

void a_wait_that_timed_out_took_no_token() {
  rate_limiter calls({.rate = {1, 1min}, .burst = 1, .initial = 0});
  std::array<status, 2> outcomes{status::closed, status::closed};
  {
    std::jthread other([&] { outcomes[0] = calls.acquire(90s); });
    outcomes[1] = calls.acquire(90s);
  }
  int served = 0;
  for (const status s : outcomes) {
    check(s == status::ok || s == status::timed_out, "ok or timed out");
    served += s ? 1 : 0;
  }
  check(calls.stats().granted == served, "exactly one token per grant");
  check(calls.waiting() == 0, "no waiters");
}

void a_stop_of_a_waiter_serves_the_next_one() {
  rate_limiter calls({.rate = {1, 1h}, .burst = 2, .initial = 0});
  std::stop_source asks;
  status first = status::closed;
  std::jthread big([&] { first = calls.acquire(2, asks.get_token()); });
  std::jthread small([&] { calls.acquire(); });
  asks.request_stop();
  big.join();
  small.join();
  check(first == status::ok || first == status::stopped, "ok or stopped");
  check(calls.stats().granted == (first ? 3 : 1), "tokens only for granted calls");
}

void a_higher_rate_serves_a_waiter() {
  rate_limiter calls({.rate = {0, 1s}, .burst = 1, .initial = 0});
  std::jthread other([&] { calls.set_rate({1, 1s}); });
  const auto began = seam::now();
  calls.acquire();
  check(seam::now() - began >= 1s, "a token after its interval");
}

// The alarm is set to another time while it fires.
void an_alarm_that_is_set_while_it_fires() {
  const auto began = seam::now();
  rate_limiter calls({.rate = {1, 1min}, .burst = 1, .initial = 0});
  std::jthread other([&] { calls.acquire(); });
  check(calls.acquire(1min) == status::timed_out || seam::now() - began >= 1min,
        "no token before it is due");
  calls.set_rate({1, 1h});
  calls.acquire();
  other.join();
  check(calls.waiting() == 0, "all to be served");
}

void a_lower_burst_rejects_waiters_for_more() {
  rate_limiter calls({.rate = {1, 1h}, .burst = 3, .initial = 0});
  std::jthread other([&] { calls.set({1, 1h}, 1); });
  const status outcome = calls.acquire(2);
  check(outcome == status::full || outcome == status::ok, "a rejection instead of an endless wait");
  other.join();
}

task<status> acquires(rate_limiter& from) {
  const status outcome = co_await from.async_acquire();
  co_return outcome;
}

void an_awaited_token_is_granted_when_due() {
  rate_limiter calls({.rate = {2, 1h}, .burst = 1, .initial = 0});
  const auto began = seam::now();
  check(sync_wait(acquires(calls)) == status::ok, "a token");
  check(sync_wait(acquires(calls)) == status::ok, "a token");
  check(seam::now() - began >= 1h, "an hour for two tokens");
}

// A waiter that runs late must not access a destroyed limiter.
void it_may_be_destroyed_after_the_last_grant() {
  // On the heap, where a use after free is detected.
  const rate_limiter::options once_a_second{.rate = {1, 1s}, .burst = 1, .initial = 0};
  auto calls = std::make_unique<rate_limiter>(once_a_second);
  calls->acquire();
  calls = std::make_unique<rate_limiter>(once_a_second);
  (void)calls->acquire(1s);
}

void each_key_has_a_rate_of_its_own() {
  keyed_rate_limiter<std::string> per_client({.rate = {1, 1min}, .burst = 1, .keys_max = 2});
  const auto began = seam::now();
  const auto twice = [&](const std::string& key) {
    check(per_client.acquire(key) == status::ok && per_client.acquire(key) == status::ok, "served");
    check(seam::now() - began >= 1min, "the second after its interval");
  };
  std::jthread other([&] { twice("a"); });
  twice("b");
}

void two_waiters_of_one_key_share_its_bucket() {
  keyed_rate_limiter<int> per_client({.rate = {1, 1min}, .burst = 1, .keys_max = 1});
  bool theirs = false;
  std::jthread other([&] { theirs = per_client.try_acquire(7); });
  const bool ours = per_client.try_acquire(7);
  other.join();
  check(ours != theirs, "one token for the two of them");
}

void an_idle_key_is_replaced_by_another() {
  keyed_rate_limiter<int> per_client({.rate = {1, 1min}, .burst = 1, .keys_max = 1});
  check(per_client.try_acquire(1), "its token");
  std::jthread other([&] { (void)per_client.try_acquire(2); });
  const status outcome = per_client.acquire(1, 1, 2min);
  check(outcome == status::ok || outcome == status::timed_out, "a grant or a time-out");
  other.join();
  std::this_thread::sleep_for(1h);
  check(per_client.try_acquire(3), "capacity for another key if all are idle");
}

[[maybe_unused]] const bool added =
    add({.name = "rate_limiter: grants do not exceed the rate",
         .options = {.schedules = 5'000},
         .body = &grants_do_not_exceed_the_rate}) &&
    add({.name = "rate_limiter: a wait that timed out took no token",
         .options = {.schedules = 6'000},
         .body = &a_wait_that_timed_out_took_no_token}) &&
    add({.name = "rate_limiter: a stop of a waiter serves the next one",
         .options = {.schedules = 5'000},
         .body = &a_stop_of_a_waiter_serves_the_next_one}) &&
    add({.name = "rate_limiter: a higher rate serves a waiter",
         .options = {.schedules = 3'500},
         .body = &a_higher_rate_serves_a_waiter}) &&
    add({.name = "rate_limiter: its alarm is set while it fires",
         .options = {.schedules = 3'500},
         .body = &an_alarm_that_is_set_while_it_fires}) &&
    add({.name = "rate_limiter: a lower burst rejects waiters for more",
         .options = {.schedules = 3'500},
         .body = &a_lower_burst_rejects_waiters_for_more}) &&
    add({.name = "rate_limiter: an awaited token is granted when due",
         .options = {.schedules = 2'000},
         .body = &an_awaited_token_is_granted_when_due}) &&
    add({.name = "rate_limiter: it may be destroyed after the last grant",
         .options = {.schedules = 3'500},
         .body = &it_may_be_destroyed_after_the_last_grant}) &&
    add({.name = "keyed_rate_limiter: each key has a rate of its own",
         .options = {.schedules = 2'500},
         .body = &each_key_has_a_rate_of_its_own}) &&
    add({.name = "keyed_rate_limiter: two waiters of one key share its bucket",
         .options = exhaustively(),
         .body = &two_waiters_of_one_key_share_its_bucket}) &&
    add({.name = "keyed_rate_limiter: an idle key is replaced by another",
         .options = {.schedules = 2'500, .early_timeouts = false},
         .body = &an_idle_key_is_replaced_by_another});

}  // namespace
}  // namespace sluice::sim
