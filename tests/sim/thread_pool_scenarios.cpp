#include "sluice/executor/thread_pool.hpp"

#include <array>
#include <cerrno>
#include <chrono>
#include <functional>
#include <memory>
#include <system_error>
#include <thread>
#include <utility>

#include "sluice/base/shared.hpp"
#include "sluice/future/sync_wait.hpp"
#include "sluice/future/task.hpp"
#include "sluice/sim/testing/scenario.hpp"
#include "sluice/sync/event.hpp"
#include "sluice/sync/latch.hpp"
#include "tests/sim/posted_work.hpp"

namespace sluice::sim {
namespace {

using namespace std::chrono_literals;

void all_that_was_accepted_has_run_at_the_end_of_drain() {
  std::array<shared<int>, 3> runs;
  thread_pool pool({.core = 2, .capacity = 1, .time_every = 0});
  std::jthread other([&] {
    for (const int i : {0, 1}) {
      check(pool.submit([&runs, i] { ++runs[static_cast<std::size_t>(i)].change(); }) == status::ok,
            "an open pool to wait for room");
    }
  });
  check(pool.submit([&] { ++runs[2].change(); }) == status::ok, "an open pool to wait for room");
  other.join();
  pool.drain();
  for (auto& each : runs) check(each.read() == 1, "every function to have run once");
  check(pool.stats().completed == 3 && pool.threads() == 0, "it to have counted them, and ended");
}

void who_submits_while_it_closes_hears_whether_it_will_run() {
  shared<int> runs{0};
  status answer = status::ok;
  submission f([&] { ++runs.change(); });
  {
    const auto owned = std::make_unique<thread_pool>(
        thread_pool::options{.core = 1, .capacity = 1, .time_every = 0});
    auto& pool = *owned;
    std::jthread other([&] { answer = pool.submit_within(f, {}); });
    check(pool.close(), "to be the one who closes it");
  }
  check(answer == status::ok || answer == status::closed, "ok or closed");
  check(runs.read() == (answer ? 1 : 0), "what was accepted, and nothing else, to have run once");
  check(static_cast<bool>(f) == !answer, "what was refused to be with the caller");
}

void what_stop_hands_back_did_not_run_and_the_rest_did() {
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
    const bool mine = static_cast<bool>(pool.submit([&] { runs.fetch_add(1, relaxed); }));
    check(mine, "an open pool to take it");
    left = pool.stop().size();
  }
  check(runs.load() + static_cast<int>(left) == accepted + 1, "nothing lost and nothing twice");
}

// The function waits for stop, so only the deadline ends it; an hour later, and in no time.
void a_shutdown_within_an_hour_stops_what_takes_longer() {
  shared<bool> asked{false};
  shared<bool> second{false};
  event begun;
  event never;
  thread_pool pool({.core = 1, .capacity = 4, .time_every = 0});
  const auto began = seam::now();
  check(pool.submit([&] {
    begun.set();
    asked.write(never.wait(pool.stop_token()) == status::stopped);
  }) == status::ok,
        "an open pool to take it");
  check(pool.submit([&] { second.write(true); }) == status::ok, "an open pool to take it");
  begun.wait();
  const auto left = pool.shutdown_within(deadline::after(1h));
  check(left.size() == 1 && !second.read(), "what had not begun to be handed back");
  check(asked.read(), "what had begun to be asked to stop");
  check(seam::now() - began >= 1h, "the whole hour to have passed");
}

void a_shutdown_that_has_time_enough_runs_all() {
  shared<int> runs{0};
  thread_pool pool({.core = 1, .capacity = 4, .time_every = 0});
  const auto work = [&] {
    std::this_thread::sleep_for(10min);
    ++runs.change();
  };
  check(pool.submit(work) == status::ok && pool.submit(work) == status::ok, "room for both");
  const auto left = pool.shutdown_within(deadline::after(1h));
  check(left.empty() && runs.read() == 2, "all to have run within the hour");
}

// Each of the two waits for the other: with one thread that would be for ever.
void it_grows_when_nobody_is_idle_and_shrinks_again() {
  thread_pool pool({.core = 1, .max = 2, .keep_alive = 1min, .time_every = 0});
  latch both(2);
  for (int i = 0; i < 2; ++i) {
    check(pool.submit([&] { both.arrive_and_wait(); }) == status::ok, "an open pool to take it");
  }
  both.wait();
  std::this_thread::sleep_for(1h);
  const auto seen = pool.stats();
  check(seen.threads == 1, "the second thread to have ended after its time");
  check(seen.threads_largest == 2, "two threads at most");
}

void one_that_waits_for_room_gives_up_and_has_given_nothing() {
  shared<int> runs{0};
  event go;
  thread_pool pool({.core = 1, .capacity = 1, .time_every = 0});
  check(pool.submit([&] { go.wait(); }) == status::ok, "room");
  check(pool.submit([&] { ++runs.change(); }) == status::ok, "room");
  submission late([&] { ++runs.change(); });
  std::jthread opens([&] { go.set(); });
  const status how = pool.submit_within(late, deadline::after(1s));
  check(how == status::ok || how == status::timed_out, "ok or timed out");
  check(static_cast<bool>(late) == !how, "what timed out to be with the caller");
  pool.drain();
  check(runs.read() == (how ? 2 : 1), "what was accepted to have run, and nothing else");
}

void a_stop_takes_one_that_waits_for_room_out() {
  atomic<int> runs{0};
  event go;
  thread_pool pool({.core = 1, .capacity = 1, .time_every = 0});
  check(pool.submit([&] { go.wait(); }) == status::ok, "room");
  check(pool.submit([&] { runs.fetch_add(1, relaxed); }) == status::ok, "room");
  std::stop_source asks;
  std::jthread stops([&] { asks.request_stop(); });
  const status how = pool.submit([&] { runs.fetch_add(1, relaxed); }, asks.get_token());
  go.set();
  check(how == status::stopped || how == status::ok, "stopped or ok");
  pool.drain();
  check(runs.load() == (how ? 2 : 1), "what was accepted to have run, and nothing else");
}

template <overflow Policy>
void what_a_full_pool_does_adds_up() {
  atomic<int> runs{0};
  atomic<int> dropped{0};
  int ok = 0;
  int refused = 0;
  int said_dropped = 0;
  {
    thread_pool pool({.core = 1,
                      .capacity = 1,
                      .overflow = Policy,
                      .on_drop = [&](submission&&) { dropped.fetch_add(1, relaxed); },
                      .time_every = 0});
    const auto submit = [&] {
      const status how = pool.submit([&] { runs.fetch_add(1, relaxed); });
      return how;
    };
    status from_other = status::closed;
    std::jthread other([&] { from_other = submit(); });
    const auto count = [&](status how) {
      ok += how == status::ok ? 1 : 0;
      refused += how == status::full ? 1 : 0;
      said_dropped += how == status::dropped ? 1 : 0;
    };
    for (int i = 0; i < 2; ++i) count(submit());
    other.join();
    count(from_other);
  }
  check(ok + refused + said_dropped == 3, "ok, full or dropped");
  const bool drops_old = Policy == overflow::drop_oldest || Policy == overflow::latest;
  if (drops_old) {
    check(refused == 0 && runs.load() + dropped.load() == 3, "each to have run or been dropped");
  } else {
    check(runs.load() == ok && dropped.load() == said_dropped, "those that were accepted to run");
  }
  if (Policy == overflow::caller_runs) check(ok == 3, "all to be run, by whomever");
}

void a_thread_of_a_full_pool_runs_what_it_submits_itself() {
  shared<int> runs{0};
  event submitted;
  thread_pool pool({.core = 1, .capacity = 1, .time_every = 0});
  check(pool.submit([&] {
    for (int i = 0; i < 3; ++i) {
      check(pool.submit([&] { ++runs.change(); }) == status::ok, "no wait for itself");
    }
    submitted.set();
  }) == status::ok,
        "room");
  submitted.wait();
  pool.drain();
  check(runs.read() == 3, "all of them to have run");
}

void a_post_runs_once_however_the_pool_ends() {
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
    check(late.runs.load() == 1, "a post after the end to be run by who makes it");
  }
  check(item.runs.load() == 1, "a post to run exactly once");
}

