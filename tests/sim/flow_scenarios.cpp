#include <chrono>
#include <memory>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

#include "sluice/base/shared.hpp"
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

void so_many_failures_in_a_row_open_it_for_so_long() {
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
  check(!refused && refused.retry_after() > 0s, "to hear for how long");
  std::this_thread::sleep_for(1h);
  auto probe = mailer.try_enter();
  check(static_cast<bool>(probe), "to be let through after an hour");
  probe.success();
  check(mailer.state() == circuit_state::closed, "a good probe to close it");
}

void one_probe_at_a_time_is_let_through() {
  std::vector<circuit_change> told;
  circuit_breaker mailer({.consecutive_failures = 1,
                          .open_for = 1min,
                          .on_change = [&](const circuit_change& c) { told.push_back(c); }});
  if (auto p = mailer.try_enter()) p.failure();
  std::this_thread::sleep_for(1min);
  bool theirs = false;
  std::optional<circuit_breaker::permit> kept;
  std::jthread other([&] {
    auto p = mailer.try_enter();
    theirs = static_cast<bool>(p);
    if (theirs) kept.emplace(std::move(p));
  });
  auto mine = mailer.try_enter();
  other.join();
  check(static_cast<bool>(mine) != theirs, "one of the two to be the probe");
  (mine ? mine : *kept).success();
  kept.reset();
  check(mailer.state() == circuit_state::closed, "it to be closed");
  check(told.size() == 3 && told[0].to == circuit_state::open &&
            told[1].to == circuit_state::half_open && told[2].to == circuit_state::closed,
        "every change to be told, in order");
}

