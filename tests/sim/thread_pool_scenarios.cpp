#include "sluice/executor/thread_pool.hpp"

#include <array>
#include <cerrno>
#include <chrono>
#include <functional>
#include <memory>
#include <system_error>
#include <thread>
#include <utility>

#include "sluice/base/race_checked.hpp"
#include "sluice/future/sync_wait.hpp"
#include "sluice/future/task.hpp"
#include "sluice/sim/testing/scenario.hpp"
#include "sluice/sync/event.hpp"
#include "sluice/sync/latch.hpp"
#include "tests/sim/posted_work.hpp"

namespace sluice::sim {
namespace {

using namespace std::chrono_literals;

void drain_runs_all_accepted_functions() {
  std::array<race_checked<int>, 3> runs;
  thread_pool pool({.core = 2, .capacity = 1, .time_every = 0});
  std::jthread other([&] {
    for (const int i : {0, 1}) {
      check(pool.submit([&runs, i] { ++runs[static_cast<std::size_t>(i)].change(); }) == status::ok,
            "an open pool to wait for capacity");
    }
  });
  check(pool.submit([&] { ++runs[2].change(); }) == status::ok,
        "an open pool to wait for capacity");
  other.join();
  pool.drain();
  for (auto& each : runs) check(each.read() == 1, "every function to have run once");
  check(pool.stats().completed == 3 && pool.threads() == 0, "all to be counted, and no threads");
}

void a_submission_during_close_reports_whether_it_runs() {
  race_checked<int> runs{0};
  status answer = status::ok;
  submission f([&] { ++runs.change(); });
  {
    const auto owned = std::make_unique<thread_pool>(
        thread_pool::options{.core = 1, .capacity = 1, .time_every = 0});
    auto& pool = *owned;
    std::jthread other([&] { answer = pool.submit(std::move(f)); });
    check(pool.close(), "to close it");
  }
  check(answer == status::ok || answer == status::closed, "ok or closed");
  check(runs.read() == (answer ? 1 : 0), "exactly the accepted function to have run once");
  check(static_cast<bool>(f) == !answer, "a rejected function to stay with the caller");
}

void stop_returns_exactly_the_functions_that_did_not_run() {
  atomic<int> runs{0};
  int accepted = 0;
  std::size_t left = 0;
  {
    const auto owned = std::make_unique<thread_pool>(
        thread_pool::options{.core = 1, .capacity = 4, .time_every = 0});
    auto& pool = *owned;
    std::jthread other([&] {
      for (int i = 0; i < 2; ++i) {
        if (pool.submit([&] { runs.fetch_add(1, relaxed); })) ++accepted;
      }
    });
    const bool is_accepted = static_cast<bool>(pool.submit([&] { runs.fetch_add(1, relaxed); }));
    check(is_accepted, "an open pool to accept it");
    left = pool.stop().size();
  }
  check(runs.load() + static_cast<int>(left) == accepted + 1, "every function exactly once");
}

// The function waits for a stop request, so only the deadline ends it, after an hour of virtual
// time.
void a_shutdown_with_a_time_limit_stops_longer_functions() {
  race_checked<bool> asked{false};
  race_checked<bool> second{false};
  event begun;
  event never;
  thread_pool pool({.core = 1, .capacity = 4, .time_every = 0});
  const auto began = seam::now();
  check(pool.submit([&] {
    begun.set();
    asked.write(never.wait(pool.stop_token()) == status::stopped);
  }) == status::ok,
        "an open pool to accept it");
  check(pool.submit([&] { second.write(true); }) == status::ok, "an open pool to accept it");
  begun.wait();
  const auto left = pool.shutdown(deadline::after(1h));
  check(left.size() == 1 && !second.read(), "the function that had not begun to be returned");
  check(asked.read(), "a stop request for the function that had begun");
  check(seam::now() - began >= 1h, "a whole hour");
}

void a_shutdown_with_enough_time_runs_all_functions() {
  race_checked<int> runs{0};
  thread_pool pool({.core = 1, .capacity = 4, .time_every = 0});
  const auto work = [&] {
    std::this_thread::sleep_for(10min);
    ++runs.change();
  };
  check(pool.submit(work) == status::ok && pool.submit(work) == status::ok, "capacity for both");
  const auto left = pool.shutdown(deadline::after(1h));
  check(left.empty() && runs.read() == 2, "all to have run within the hour");
}

// The two functions wait for each other: with one thread, for ever.
void it_grows_without_an_idle_thread_and_shrinks_again() {
  thread_pool pool({.core = 1, .max = 2, .keep_alive = 1min, .time_every = 0});
  latch both(2);
  for (int i = 0; i < 2; ++i) {
    check(pool.submit([&] { both.arrive_and_wait(); }) == status::ok, "an open pool to accept it");
  }
  both.wait();
  std::this_thread::sleep_for(1h);
  const auto seen = pool.stats();
  check(seen.threads == 1, "the second thread to have ended after its idle time");
  check(seen.threads_largest == 2, "two threads at most");
}

void a_submission_that_timed_out_keeps_its_function() {
  race_checked<int> runs{0};
  event go;
  thread_pool pool({.core = 1, .capacity = 1, .time_every = 0});
  check(pool.submit([&] { go.wait(); }) == status::ok, "capacity");
  check(pool.submit([&] { ++runs.change(); }) == status::ok, "capacity");
  submission late([&] { ++runs.change(); });
  std::jthread opens([&] { go.set(); });
  const status outcome = pool.submit(std::move(late), deadline::after(1s));
  check(outcome == status::ok || outcome == status::timed_out, "ok or timed out");
  check(static_cast<bool>(late) == !outcome, "a timed-out function to stay with the caller");
  pool.drain();
  check(runs.read() == (outcome ? 2 : 1), "exactly the accepted functions to have run");
}

void a_stop_ends_a_wait_for_capacity() {
  atomic<int> runs{0};
  event go;
  thread_pool pool({.core = 1, .capacity = 1, .time_every = 0});
  check(pool.submit([&] { go.wait(); }) == status::ok, "capacity");
  check(pool.submit([&] { runs.fetch_add(1, relaxed); }) == status::ok, "capacity");
  std::stop_source asks;
  std::jthread stops([&] { asks.request_stop(); });
  const status outcome = pool.submit([&] { runs.fetch_add(1, relaxed); }, asks.get_token());
  go.set();
  check(outcome == status::stopped || outcome == status::ok, "stopped or ok");
  pool.drain();
  check(runs.load() == (outcome ? 2 : 1), "exactly the accepted functions to have run");
}

template <overflow Policy>
void the_counts_of_a_full_pool_add_up() {
  atomic<int> runs{0};
  atomic<int> dropped{0};
  int ok = 0;
  int refused = 0;
  int reported_dropped = 0;
  {
    thread_pool pool({.core = 1,
                      .capacity = 1,
                      .overflow = Policy,
                      .on_drop = [&](submission&&) { dropped.fetch_add(1, relaxed); },
                      .time_every = 0});
    const auto submit = [&] {
      const status outcome = pool.submit([&] { runs.fetch_add(1, relaxed); });
      return outcome;
    };
    status from_other = status::closed;
    std::jthread other([&] { from_other = submit(); });
    const auto count = [&](status outcome) {
      ok += outcome == status::ok ? 1 : 0;
      refused += outcome == status::full ? 1 : 0;
      reported_dropped += outcome == status::dropped ? 1 : 0;
    };
    for (int i = 0; i < 2; ++i) count(submit());
    other.join();
    count(from_other);
  }
  check(ok + refused + reported_dropped == 3, "ok, full or dropped");
  const bool drops_old = Policy == overflow::drop_oldest || Policy == overflow::latest;
  if (drops_old) {
    check(refused == 0 && runs.load() + dropped.load() == 3,
          "every function to have run or been dropped");
  } else {
    check(runs.load() == ok && dropped.load() == reported_dropped, "the accepted functions to run");
  }
  if (Policy == overflow::caller_runs) check(ok == 3, "all to run");
}

void a_thread_of_a_full_pool_runs_its_own_submissions() {
  race_checked<int> runs{0};
  event submitted;
  thread_pool pool({.core = 1, .capacity = 1, .time_every = 0});
  check(pool.submit([&] {
    for (int i = 0; i < 3; ++i) {
      check(pool.submit([&] { ++runs.change(); }) == status::ok, "no wait for its own capacity");
    }
    submitted.set();
  }) == status::ok,
        "capacity");
  submitted.wait();
  pool.drain();
  check(runs.read() == 3, "all of them to have run");
}

void a_post_runs_once_also_during_the_end() {
  counted_work item;
  counted_work late;
  {
    const auto owned = std::make_unique<thread_pool>(
        thread_pool::options{.core = 1, .capacity = 1, .time_every = 0});
    auto& pool = *owned;
    std::jthread other([&] { pool.post(item); });
    pool.drain();
    other.join();
    pool.post(late);
    check(late.runs.load() == 1, "a post after the end to run on the calling thread");
  }
  check(item.runs.load() == 1, "a post to run exactly once");
}

// A waiter for the work may destroy the pool before post has returned.
void a_pool_may_be_destroyed_by_the_effect_of_a_post() {
  setting_work item;
  std::jthread poster;
  {
    // On the heap, where a use after free is detected.
    const auto owned = std::make_unique<thread_pool>(
        thread_pool::options{.core = 1, .capacity = 1, .time_every = 0});
    auto& pool = *owned;
    poster = std::jthread([&pool, &item] { pool.post(item); });
    item.done.wait();
  }
}

void join_sees_the_effects_of_all_functions() {
  race_checked<int> runs{0};
  thread_pool pool({.core = 1, .capacity = 2, .time_every = 0});
  check(pool.submit([&] { ++runs.change(); }) == status::ok, "capacity");
  std::jthread other([&] {
    const status outcome = pool.join(deadline::after(1h));
    check(outcome == status::ok || outcome == status::timed_out, "ok or timed out");
    if (outcome) check(runs.read() == 1, "all to have run when join returns ok");
  });
  pool.close();
  check(pool.join() == status::ok, "an end");
}

// Only the thread that is about to end is woken for a submission.
void an_ending_thread_loses_no_work() {
  atomic<int> runs{0};
  const auto owned = std::make_unique<thread_pool>(
      thread_pool::options{.core = 1, .max = 2, .keep_alive = 1ms, .capacity = 2, .time_every = 0});
  auto& pool = *owned;
  latch both(2);
  const auto submit = [&] {
    check(pool.submit([&] { both.arrive_and_wait(); }) == status::ok, "capacity");
    check(pool.submit([&] { runs.fetch_add(1, relaxed); }) == status::ok, "capacity");
  };
  {
    std::jthread other(submit);
    submit();
  }
  pool.drain();
  check(runs.load() == 2, "all to have run");
}

void it_works_on_when_a_thread_cannot_be_started() {
  race_checked<int> runs{0};
  int started = 0;
  thread_pool pool({.core = 1,
                    .max = 2,
                    .capacity = 4,
                    .time_every = 0,
                    .make_thread = [&](std::function<void()> f) {
                      if (++started > 1) throw std::system_error(EAGAIN, std::generic_category());
                      return seam::thread(std::move(f));
                    }});
  for (int i = 0; i < 3; ++i) {
    check(pool.submit([&] { ++runs.change(); }) == status::ok, "capacity");
  }
  pool.drain();
  check(runs.read() == 3, "the one thread to have run them all");
}

void the_end_wakes_a_waiter_for_capacity() {
  atomic<int> runs{0};
  event go;
  status theirs = status::ok;
  thread_pool pool({.core = 1, .capacity = 1, .time_every = 0});
  check(pool.submit([&] { go.wait(); }) == status::ok, "capacity");
  check(pool.submit([&] { runs.fetch_add(1, relaxed); }) == status::ok, "capacity");
  std::jthread waits([&] { theirs = pool.submit([&] { runs.fetch_add(1, relaxed); }); });
  pool.close();
  go.set();
  waits.join();
  check(theirs == status::ok || theirs == status::closed, "ok or closed");
  pool.drain();
  check(runs.load() == (theirs ? 2 : 1), "exactly the accepted functions to have run");
}

void two_concurrent_ends_share_the_remaining_functions() {
  atomic<int> runs{0};
  std::size_t theirs = 0;
  std::size_t ours = 0;
  {
    thread_pool pool({.core = 1, .capacity = 4, .time_every = 0});
    for (int i = 0; i < 3; ++i) {
      check(pool.submit([&] { runs.fetch_add(1, relaxed); }) == status::ok, "capacity");
    }
    std::jthread other([&] { theirs = pool.stop().size(); });
    ours = pool.shutdown(deadline::after(1ms)).size();
  }
  check(runs.load() + static_cast<int>(ours + theirs) == 3, "every item exactly once");
}

task<status> submits(thread_pool& pool, atomic<int>& runs) {
  submission f([&runs] { runs.fetch_add(1, relaxed); });
  const status outcome = co_await pool.async_submit(std::move(f));
  co_return outcome;
}

void a_task_that_waits_for_capacity_is_accepted_or_rejected() {
  atomic<int> runs{0};
  event go;
  thread_pool pool({.core = 1, .capacity = 1, .time_every = 0});
  check(pool.submit([&] { go.wait(); }) == status::ok, "capacity");
  check(pool.submit([&] { runs.fetch_add(1, relaxed); }) == status::ok, "capacity");
  std::jthread other([&] {
    pool.close();
    go.set();
  });
  const status outcome = sync_wait(submits(pool, runs));
  other.join();
  check(outcome == status::ok || outcome == status::closed, "ok or closed");
  pool.drain();
  check(runs.load() == (outcome ? 2 : 1), "exactly the accepted functions to have run");
}

// A post starts a thread as a submission does.
void a_post_makes_it_grow() {
  setting_work item;
  thread_pool pool({.core = 1, .max = 2, .keep_alive = 1ms, .capacity = 2, .time_every = 0});
  check(pool.submit([&] { item.done.wait(); }) == status::ok, "capacity");
  std::jthread other([&] { pool.post(item); });
}

void the_most_urgent_function_runs_first() {
  int last = 3;
  event go;
  thread_pool pool({.core = 1, .capacity = 4, .by_priority = true, .time_every = 0});
  check(pool.submit({9, [&] { go.wait(); }}) == status::ok, "capacity");
  const auto in_turn = [&](int rank) {
    return [&last, rank] {
      check(last == rank + 1, "the most urgent function runs first");
      last = rank;
    };
  };
  std::jthread other([&] { check(pool.submit({1, in_turn(1)}) == status::ok, "capacity"); });
  check(pool.submit({2, in_turn(2)}) == status::ok, "capacity");
  other.join();
  check(pool.submit({0, in_turn(0)}) == status::ok, "capacity");
  go.set();
  pool.drain();
  check(last == 0, "all to have run");
}

[[maybe_unused]] const bool added =
    add({.name = "thread_pool: drain runs all accepted functions",
         .options = {.schedules = 5'000},
         .body = &drain_runs_all_accepted_functions}) &&
    add({.name = "thread_pool: a submission during close reports whether it runs",
         .options = {.schedules = 7'000},
         .body = &a_submission_during_close_reports_whether_it_runs}) &&
    add({.name = "thread_pool: stop returns exactly the functions that did not run",
         .options = {.schedules = 5'000},
         .body = &stop_returns_exactly_the_functions_that_did_not_run}) &&
    add({.name = "thread_pool: a shutdown with a time limit stops longer functions",
         .options = {.schedules = 3'500, .early_timeouts = false},
         .body = &a_shutdown_with_a_time_limit_stops_longer_functions}) &&
    add({.name = "thread_pool: a shutdown with enough time runs all functions",
         .options = {.schedules = 3'500, .early_timeouts = false},
         .body = &a_shutdown_with_enough_time_runs_all_functions}) &&
    add({.name = "thread_pool: it grows without an idle thread, and shrinks again",
         .options = {.schedules = 3'500, .early_timeouts = false},
         .body = &it_grows_without_an_idle_thread_and_shrinks_again}) &&
    add({.name = "thread_pool: a submission that timed out keeps its function",
         .options = {.schedules = 5'000},
         .body = &a_submission_that_timed_out_keeps_its_function}) &&
    add({.name = "thread_pool: a stop ends a wait for capacity",
         .options = {.schedules = 5'000},
         .body = &a_stop_ends_a_wait_for_capacity}) &&
    add({.name = "thread_pool: reject: the counts of a full pool add up",
         .options = {.schedules = 3'000},
         .body = &the_counts_of_a_full_pool_add_up<overflow::reject>}) &&
    add({.name = "thread_pool: drop_newest: the counts of a full pool add up",
         .options = {.schedules = 3'000},
         .body = &the_counts_of_a_full_pool_add_up<overflow::drop_newest>}) &&
    add({.name = "thread_pool: drop_oldest: the counts of a full pool add up",
         .options = {.schedules = 3'000},
         .body = &the_counts_of_a_full_pool_add_up<overflow::drop_oldest>}) &&
    add({.name = "thread_pool: latest: the counts of a full pool add up",
         .options = {.schedules = 3'000},
         .body = &the_counts_of_a_full_pool_add_up<overflow::latest>}) &&
    add({.name = "thread_pool: caller_runs: the counts of a full pool add up",
         .options = {.schedules = 3'000},
         .body = &the_counts_of_a_full_pool_add_up<overflow::caller_runs>}) &&
    add({.name = "thread_pool: a thread of a full pool runs its own submissions",
         .options = {.schedules = 2'000},
         .body = &a_thread_of_a_full_pool_runs_its_own_submissions}) &&
    add({.name = "thread_pool: a post runs once, also during the end",
         .options = {.schedules = 6'000},
         .body = &a_post_runs_once_also_during_the_end}) &&
    add({.name = "thread_pool: the effect of a post may destroy it, every schedule",
         .options = exhaustively(1),
         .body = &a_pool_may_be_destroyed_by_the_effect_of_a_post}) &&
    add({.name = "thread_pool: the effect of a post may destroy it",
         .options = {.schedules = 6'000},
         .body = &a_pool_may_be_destroyed_by_the_effect_of_a_post}) &&
    add({.name = "thread_pool: join sees the effects of all functions",
         .options = {.schedules = 3'500},
         .body = &join_sees_the_effects_of_all_functions}) &&
    add({.name = "thread_pool: an ending thread loses no work",
         .options = {.schedules = 5'000},
         .body = &an_ending_thread_loses_no_work}) &&
    add({.name = "thread_pool: it works on when a thread cannot be started",
         .options = {.schedules = 2'000},
         .body = &it_works_on_when_a_thread_cannot_be_started}) &&
    add({.name = "thread_pool: the end wakes a waiter for capacity",
         .options = {.schedules = 3'500},
         .body = &the_end_wakes_a_waiter_for_capacity}) &&
    add({.name = "thread_pool: two concurrent ends share the remaining functions",
         .options = {.schedules = 3'500},
         .body = &two_concurrent_ends_share_the_remaining_functions}) &&
    add({.name = "thread_pool: a task that waits for capacity is accepted or rejected",
         .options = {.schedules = 3'500},
         .body = &a_task_that_waits_for_capacity_is_accepted_or_rejected}) &&
    add({.name = "thread_pool: a post makes it grow",
         .options = {.schedules = 3'500},
         .body = &a_post_makes_it_grow}) &&
    add({.name = "thread_pool: the most urgent function runs first",
         .options = {.schedules = 2'500},
         .body = &the_most_urgent_function_runs_first});

}  // namespace
}  // namespace sluice::sim
