#include <chrono>
#include <memory>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

#include "sluice/base/race_checked.hpp"
#include "sluice/executor/thread_pool.hpp"
#include "sluice/flow/batcher.hpp"
#include "sluice/flow/bulkhead.hpp"
#include "sluice/flow/circuit_breaker.hpp"
#include "sluice/flow/fan_in.hpp"
#include "sluice/flow/fan_out.hpp"
#include "sluice/flow/retry.hpp"
#include "sluice/flow/retry_budget.hpp"
#include "sluice/future/spawn.hpp"
#include "sluice/future/sync_wait.hpp"
#include "sluice/queue/bounded_queue.hpp"
#include "sluice/sim/testing/scenario.hpp"

namespace sluice::sim {
namespace {

using namespace std::chrono_literals;

// ---- circuit_breaker

void consecutive_failures_open_it_for_the_configured_time() {
  circuit_breaker mailer({.consecutive_failures = 2, .open_for = 1h, .open_for_max = 1h});
  const auto fail = [&] {
    if (auto p = mailer.try_enter()) p.failure();
  };
  {
    std::jthread other(fail);
    fail();
  }
  check(mailer.state() == circuit_state::open && mailer.stats().trips == 1, "to be open, once");
  const auto refused = mailer.try_enter();
  check(!refused && refused.retry_after() > 0s, "the time until a retry");
  std::this_thread::sleep_for(1h);
  auto probe = mailer.try_enter();
  check(static_cast<bool>(probe), "a probe after an hour");
  probe.success();
  check(mailer.state() == circuit_state::closed, "a good probe to close it");
}

void one_probe_at_a_time_is_admitted() {
  std::vector<circuit_change> changes;
  circuit_breaker mailer({.consecutive_failures = 1,
                          .open_for = 1min,
                          .on_change = [&](const circuit_change& c) { changes.push_back(c); }});
  if (auto p = mailer.try_enter()) p.failure();
  std::this_thread::sleep_for(1min);
  bool theirs = false;
  std::optional<circuit_breaker::permit> kept;
  std::jthread other([&] {
    auto p = mailer.try_enter();
    theirs = static_cast<bool>(p);
    if (theirs) kept.emplace(std::move(p));
  });
  auto ours = mailer.try_enter();
  other.join();
  check(static_cast<bool>(ours) != theirs, "one of the two to be the probe");
  (ours ? ours : *kept).success();
  kept.reset();
  check(mailer.state() == circuit_state::closed, "it to be closed");
  check(changes.size() == 3 && changes[0].new_state == circuit_state::open &&
            changes[1].new_state == circuit_state::half_open &&
            changes[2].new_state == circuit_state::closed,
        "every change to be reported in order");
}

void a_late_result_changes_nothing() {
  circuit_breaker mailer({.consecutive_failures = 1, .open_for = 1h, .open_for_max = 1h});
  auto late = mailer.try_enter();
  std::jthread other([&] {
    if (auto p = mailer.try_enter()) p.failure();
  });
  late.success();
  other.join();
  const auto s = mailer.stats();
  check(s.successes == 1 && s.failures == 1 && s.trips == 1, "both to be counted");
  check(mailer.state() == circuit_state::open, "the failure to have opened it");
}

// ---- bulkhead

void it_never_exceeds_its_capacity() {
  bulkhead printing({.active_max = 1, .waiting_max = 2});
  race_checked<int> inside{0};
  const auto print = [&] {
    auto place = printing.enter();
    check(static_cast<bool>(place), "capacity in the queue for all of them");
    inside.change() += 1;
  };
  {
    std::jthread a(print);
    std::jthread b(print);
    print();
  }
  check(inside.read() == 3 && printing.stats().active_most == 1, "one caller at a time");
}

void a_timed_out_waiter_holds_no_place() {
  bulkhead printing({.active_max = 1, .waiting_max = 1});
  std::optional<bulkhead::permit> inside(std::move(*printing.try_enter()));
  std::jthread leaves([&] { inside.reset(); });
  {
    const auto place = printing.enter(1s);
    check(place || place.status() == status::timed_out, "a place or timed out");
  }
  leaves.join();
  check(printing.active() == 0 && printing.waiting() == 0, "no holders and no waiters");
  check(static_cast<bool>(printing.try_enter()), "the place to be free");
}

void a_full_queue_is_reported_immediately() {
  bulkhead printing({.active_max = 1, .waiting_max = 0});
  int entered = 0;
  int refused = 0;
  const auto print = [&](int& in, int& out) {
    auto place = printing.enter();
    ++(place ? in : out);
    if (!place) check(place.status() == status::full, "status full");
  };
  int their_entered = 0;
  int their_refused = 0;
  std::jthread other([&] { print(their_entered, their_refused); });
  print(entered, refused);
  other.join();
  const auto s = printing.stats();
  check(s.entered == static_cast<std::uint64_t>(entered + their_entered) &&
            s.refused == static_cast<std::uint64_t>(refused + their_refused),
        "the counts to add up");
}

void a_task_gets_the_place_that_a_thread_releases() {
  thread_pool pool({.core = 1, .capacity = 2, .time_every = 0});
  bulkhead printing({.active_max = 1, .waiting_max = 1});
  std::optional<bulkhead::permit> inside(std::move(*printing.try_enter()));
  auto page = spawn(pool, printing.call([]() -> task<int> { co_return 3; }));
  inside.reset();
  check(page.get() == 3, "its result");
  check(printing.active() == 0, "no holders");
}

// ---- retry

void it_retries_after_growing_pauses() {
  int attempts = 0;
  const auto began = seam::now();
  const int got = retry(
      {.attempts_max = 4, .first_delay = 10min, .delay_max = 1h, .jitter = jitter::none}, [&] {
        if (++attempts < 4) throw std::runtime_error("no");
        return 5;
      });
  check(got == 5 && attempts == 4, "the last one to succeed");
  check(seam::now() - began >= 70min, "pauses of ten, twenty and forty minutes");
}

void a_stop_ends_the_wait_between_attempts() {
  std::stop_source asks;
  std::jthread other([&] { asks.request_stop(); });
  std::uint32_t attempts = 0;
  try {
    retry(
        {.attempts_max = 2, .first_delay = 1h, .delay_max = 1h, .jitter = jitter::none},
        [&] {
          ++attempts;
          throw std::runtime_error("no");
        },
        wait_limits(asks.get_token()));
    check(false, "an error");
  } catch (const retry_error& e) {
    check(e.attempts() == attempts && attempts <= 2, "the number of attempts");
    check(e.why() == retry_error::reason::stopped || attempts == 2, "the reason of the end");
  }
}

task<int> tries(std::uint32_t& attempts, retry_policy policy, wait_limits limits) {
  auto trying = async_retry(
      std::move(policy),
      [&attempts] {
        if (++attempts < 3) throw std::runtime_error("no");
        return 5;
      },
      std::move(limits));
  co_return co_await std::move(trying);
}

void a_task_retries_until_it_is_stopped() {
  const retry_policy policy{
      .attempts_max = 3, .first_delay = 10min, .delay_max = 1h, .jitter = jitter::none};
  std::stop_source asks;
  std::jthread other([&] { asks.request_stop(); });
  const auto began = seam::now();
  std::uint32_t attempts = 0;
  try {
    check(sync_wait(tries(attempts, policy, wait_limits(asks.get_token()))) == 5, "its result");
    check(attempts == 3 && seam::now() - began >= 30min, "pauses of ten and twenty minutes");
  } catch (const retry_error& e) {
    check(e.why() == retry_error::reason::stopped && e.attempts() == attempts,
          "the reason of the end");
  }
}

void a_budget_is_shared_by_all() {
  retry_budget shared_budget({.ratio = 0, .reserve = 1, .saved_max = 1});
  bool theirs = false;
  std::jthread other([&] {
    shared_budget.call();
    theirs = shared_budget.try_retry();
  });
  shared_budget.call();
  const bool ours = shared_budget.try_retry();
  other.join();
  check(ours != theirs && shared_budget.refused() == 1, "one retry for the two of them");
}

// ---- batcher

void every_item_is_delivered_once_and_in_order() {
  batcher<int> rows({.size = 2, .wait = 1s, .capacity = 2});
  std::jthread maker([&] {
    for (const int i : {1, 2, 3}) check(rows.push(i) == status::ok, "an open batcher to wait");
    rows.close();
  });
  int last = 0;
  while (auto batch = rows.take()) {
    check(!batch->empty() && batch->size() <= 2, "one or two at a time");
    for (const int i : *batch) {
      check(i == last + 1, "the order of the pushes");
      last = i;
    }
  }
  check(last == 3, "all of them");
}

void a_group_is_due_when_its_first_item_has_waited() {
  batcher<int> rows({.size = 10, .wait = 1min, .capacity = 10});
  const auto began = seam::now();
  std::jthread maker([&] { check(rows.push(1) == status::ok, "capacity"); });
  const auto batch = rows.take();
  check(batch && batch->size() == 1 && seam::now() - began >= 1min, "a wait of a minute");
}

void a_take_that_timed_out_took_nothing() {
  batcher<int> rows({.size = 1, .wait = 1min, .capacity = 2});
  std::jthread maker([&] { check(rows.push(1) == status::ok, "capacity"); });
  const auto soon = rows.take(1s);
  check(soon || soon.status() == status::timed_out, "a batch or timed out");
  maker.join();
  check(static_cast<bool>(rows.try_take()) == !soon, "the item once");
}

void its_destructor_waits_for_the_handler() {
  race_checked<int> sum{0};
  thread_pool pool({.core = 2, .capacity = 2, .time_every = 0});
  {
    // On the heap, where a use after free is detected.
    const auto owned =
        std::make_unique<batcher<int>>(batcher<int>::options{.size = 2, .wait = 1s, .capacity = 2},
                                       pool, [&](std::vector<int> batch) {
                                         for (const int i : batch) sum.change() += i;
                                       });
    auto& rows = *owned;
    std::jthread other([&] { check(rows.push(1) == status::ok, "an open batcher to wait"); });
    for (const int i : {2, 3}) check(rows.push(i) == status::ok, "an open batcher to wait");
  }
  check(sum.read() == 6, "every item, one batch at a time");
}

void stop_returns_exactly_the_unhandled_items() {
  atomic<int> handled{0};
  int accepted = 0;
  std::size_t left = 0;
  thread_pool pool({.core = 1, .capacity = 2, .time_every = 0});
  {
    const auto owned =
        std::make_unique<batcher<int>>(batcher<int>::options{.size = 2, .wait = 1s, .capacity = 4},
                                       pool, [&](std::vector<int> batch) {
                                         handled.fetch_add(static_cast<int>(batch.size()), relaxed);
                                       });
    auto& rows = *owned;
    std::jthread other([&] {
      for (const int i : {1, 2, 3}) {
        if (rows.push(i)) ++accepted;
      }
    });
    left = rows.stop().size();
  }
  check(handled.load() + static_cast<int>(left) == accepted, "every item exactly once");
}

// ---- fan in and out

void items_of_several_sources_reach_one_target() {
  bounded_queue<int> north(1);
  bounded_queue<int> south(1);
  bounded_queue<int> all(1);
  thread_pool pool({.core = 1, .capacity = 2, .time_every = 0});
  auto merging = spawn(pool, fan_in(std::vector{&north, &south}, &all));
  std::jthread maker([&] {
    check(north.push(1) == status::ok && south.push(2) == status::ok, "open queues");
    north.close();
    south.close();
  });
  int sum = 0;
  while (auto item = all.pop()) sum += *item;
  check(sum == 3 && merging.get() == flow_ended::source_ended, "both items, and the end");
}

void each_item_reaches_one_of_several_targets() {
  bounded_queue<int> from(1);
  bounded_queue<int> left(1);
  bounded_queue<int> right(1);
  thread_pool pool({.core = 1, .capacity = 2, .time_every = 0});
  auto sharing = spawn(pool, distribute(&from, std::vector{&left, &right}));
  int theirs = 0;
  std::jthread other([&] {
    while (auto item = right.pop()) theirs += *item;
  });
  std::jthread maker([&] {
    for (const int i : {1, 2}) check(from.push(i) == status::ok, "an open queue");
    from.close();
  });
  int ours = 0;
  while (auto item = left.pop()) ours += *item;
  other.join();
  check(ours + theirs == 3 && sharing.get() == flow_ended::source_ended, "each item once");
}

void every_item_reaches_all_targets_until_they_close() {
  bounded_queue<int> from(1);
  bounded_queue<int> screen(1);
  bounded_queue<int> archive(1);
  thread_pool pool({.core = 1, .capacity = 2, .time_every = 0});
  auto copying = spawn(pool, broadcast(&from, std::vector{&screen, &archive}));
  std::jthread closes([&] { screen.close(); });
  std::jthread maker([&] {
    for (const int i : {1, 2}) check(from.push(i) == status::ok, "an open queue");
    from.close();
  });
  int sum = 0;
  while (auto item = archive.pop()) sum += *item;
  check(sum == 3, "no effect of a closed target on the others");
  check(copying.get() == flow_ended::source_ended, "the end");
}

[[maybe_unused]] const bool added =
    add({.name = "circuit_breaker: consecutive failures open it for the configured time",
         .options = {.schedules = 2'500},
         .body = &consecutive_failures_open_it_for_the_configured_time}) &&
    add({.name = "circuit_breaker: one probe at a time is admitted",
         .options = {.schedules = 3'500},
         .body = &one_probe_at_a_time_is_admitted}) &&
    add({.name = "circuit_breaker: a late result changes nothing",
         .options = {.schedules = 2'500},
         .body = &a_late_result_changes_nothing}) &&
    add({.name = "bulkhead: never exceeds its capacity",
         .options = {.schedules = 5'000},
         .body = &it_never_exceeds_its_capacity}) &&
    add({.name = "bulkhead: a timed-out waiter holds no place",
         .options = {.schedules = 5'000},
         .body = &a_timed_out_waiter_holds_no_place}) &&
    add({.name = "bulkhead: a timed-out waiter holds no place, every schedule",
         .options = exhaustively(),
         .body = &a_timed_out_waiter_holds_no_place}) &&
    add({.name = "bulkhead: a full queue is reported immediately",
         .options = exhaustively(),
         .body = &a_full_queue_is_reported_immediately}) &&
    add({.name = "bulkhead: a task gets the place that a thread releases",
         .options = {.schedules = 3'000},
         .body = &a_task_gets_the_place_that_a_thread_releases}) &&
    add({.name = "retry: it retries after growing pauses",
         .options = {.schedules = 200},
         .body = &it_retries_after_growing_pauses}) &&
    add({.name = "retry: a stop ends the wait between attempts",
         .options = {.schedules = 3'500},
         .body = &a_stop_ends_the_wait_between_attempts}) &&
    add({.name = "retry: a task retries until it is stopped",
         .options = {.schedules = 4'000},
         .body = &a_task_retries_until_it_is_stopped}) &&
    add({.name = "retry_budget: it is shared by all",
         .options = exhaustively(),
         .body = &a_budget_is_shared_by_all}) &&
    add({.name = "batcher: every item is delivered once and in order",
         .options = {.schedules = 3'500},
         .body = &every_item_is_delivered_once_and_in_order}) &&
    add({.name = "batcher: a group is due when its first item has waited",
         .options = {.schedules = 3'000},
         .body = &a_group_is_due_when_its_first_item_has_waited}) &&
    add({.name = "batcher: a take that timed out took nothing",
         .options = {.schedules = 3'500},
         .body = &a_take_that_timed_out_took_nothing}) &&
    add({.name = "batcher: its destructor waits for the handler",
         .options = {.schedules = 3'500},
         .body = &its_destructor_waits_for_the_handler}) &&
    add({.name = "batcher: stop returns exactly the unhandled items",
         .options = {.schedules = 3'000},
         .body = &stop_returns_exactly_the_unhandled_items}) &&
    add({.name = "fan_in: items of several sources reach one target",
         .options = {.schedules = 2'000},
         .body = &items_of_several_sources_reach_one_target}) &&
    add({.name = "fan_out: each item reaches one of several targets",
         .options = {.schedules = 2'000},
         .body = &each_item_reaches_one_of_several_targets}) &&
    add({.name = "fan_out: every item reaches all targets until they close",
         .options = {.schedules = 2'000},
         .body = &every_item_reaches_all_targets_until_they_close});

}  // namespace
}  // namespace sluice::sim
