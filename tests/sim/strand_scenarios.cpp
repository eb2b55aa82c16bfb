#include "sluice/executor/strand.hpp"

#include <chrono>
#include <memory>
#include <optional>
#include <thread>

#include "sluice/base/race_checked.hpp"
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

// Only the strand guards the data: a race would be found.
void functions_of_two_submitters_do_not_overlap() {
  race_checked<int> sum{0};
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
      check(last == i - 1, "the order of the submissions");
      last = i;
    }) == status::ok,
          "capacity");
  }
  line.drain();
  check(last == 3, "all of them to have run");
}

void a_submission_during_close_reports_whether_it_runs() {
  race_checked<int> runs{0};
  status answer = status::ok;
  thread_pool pool({.core = 1, .capacity = 2, .time_every = 0});
  {
    const auto owned = std::make_unique<strand>(pool, strand::options{.capacity = 2});
    auto& account = *owned;
    std::jthread other([&] { answer = account.submit([&] { ++runs.change(); }); });
    account.close();
  }
  check(answer == status::ok || answer == status::closed, "ok or closed");
  check(runs.read() == (answer ? 1 : 0), "exactly the accepted function to have run once");
}

void stop_returns_exactly_the_functions_that_did_not_run() {
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
  check(runs.load() + static_cast<int>(left) == accepted.load(), "every item exactly once");
}

void a_shutdown_with_a_time_limit_stops_longer_functions() {
  race_checked<bool> asked{false};
  event begun;
  event never;
  thread_pool pool({.core = 1, .capacity = 2, .time_every = 0});
  strand account(pool, {.capacity = 4});
  const auto began = seam::now();
  check(account.submit([&] {
    begun.set();
    asked.write(never.wait(account.stop_token()) == status::stopped);
  }) == status::ok,
        "capacity");
  check(account.submit([] {}) == status::ok, "capacity");
  begun.wait();
  const auto left = account.shutdown(deadline::after(1h));
  check(left.size() == 1 && asked.read(), "one stop request and one returned function");
  check(seam::now() - began >= 1h, "a whole hour");
}

void posts_run_once_and_one_at_a_time_also_after_the_end() {
  race_checked<int> sum{0};
  class adding final : public work {
   public:
    explicit adding(race_checked<int>& sum) : sum_(sum) {}
    void run() noexcept override {
      sum_.change() += 1;
      done.set();
    }
    event done;

   private:
    race_checked<int>& sum_;
  } first(sum), second(sum);
  thread_pool pool({.core = 1, .capacity = 2, .time_every = 0});
  strand account(pool, {.capacity = 2});
  std::jthread other([&] { account.post(first); });
  account.drain();
  account.post(second);
  first.done.wait();
  second.done.wait();
  other.join();
  // Reads on the strand, the only guard of the sum. After its end, only a post can run on it.
  std::optional<int> seen;
  class reading final : public work {
   public:
    reading(race_checked<int>& sum, std::optional<int>& result) : sum_(sum), result_(result) {}
    void run() noexcept override {
      result_ = sum_.read();
      done.set();
    }
    event done;

   private:
    race_checked<int>& sum_;
    std::optional<int>& result_;
  } reader(sum, seen);
  account.post(reader);
  reader.done.wait();
  check(seen == 2, "both to have run");
}

// A waiter for its last work may destroy it before post has returned.
void a_strand_may_be_destroyed_by_the_effect_of_a_post() {
  setting_work item;
  std::jthread poster;
  thread_pool pool({.core = 1, .capacity = 2, .time_every = 0});
  {
    // On the heap, where a use after free is detected.
    const auto owned = std::make_unique<strand>(pool, strand::options{.capacity = 2});
    auto& account = *owned;
    poster = std::jthread([&account, &item] { account.post(item); });
    item.done.wait();
  }
  poster.join();
}

void it_works_on_after_its_pool_has_ended() {
  race_checked<int> sum{0};
  thread_pool pool({.core = 1, .capacity = 2, .time_every = 0});
  const auto owned = std::make_unique<strand>(pool, strand::options{.capacity = 4});
  auto& account = *owned;
  std::jthread ends([&] { pool.drain(); });
  std::jthread other([&] {
    check(account.submit([&] { sum.change() += 1; }) == status::ok, "an open strand to accept it");
  });
  check(account.submit([&] { sum.change() += 1; }) == status::ok, "an open strand to accept it");
  other.join();
  account.drain();
  check(sum.read() == 2, "both to have run");
}