// Whoever waits for the work may destroy the pool before post has returned.
void a_pool_may_be_destroyed_by_what_a_post_has_done() {
  setting_work item;
  std::jthread poster;
  {
    // On the heap, where a use after its end is found.
    const auto owned = std::make_unique<thread_pool>(
        thread_pool::options{.core = 1, .capacity = 1, .time_every = 0});
    auto& pool = *owned;
    poster = std::jthread([&pool, &item] { pool.post(item); });
    item.done.wait();
  }
}

void who_joins_sees_the_end_and_what_was_done() {
  shared<int> runs{0};
  thread_pool pool({.core = 1, .capacity = 2, .time_every = 0});
  check(pool.submit([&] { ++runs.change(); }) == status::ok, "room");
  std::jthread other([&] {
    const status how = pool.join(deadline::after(1h));
    check(how == status::ok || how == status::timed_out, "ok or timed out");
    if (how) check(runs.read() == 1, "all to have run when join says ok");
  });
  pool.close();
  check(pool.join() == status::ok, "an end");
}

// Nobody is told of a submission but the thread that is about to leave.
void a_thread_that_leaves_takes_nothing_with_it() {
  atomic<int> runs{0};
  const auto owned = std::make_unique<thread_pool>(
      thread_pool::options{.core = 1, .max = 2, .keep_alive = 1ms, .capacity = 2, .time_every = 0});
  auto& pool = *owned;
  latch both(2);
  const auto submit = [&] {
    check(pool.submit([&] { both.arrive_and_wait(); }) == status::ok, "room");
    check(pool.submit([&] { runs.fetch_add(1, relaxed); }) == status::ok, "room");
  };
  {
    std::jthread other(submit);
    submit();
  }
  pool.drain();
  check(runs.load() == 2, "all to have run");
}

