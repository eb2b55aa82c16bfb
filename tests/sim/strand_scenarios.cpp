#include "sluice/executor/strand.hpp"

#include <chrono>
#include <memory>
#include <optional>
#include <thread>

#include "sluice/base/shared.hpp"
#include "sluice/executor/inline_executor.hpp"
#include "sluice/executor/manual_executor.hpp"
#include "sluice/executor/thread_pool.hpp"
#include "sluice/executor/work_stealing_pool.hpp"
#include "sluice/future/sync_wait.hpp"
#include "sluice/future/task.hpp"
#include "sluice/sim/testing/scenario.hpp"
#include "sluice/sync/event.hpp"
#include "tests/sim/posted_work.hpp"

namespace sluice::sim {
namespace {

using namespace std::chrono_literals;

// What it touches has no guard but the strand: a race would be found.
void two_submit_and_nothing_overlaps() {
  shared<int> sum{0};
  thread_pool pool({.core = 2, .capacity = 4, .time_every = 0});
  strand account(pool, {.capacity = 1, .per_turn = 1});
  std::jthread other([&] {
    for (int i = 0; i < 2; ++i) {
      check(account.submit([&] { sum.change() += 1; }) == status::ok, "an open strand to wait");
    }
  });
  for (int i = 0; i < 2; ++i) {
    check(account.submit([&] { sum.change() += 1; }) == status::ok, "an open strand to wait");
  }
  other.join();
  account.drain();
  check(sum.read() == 4, "every function to have run, one after the other");
}

void its_functions_run_in_their_order() {
  int last = 0;
  work_stealing_pool pool({.threads = 2, .capacity = 4, .deque_capacity = 4, .spares_max = 0});
  strand line(pool, {.capacity = 4, .per_turn = 2});
  for (const int i : {1, 2, 3}) {
    check(line.submit([&last, i] {
      check(last == i - 1, "the order in which they came in");
      last = i;
    }) == status::ok,
          "room");
  }
  line.drain();
  check(last == 3, "all of them to have run");
}

void who_submits_while_it_closes_hears_whether_it_will_run() {
  shared<int> runs{0};
  status answer = status::ok;
  thread_pool pool({.core = 1, .capacity = 2, .time_every = 0});
  {
    const auto owned = std::make_unique<strand>(pool, strand::options{.capacity = 2});
    auto& account = *owned;
    std::jthread other([&] { answer = account.submit([&] { ++runs.change(); }); });
    account.close();
  }
  check(answer == status::ok || answer == status::closed, "ok or closed");
  check(runs.read() == (answer ? 1 : 0), "what was accepted, and nothing else, to have run once");
}

void what_stop_hands_back_did_not_run_and_the_rest_did() {
  atomic<int> runs{0};
  atomic<int> accepted{0};
  std::size_t left = 0;
  thread_pool pool({.core = 1, .capacity = 2, .time_every = 0});
  {
    const auto owned =
        std::make_unique<strand>(pool, strand::options{.capacity = 4, .per_turn = 1});
    auto& account = *owned;
    const auto submit = [&] {
      if (account.submit([&] { runs.fetch_add(1, relaxed); })) accepted.fetch_add(1, relaxed);
    };
    std::jthread other([&] {
      submit();
      submit();
    });
    submit();
    left = account.stop().size();
  }
  check(runs.load() + static_cast<int>(left) == accepted.load(), "nothing lost, nothing twice");
}

void a_shutdown_within_an_hour_stops_what_takes_longer() {
  shared<bool> asked{false};
  event begun;
  event never;
  thread_pool pool({.core = 1, .capacity = 2, .time_every = 0});
  strand account(pool, {.capacity = 4});
  const auto began = seam::now();
  check(account.submit([&] {
    begun.set();
    asked.write(never.wait(account.stop_token()) == status::stopped);
  }) == status::ok,
        "room");
  check(account.submit([] {}) == status::ok, "room");
  begun.wait();
  const auto left = account.shutdown_within(deadline::after(1h));
  check(left.size() == 1 && asked.read(), "one to be asked to stop, one to be handed back");
  check(seam::now() - began >= 1h, "the whole hour to have passed");
}

void posts_run_once_and_one_at_a_time_also_after_the_end() {
  shared<int> sum{0};
  class adding final : public work {
   public:
    explicit adding(shared<int>& to) : to_(to) {}
    void run() noexcept override {
      to_.change() += 1;
      done.set();
    }
    event done;

   private:
    shared<int>& to_;
  } first(sum), second(sum);
  thread_pool pool({.core = 1, .capacity = 2, .time_every = 0});
  strand account(pool, {.capacity = 2});
  std::jthread other([&] { account.post(first); });
  account.drain();
  account.post(second);
  first.done.wait();
  second.done.wait();
  other.join();
  // Through the strand, the only guard of the sum. After its end, a post is its way in.
  std::optional<int> seen;
  class reading final : public work {
   public:
    reading(shared<int>& from, std::optional<int>& to) : from_(from), to_(to) {}
    void run() noexcept override {
      to_ = from_.read();
      done.set();
    }
    event done;

   private:
    shared<int>& from_;
    std::optional<int>& to_;
  } look(sum, seen);
  account.post(look);
  look.done.wait();
  check(seen == 2, "both to have run");
}

// Whoever waits for the last of its work may destroy it before post has returned.
void a_strand_may_be_destroyed_by_what_a_post_has_done() {
  setting_work item;
  std::jthread poster;
  thread_pool pool({.core = 1, .capacity = 2, .time_every = 0});
  {
    // On the heap, where a use after its end is found.
    const auto owned = std::make_unique<strand>(pool, strand::options{.capacity = 2});
    auto& account = *owned;
    poster = std::jthread([&account, &item] { account.post(item); });
    item.done.wait();
  }
  poster.join();
}

void it_lives_on_when_its_pool_has_ended() {
  shared<int> sum{0};
  thread_pool pool({.core = 1, .capacity = 2, .time_every = 0});
  const auto owned = std::make_unique<strand>(pool, strand::options{.capacity = 4});
  auto& account = *owned;
  std::jthread ends([&] { pool.drain(); });
  std::jthread other([&] {
    check(account.submit([&] { sum.change() += 1; }) == status::ok, "an open strand to take it");
  });
  check(account.submit([&] { sum.change() += 1; }) == status::ok, "an open strand to take it");
  other.join();
  account.drain();
  check(sum.read() == 2, "both to have run, whoever did it");
}

void who_awaits_its_end_goes_on() {
  shared<int> runs{0};
  thread_pool pool({.core = 1, .capacity = 2, .time_every = 0});
  strand account(pool, {.capacity = 2});
  std::jthread other([&] {
    check(account.submit([&] { ++runs.change(); }) == status::ok, "room");
    account.close();
  });
  const auto wait = [](strand& s) -> task<status> {
    const status ended = co_await s.async_join();
    co_return ended;
  };
  check(sync_wait(wait(account)) == status::ok && runs.read() == 1, "its end, and what it did");
}

// A strand on a strand, on an executor that two threads run by hand.
void two_turn_the_crank_of_a_strand_on_a_strand() {
  shared<int> sum{0};
  manual_executor crank;
  strand outer(crank, {.capacity = 2, .per_turn = 1});
  strand inner(outer, {.capacity = 2, .per_turn = 1});
  for (int i = 0; i < 2; ++i) {
    check(inner.submit([&] { sum.change() += 1; }) == status::ok, "room");
  }
  inner.close();
  outer.close();
  {
    std::jthread other([&] { (void)crank.run_all(); });
    (void)crank.run_all();
  }
  (void)crank.run_all();
  check(inner.join(deadline::after(0s)) == status::ok, "it to have come to its end");
  check(sum.read() == 2, "all to have run");
}

// On the inline executor whoever comes first runs what the others bring meanwhile.
void without_threads_of_its_own_one_runs_what_both_bring() {
  shared<int> sum{0};
  inline_executor here;
  strand account(here, {.capacity = 4});
  std::jthread other(
      [&] { check(account.submit([&] { sum.change() += 1; }) == status::ok, "room"); });
  check(account.submit([&] { sum.change() += 1; }) == status::ok, "room");
  other.join();
  account.drain();
  check(sum.read() == 2, "both to have run");
}

[[maybe_unused]] const bool added =
    add({.name = "strand: two submit and nothing overlaps",
         .how = {.schedules = 5'000},
         .body = &two_submit_and_nothing_overlaps}) &&
    add({.name = "strand: its functions run in their order",
         .how = {.schedules = 3'000},
         .body = &its_functions_run_in_their_order}) &&
    add({.name = "strand: who submits while it closes hears whether it will run",
         .how = {.schedules = 5'000},
         .body = &who_submits_while_it_closes_hears_whether_it_will_run}) &&
    add({.name = "strand: what stop hands back did not run, the rest did",
         .how = {.schedules = 3'500},
         .body = &what_stop_hands_back_did_not_run_and_the_rest_did}) &&
    add({.name = "strand: a shutdown within an hour stops what takes longer",
         .how = {.schedules = 2'500, .early_timeouts = false},
         .body = &a_shutdown_within_an_hour_stops_what_takes_longer}) &&
    add({.name = "strand: posts run one at a time, also after the end",
         .how = {.schedules = 5'000},
         .body = &posts_run_once_and_one_at_a_time_also_after_the_end}) &&
    add({.name = "strand: what a post has done may end it, every schedule",
         .how = exhaustively(1),
         .body = &a_strand_may_be_destroyed_by_what_a_post_has_done}) &&
    add({.name = "strand: what a post has done may end it",
         .how = {.schedules = 5'000},
         .body = &a_strand_may_be_destroyed_by_what_a_post_has_done}) &&
    add({.name = "strand: it lives on when its pool has ended",
         .how = {.schedules = 5'000},
         .body = &it_lives_on_when_its_pool_has_ended}) &&
    add({.name = "strand: who awaits its end goes on",
         .how = {.schedules = 3'000},
         .body = &who_awaits_its_end_goes_on}) &&
    add({.name = "strand: two turn the crank of a strand on a strand",
         .how = {.schedules = 3'000},
         .body = &two_turn_the_crank_of_a_strand_on_a_strand}) &&
    add({.name = "strand: without threads one runs what both bring",
         .how = {.schedules = 5'000},
         .body = &without_threads_of_its_own_one_runs_what_both_bring}) &&
    add({.name = "strand: without threads one runs what both bring, every schedule",
         .how = exhaustively(),
         .body = &without_threads_of_its_own_one_runs_what_both_bring});

}  // namespace
}  // namespace sluice::sim