void a_result_that_comes_late_changes_nothing() {
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

void no_more_inside_than_may_be() {
  bulkhead printing({.active_max = 1, .waiting_max = 2});
  shared<int> inside{0};
  const auto print = [&] {
    auto place = printing.enter();
    check(static_cast<bool>(place), "room in line for all of them");
    inside.change() += 1;
  };
  {
    std::jthread a(print);
    std::jthread b(print);
    print();
  }
  check(inside.read() == 3 && printing.stats().active_most == 1, "one after the other");
}

void who_gave_up_holds_no_place() {
  bulkhead printing({.active_max = 1, .waiting_max = 1});
  std::optional<bulkhead::permit> inside(std::move(*printing.try_enter()));
  std::jthread leaves([&] { inside.reset(); });
  {
    const auto place = printing.try_enter_for(1s);
    check(place || place.status() == status::timed_out, "a place or timed out");
  }
  leaves.join();
  check(printing.active() == 0 && printing.waiting() == 0, "nobody inside or in line");
  check(static_cast<bool>(printing.try_enter()), "the place to be free");
}

void who_finds_the_line_full_is_told_at_once() {
  bulkhead printing({.active_max = 1, .waiting_max = 0});
  int entered = 0;
  int refused = 0;
  const auto print = [&](int& in, int& out) {
    auto place = printing.enter();
    ++(place ? in : out);
    if (!place) check(place.status() == status::full, "to hear that it is full");
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

void a_task_gets_the_place_that_a_thread_leaves() {
  thread_pool pool({.core = 1, .capacity = 2, .time_every = 0});
  bulkhead printing({.active_max = 1, .waiting_max = 1});
  std::optional<bulkhead::permit> inside(std::move(*printing.try_enter()));
  auto page = spawn(pool, printing.call([]() -> task<int> { co_return 3; }));
  inside.reset();
  check(page.get() == 3, "its turn");
  check(printing.active() == 0, "it to have left");
}

// ---- retry

void it_tries_again_after_a_while_that_grows() {
  int attempts = 0;
  const auto began = seam::now();
  const int got = retry(
      {.attempts_max = 4, .first_delay = 10min, .delay_max = 1h, .jitter = jitter::none}, [&] {
        if (++attempts < 4) throw std::runtime_error("no");
        return 5;
      });
  check(got == 5 && attempts == 4, "the last one to succeed");
  check(seam::now() - began >= 70min, "waits of ten, twenty and forty minutes");
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
    check(e.attempts() == attempts && attempts <= 2, "the attempts that were made");
    check(e.why() == retry_error::reason::stopped || attempts == 2, "why it ended");
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

void a_task_tries_again_until_it_is_stopped() {
  const retry_policy policy{
      .attempts_max = 3, .first_delay = 10min, .delay_max = 1h, .jitter = jitter::none};
  std::stop_source asks;
  std::jthread other([&] { asks.request_stop(); });
  const auto began = seam::now();
  std::uint32_t attempts = 0;
  try {
    check(sync_wait(tries(attempts, policy, wait_limits(asks.get_token()))) == 5, "its result");
    check(attempts == 3 && seam::now() - began >= 30min, "waits of ten and twenty minutes");
  } catch (const retry_error& e) {
    check(e.why() == retry_error::reason::stopped && e.attempts() == attempts, "why it ended");
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
  const bool mine = shared_budget.try_retry();
  other.join();
  check(mine != theirs && shared_budget.refused() == 1, "one retry for the two of them");
}

// ---- batcher

void every_item_comes_once_and_in_order() {
  batcher<int> rows({.size = 2, .wait = 1s, .capacity = 2});
  std::jthread maker([&] {
    for (const int i : {1, 2, 3}) check(rows.push(i) == status::ok, "an open batcher to wait");
    rows.close();
  });
  int last = 0;
  while (auto batch = rows.take()) {
    check(!batch->empty() && batch->size() <= 2, "one or two at a time");
    for (const int i : *batch) {
      check(i == last + 1, "the order in which they came in");
      last = i;
    }
  }
  check(last == 3, "all of them");
}

void what_has_come_is_due_when_the_first_has_waited() {
  batcher<int> rows({.size = 10, .wait = 1min, .capacity = 10});
  const auto began = seam::now();
  std::jthread maker([&] { check(rows.push(1) == status::ok, "room"); });
  const auto batch = rows.take();
  check(batch && batch->size() == 1 && seam::now() - began >= 1min, "it to wait for a minute");
}

void a_take_that_timed_out_took_nothing() {
  batcher<int> rows({.size = 1, .wait = 1min, .capacity = 2});
  std::jthread maker([&] { check(rows.push(1) == status::ok, "room"); });
  const auto soon = rows.try_take_for(1s);
  check(soon || soon.status() == status::timed_out, "a batch or timed out");
  maker.join();
  check(static_cast<bool>(rows.try_take()) == !soon, "the item to come once");
}

void a_handler_has_dealt_with_all_when_it_is_gone() {
  shared<int> sum{0};
  thread_pool pool({.core = 2, .capacity = 2, .time_every = 0});
  {
    // On the heap, where a use after its end is found.
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

void what_stop_hands_back_was_not_dealt_with() {
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
  check(handled.load() + static_cast<int>(left) == accepted, "nothing lost, nothing twice");
}

// ---- fan in and out

void what_several_bring_comes_to_one() {
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

void each_item_goes_to_one_of_several() {
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
  int mine = 0;
  while (auto item = left.pop()) mine += *item;
  other.join();
  check(mine + theirs == 3 && sharing.get() == flow_ended::source_ended, "each item once");
}

void every_item_goes_to_all_until_they_close() {
  bounded_queue<int> from(1);
  bounded_queue<int> screen(1);
  bounded_queue<int> archive(1);
  thread_pool pool({.core = 1, .capacity = 2, .time_every = 0});
  auto telling = spawn(pool, broadcast(&from, std::vector{&screen, &archive}));
  std::jthread closes([&] { screen.close(); });
  std::jthread maker([&] {
    for (const int i : {1, 2}) check(from.push(i) == status::ok, "an open queue");
    from.close();
  });
  int sum = 0;
  while (auto item = archive.pop()) sum += *item;
  check(sum == 3, "one that closes not to be missed by the others");
  check(telling.get() == flow_ended::source_ended, "the end");
}

[[maybe_unused]] const bool added =
    add({.name = "circuit_breaker: so many failures open it for so long",
         .how = {.schedules = 2'500},
         .body = &so_many_failures_in_a_row_open_it_for_so_long}) &&
    add({.name = "circuit_breaker: one probe at a time is let through",
         .how = {.schedules = 3'500},
         .body = &one_probe_at_a_time_is_let_through}) &&
    add({.name = "circuit_breaker: a result that comes late changes nothing",
         .how = {.schedules = 2'500},
         .body = &a_result_that_comes_late_changes_nothing}) &&
    add({.name = "bulkhead: no more inside than may be",
         .how = {.schedules = 5'000},
         .body = &no_more_inside_than_may_be}) &&
    add({.name = "bulkhead: who gave up holds no place",
         .how = {.schedules = 5'000},
         .body = &who_gave_up_holds_no_place}) &&
    add({.name = "bulkhead: who gave up holds no place, every schedule",
         .how = exhaustively(),
         .body = &who_gave_up_holds_no_place}) &&
    add({.name = "bulkhead: who finds the line full is told at once",
         .how = exhaustively(),
         .body = &who_finds_the_line_full_is_told_at_once}) &&
    add({.name = "bulkhead: a task gets the place that a thread leaves",
         .how = {.schedules = 3'000},
         .body = &a_task_gets_the_place_that_a_thread_leaves}) &&
    add({.name = "retry: it tries again after a while that grows",
         .how = {.schedules = 200},
         .body = &it_tries_again_after_a_while_that_grows}) &&
    add({.name = "retry: a stop ends the wait between attempts",
         .how = {.schedules = 3'500},
         .body = &a_stop_ends_the_wait_between_attempts}) &&
    add({.name = "retry: a task tries again until it is stopped",
         .how = {.schedules = 4'000},
         .body = &a_task_tries_again_until_it_is_stopped}) &&
    add({.name = "retry_budget: it is shared by all",
         .how = exhaustively(),
         .body = &a_budget_is_shared_by_all}) &&
    add({.name = "batcher: every item comes once and in order",
         .how = {.schedules = 3'500},
         .body = &every_item_comes_once_and_in_order}) &&
    add({.name = "batcher: what has come is due when the first has waited",
         .how = {.schedules = 3'000},
         .body = &what_has_come_is_due_when_the_first_has_waited}) &&
    add({.name = "batcher: a take that timed out took nothing",
         .how = {.schedules = 3'500},
         .body = &a_take_that_timed_out_took_nothing}) &&
    add({.name = "batcher: its handler has dealt with all when it is gone",
         .how = {.schedules = 3'500},
         .body = &a_handler_has_dealt_with_all_when_it_is_gone}) &&
    add({.name = "batcher: what stop hands back was not dealt with",
         .how = {.schedules = 3'000},
         .body = &what_stop_hands_back_was_not_dealt_with}) &&
    add({.name = "fan_in: what several bring comes to one",
         .how = {.schedules = 2'000},
         .body = &what_several_bring_comes_to_one}) &&
    add({.name = "fan_out: each item goes to one of several",
         .how = {.schedules = 2'000},
         .body = &each_item_goes_to_one_of_several}) &&
    add({.name = "fan_out: every item goes to all until they close",
         .how = {.schedules = 2'000},
         .body = &every_item_goes_to_all_until_they_close});

}  // namespace
}  // namespace sluice::sim