void one_whose_thread_cannot_be_started_goes_on_with_those_it_has() {
  shared<int> runs{0};
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
    check(pool.submit([&] { ++runs.change(); }) == status::ok, "room");
  }
  pool.drain();
  check(runs.read() == 3, "the one thread to have run them all");
}

void who_waits_for_room_hears_of_the_end() {
  atomic<int> runs{0};
  event go;
  status theirs = status::ok;
  thread_pool pool({.core = 1, .capacity = 1, .time_every = 0});
  check(pool.submit([&] { go.wait(); }) == status::ok, "room");
  check(pool.submit([&] { runs.fetch_add(1, relaxed); }) == status::ok, "room");
  std::jthread waits([&] { theirs = pool.submit([&] { runs.fetch_add(1, relaxed); }); });
  pool.close();
  go.set();
  waits.join();
  check(theirs == status::ok || theirs == status::closed, "ok or closed");
  pool.drain();
  check(runs.load() == (theirs ? 2 : 1), "what was accepted to have run, and nothing else");
}

void two_who_end_it_at_once_share_what_is_left() {
  atomic<int> runs{0};
  std::size_t theirs = 0;
  std::size_t mine = 0;
  {
    thread_pool pool({.core = 1, .capacity = 4, .time_every = 0});
    for (int i = 0; i < 3; ++i) {
      check(pool.submit([&] { runs.fetch_add(1, relaxed); }) == status::ok, "room");
    }
    std::jthread other([&] { theirs = pool.stop().size(); });
    mine = pool.shutdown_within(deadline::after(1ms)).size();
  }
  check(runs.load() + static_cast<int>(mine + theirs) == 3, "nothing lost, nothing twice");
}

task<status> hands_in(thread_pool& to, atomic<int>& runs) {
  submission f([&runs] { runs.fetch_add(1, relaxed); });
  const status how = co_await to.async_submit(std::move(f));
  co_return how;
}

void a_task_that_waits_for_room_is_let_in_or_told() {
  atomic<int> runs{0};
  event go;
  thread_pool pool({.core = 1, .capacity = 1, .time_every = 0});
  check(pool.submit([&] { go.wait(); }) == status::ok, "room");
  check(pool.submit([&] { runs.fetch_add(1, relaxed); }) == status::ok, "room");
  std::jthread other([&] {
    pool.close();
    go.set();
  });
  const status how = sync_wait(hands_in(pool, runs));
  other.join();
  check(how == status::ok || how == status::closed, "ok or closed");
  pool.drain();
  check(runs.load() == (how ? 2 : 1), "what was accepted to have run, and nothing else");
}

// A post needs a thread as much as a submission does.
void a_post_makes_it_grow() {
  setting_work item;
  thread_pool pool({.core = 1, .max = 2, .keep_alive = 1ms, .capacity = 2, .time_every = 0});
  check(pool.submit([&] { item.done.wait(); }) == status::ok, "room");
  std::jthread other([&] { pool.post(item); });
}

void the_most_urgent_first() {
  int last = 3;
  event go;
  thread_pool pool({.core = 1, .capacity = 4, .by_priority = true, .time_every = 0});
  check(pool.submit({9, [&] { go.wait(); }}) == status::ok, "room");
  const auto in_turn = [&](int mine) {
    return [&last, mine] {
      check(last == mine + 1, "the most urgent first");
      last = mine;
    };
  };
  std::jthread other([&] { check(pool.submit({1, in_turn(1)}) == status::ok, "room"); });
  check(pool.submit({2, in_turn(2)}) == status::ok, "room");
  other.join();
  check(pool.submit({0, in_turn(0)}) == status::ok, "room");
  go.set();
  pool.drain();
  check(last == 0, "all to have run");
}