void its_end_resumes_an_awaiting_task() {
  race_checked<int> runs{0};
  thread_pool pool({.core = 1, .capacity = 2, .time_every = 0});
  strand account(pool, {.capacity = 2});
  std::jthread other([&] {
    check(account.submit([&] { ++runs.change(); }) == status::ok, "capacity");
    account.close();
  });
  const auto wait = [](strand& s) -> task<status> {
    const status ended = co_await s.async_join();
    co_return ended;
  };
  check(sync_wait(wait(account)) == status::ok && runs.read() == 1,
        "its end, and the effect of its function");
}

// A strand on a strand, on an executor that two threads run by hand.
void two_threads_run_a_strand_on_a_strand() {
  race_checked<int> sum{0};
  manual_executor crank;
  strand outer(crank, {.capacity = 2, .per_turn = 1});
  strand inner(outer, {.capacity = 2, .per_turn = 1});
  for (int i = 0; i < 2; ++i) {
    check(inner.submit([&] { sum.change() += 1; }) == status::ok, "capacity");
  }
  inner.close();
  outer.close();
  {
    std::jthread other([&] { (void)crank.run_all(); });
    (void)crank.run_all();
  }
  (void)crank.run_all();
  check(inner.join(deadline::after(0s)) == status::ok, "its end");
  check(sum.read() == 2, "all to have run");
}

// On the inline executor the first submitter runs the functions submitted meanwhile.
void without_threads_one_submitter_runs_both_functions() {
  race_checked<int> sum{0};
  inline_executor here;
  strand account(here, {.capacity = 4});
  std::jthread other(
      [&] { check(account.submit([&] { sum.change() += 1; }) == status::ok, "capacity"); });
  check(account.submit([&] { sum.change() += 1; }) == status::ok, "capacity");
  other.join();
  account.drain();
  check(sum.read() == 2, "both to have run");
}

[[maybe_unused]] const bool added =
    add({.name = "strand: functions of two submitters do not overlap",
         .options = {.schedules = 5'000},
         .body = &functions_of_two_submitters_do_not_overlap}) &&
    add({.name = "strand: its functions run in their order",
         .options = {.schedules = 3'000},
         .body = &its_functions_run_in_their_order}) &&
    add({.name = "strand: a submission during close reports whether it runs",
         .options = {.schedules = 5'000},
         .body = &a_submission_during_close_reports_whether_it_runs}) &&
    add({.name = "strand: stop returns exactly the functions that did not run",
         .options = {.schedules = 3'500},
         .body = &stop_returns_exactly_the_functions_that_did_not_run}) &&
    add({.name = "strand: a shutdown with a time limit stops longer functions",
         .options = {.schedules = 2'500, .early_timeouts = false},
         .body = &a_shutdown_with_a_time_limit_stops_longer_functions}) &&
    add({.name = "strand: posts run one at a time, also after the end",
         .options = {.schedules = 5'000},
         .body = &posts_run_once_and_one_at_a_time_also_after_the_end}) &&
    add({.name = "strand: the effect of a post may destroy it, every schedule",
         .options = exhaustively(1),
         .body = &a_strand_may_be_destroyed_by_the_effect_of_a_post}) &&
    add({.name = "strand: the effect of a post may destroy it",
         .options = {.schedules = 5'000},
         .body = &a_strand_may_be_destroyed_by_the_effect_of_a_post}) &&
    add({.name = "strand: it works on after its pool has ended",
         .options = {.schedules = 5'000},
         .body = &it_works_on_after_its_pool_has_ended}) &&
    add({.name = "strand: its end resumes an awaiting task",
         .options = {.schedules = 3'000},
         .body = &its_end_resumes_an_awaiting_task}) &&
    add({.name = "strand: two threads run a strand on a strand",
         .options = {.schedules = 3'000},
         .body = &two_threads_run_a_strand_on_a_strand}) &&
    add({.name = "strand: without threads one submitter runs both functions",
         .options = {.schedules = 5'000},
         .body = &without_threads_one_submitter_runs_both_functions}) &&
    add({.name = "strand: without threads one submitter runs both functions, every schedule",
         .options = exhaustively(),
         .body = &without_threads_one_submitter_runs_both_functions});

}  // namespace
}  // namespace sluice::sim
