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

// One a minute: whoever takes the n-th has waited for n - 1 minutes.
void over_time_no_more_than_the_rate() {
  rate_limiter calls({.rate = {1, 1min}, .burst = 1});
  const auto began = seam::now();
  atomic<int> served{0};
  const auto two = [&] {
    for (int i = 0; i < 2; ++i) {
      calls.acquire();
      const int nth = served.fetch_add(1) + 1;
      check(seam::now() - began >= (nth - 1) * 1min, "no more than burst and rate allow");
    }
  };
  {
    std::jthread other(two);
    two();
  }
  check(served.load() == 4 && calls.stats().granted == 4, "everybody to be served");
}

void a_wait_that_timed_out_took_no_token() {
  rate_limiter calls({.rate = {1, 1min}, .burst = 1, .initial = 0});
  std::array<status, 2> how{status::closed, status::closed};
  {
    std::jthread other([&] { how[0] = calls.try_acquire_for(90s); });
    how[1] = calls.try_acquire_for(90s);
  }
  int served = 0;
  for (const status s : how) {
    check(s == status::ok || s == status::timed_out, "ok or timed out");
    served += s ? 1 : 0;
  }
  check(calls.stats().granted == served, "a token for each that was served, and no more");
  check(calls.waiting() == 0, "nobody to be left in line");
}

void a_stop_takes_one_out_of_the_line_and_the_next_is_served() {
  rate_limiter calls({.rate = {1, 1h}, .burst = 2, .initial = 0});
  std::stop_source asks;
  status first = status::closed;
  std::jthread big([&] { first = calls.acquire(asks.get_token(), 2); });
  std::jthread small([&] { calls.acquire(); });
  asks.request_stop();
  big.join();
  small.join();
  check(first == status::ok || first == status::stopped, "ok or stopped");
  check(calls.stats().granted == (first ? 3 : 1), "tokens for those who were served");
}

void a_rate_that_is_raised_serves_who_waits() {
  rate_limiter calls({.rate = {0, 1s}, .burst = 1, .initial = 0});
  std::jthread other([&] { calls.set_rate({1, 1s}); });
  const auto began = seam::now();
  calls.acquire();
  check(seam::now() - began >= 1s, "a token to take its time");
}

// It is set to another time just when its own has come.
void an_alarm_that_is_set_while_it_fires() {
  const auto began = seam::now();
  rate_limiter calls({.rate = {1, 1min}, .burst = 1, .initial = 0});
  std::jthread other([&] { calls.acquire(); });
  check(calls.try_acquire_for(1min) == status::timed_out || seam::now() - began >= 1min,
        "no token before its time");
  calls.set_rate({1, 1h});
  calls.acquire();
  other.join();
  check(calls.waiting() == 0, "all to be served");
}

void a_burst_that_is_lowered_refuses_who_asked_for_more() {
  rate_limiter calls({.rate = {1, 1h}, .burst = 3, .initial = 0});
  std::jthread other([&] { calls.set({1, 1h}, 1); });
  const status how = calls.acquire(2);
  check(how == status::full || how == status::ok, "to be told, not to wait for ever");
  other.join();
}

task<status> acquires(rate_limiter& from) {
  const status how = co_await from.async_acquire();
  co_return how;
}

void who_awaits_a_token_gets_it_in_its_time() {
  rate_limiter calls({.rate = {2, 1h}, .burst = 1, .initial = 0});
  const auto began = seam::now();
  check(sync_wait(acquires(calls)) == status::ok, "a token");
  check(sync_wait(acquires(calls)) == status::ok, "a token");
  check(seam::now() - began >= 1h, "an hour for two");
}

// The last touch of whoever was woken late must not be of a limiter that is gone.
void it_may_go_when_the_last_was_served() {
  // On the heap, where a use after its end is found.
  const rate_limiter::options once_a_second{.rate = {1, 1s}, .burst = 1, .initial = 0};
  auto calls = std::make_unique<rate_limiter>(once_a_second);
  calls->acquire();
  calls = std::make_unique<rate_limiter>(once_a_second);
  (void)calls->try_acquire_for(1s);
}

void each_key_has_a_rate_of_its_own() {
  keyed_rate_limiter<std::string> per_client({.rate = {1, 1min}, .burst = 1, .keys_max = 2});
  const auto began = seam::now();
  const auto twice = [&](const std::string& key) {
    check(per_client.acquire(key) == status::ok && per_client.acquire(key) == status::ok, "served");
    check(seam::now() - began >= 1min, "the second to take its time");
  };
  std::jthread other([&] { twice("a"); });
  twice("b");
}

void two_of_one_key_share_its_bucket() {
  keyed_rate_limiter<int> per_client({.rate = {1, 1min}, .burst = 1, .keys_max = 1});
  bool theirs = false;
  std::jthread other([&] { theirs = per_client.try_acquire(7); });
  const bool mine = per_client.try_acquire(7);
  other.join();
  check(mine != theirs, "one token for the two of them");
}

void a_key_that_is_idle_makes_room_for_another() {
  keyed_rate_limiter<int> per_client({.rate = {1, 1min}, .burst = 1, .keys_max = 1});
  check(per_client.try_acquire(1), "its token");
  std::jthread other([&] { (void)per_client.try_acquire(2); });
  const status how = per_client.try_acquire_for(1, 2min);
  check(how == status::ok || how == status::timed_out, "to be served in time or told");
  other.join();
  std::this_thread::sleep_for(1h);
  check(per_client.try_acquire(3), "room for another when all are idle");
}

[[maybe_unused]] const bool added =
    add({.name = "rate_limiter: over time no more than the rate",
         .how = {.schedules = 5'000},
         .body = &over_time_no_more_than_the_rate}) &&
    add({.name = "rate_limiter: a wait that timed out took no token",
         .how = {.schedules = 6'000},
         .body = &a_wait_that_timed_out_took_no_token}) &&
    add({.name = "rate_limiter: one that is stopped lets the next be served",
         .how = {.schedules = 5'000},
         .body = &a_stop_takes_one_out_of_the_line_and_the_next_is_served}) &&
    add({.name = "rate_limiter: a rate that is raised serves who waits",
         .how = {.schedules = 3'500},
         .body = &a_rate_that_is_raised_serves_who_waits}) &&
    add({.name = "rate_limiter: its alarm is set while it fires",
         .how = {.schedules = 3'500},
         .body = &an_alarm_that_is_set_while_it_fires}) &&
    add({.name = "rate_limiter: a burst that is lowered refuses who wants more",
         .how = {.schedules = 3'500},
         .body = &a_burst_that_is_lowered_refuses_who_asked_for_more}) &&
    add({.name = "rate_limiter: who awaits a token gets it in its time",
         .how = {.schedules = 2'000},
         .body = &who_awaits_a_token_gets_it_in_its_time}) &&
    add({.name = "rate_limiter: it may go when the last was served",
         .how = {.schedules = 3'500},
         .body = &it_may_go_when_the_last_was_served}) &&
    add({.name = "keyed_rate_limiter: each key has a rate of its own",
         .how = {.schedules = 2'500},
         .body = &each_key_has_a_rate_of_its_own}) &&
    add({.name = "keyed_rate_limiter: two of one key share its bucket",
         .how = exhaustively(),
         .body = &two_of_one_key_share_its_bucket}) &&
    add({.name = "keyed_rate_limiter: an idle key makes room for another",
         .how = {.schedules = 2'500, .early_timeouts = false},
         .body = &a_key_that_is_idle_makes_room_for_another});

}  // namespace
}  // namespace sluice::sim