[[maybe_unused]] const bool added =
    add({.name = "thread_pool: all that was accepted has run at the end of drain",
         .how = {.schedules = 5'000},
         .body = &all_that_was_accepted_has_run_at_the_end_of_drain}) &&
    add({.name = "thread_pool: who submits while it closes hears whether it will run",
         .how = {.schedules = 7'000},
         .body = &who_submits_while_it_closes_hears_whether_it_will_run}) &&
    add({.name = "thread_pool: what stop hands back did not run, the rest did",
         .how = {.schedules = 5'000},
         .body = &what_stop_hands_back_did_not_run_and_the_rest_did}) &&
    add({.name = "thread_pool: a shutdown within an hour stops what takes longer",
         .how = {.schedules = 3'500, .early_timeouts = false},
         .body = &a_shutdown_within_an_hour_stops_what_takes_longer}) &&
    add({.name = "thread_pool: a shutdown that has time enough runs all",
         .how = {.schedules = 3'500, .early_timeouts = false},
         .body = &a_shutdown_that_has_time_enough_runs_all}) &&
    add({.name = "thread_pool: it grows when nobody is idle, and shrinks",
         .how = {.schedules = 3'500, .early_timeouts = false},
         .body = &it_grows_when_nobody_is_idle_and_shrinks_again}) &&
    add({.name = "thread_pool: who gave up waiting for room gave nothing",
         .how = {.schedules = 5'000},
         .body = &one_that_waits_for_room_gives_up_and_has_given_nothing}) &&
    add({.name = "thread_pool: a stop takes one that waits for room out",
         .how = {.schedules = 5'000},
         .body = &a_stop_takes_one_that_waits_for_room_out}) &&
    add({.name = "thread_pool: what a full one rejects adds up",
         .how = {.schedules = 3'000},
         .body = &what_a_full_pool_does_adds_up<overflow::reject>}) &&
    add({.name = "thread_pool: what a full one drops of the newest adds up",
         .how = {.schedules = 3'000},
         .body = &what_a_full_pool_does_adds_up<overflow::drop_newest>}) &&
    add({.name = "thread_pool: what a full one drops of the oldest adds up",
         .how = {.schedules = 3'000},
         .body = &what_a_full_pool_does_adds_up<overflow::drop_oldest>}) &&
    add({.name = "thread_pool: what a full one replaces adds up",
         .how = {.schedules = 3'000},
         .body = &what_a_full_pool_does_adds_up<overflow::latest>}) &&
    add({.name = "thread_pool: what a full one has its callers run adds up",
         .how = {.schedules = 3'000},
         .body = &what_a_full_pool_does_adds_up<overflow::caller_runs>}) &&
    add({.name = "thread_pool: its thread runs itself what finds no room",
         .how = {.schedules = 2'000},
         .body = &a_thread_of_a_full_pool_runs_what_it_submits_itself}) &&
    add({.name = "thread_pool: a post runs once, however it ends",
         .how = {.schedules = 6'000},
         .body = &a_post_runs_once_however_the_pool_ends}) &&
    add({.name = "thread_pool: what a post has done may end it, every schedule",
         .how = exhaustively(1),
         .body = &a_pool_may_be_destroyed_by_what_a_post_has_done}) &&
    add({.name = "thread_pool: what a post has done may end it",
         .how = {.schedules = 6'000},
         .body = &a_pool_may_be_destroyed_by_what_a_post_has_done}) &&
    add({.name = "thread_pool: who joins sees the end",
         .how = {.schedules = 3'500},
         .body = &who_joins_sees_the_end_and_what_was_done}) &&
    add({.name = "thread_pool: a thread that leaves takes nothing with it",
         .how = {.schedules = 5'000},
         .body = &a_thread_that_leaves_takes_nothing_with_it}) &&
    add({.name = "thread_pool: it goes on when a thread cannot be started",
         .how = {.schedules = 2'000},
         .body = &one_whose_thread_cannot_be_started_goes_on_with_those_it_has}) &&
    add({.name = "thread_pool: who waits for room hears of the end",
         .how = {.schedules = 3'500},
         .body = &who_waits_for_room_hears_of_the_end}) &&
    add({.name = "thread_pool: two who end it at once share what is left",
         .how = {.schedules = 3'500},
         .body = &two_who_end_it_at_once_share_what_is_left}) &&
    add({.name = "thread_pool: a task that waits for room is let in or told",
         .how = {.schedules = 3'500},
         .body = &a_task_that_waits_for_room_is_let_in_or_told}) &&
    add({.name = "thread_pool: a post makes it grow",
         .how = {.schedules = 3'500},
         .body = &a_post_makes_it_grow}) &&
    add({.name = "thread_pool: the most urgent first",
         .how = {.schedules = 2'500},
         .body = &the_most_urgent_first});

}  // namespace
}  // namespace sluice::sim
