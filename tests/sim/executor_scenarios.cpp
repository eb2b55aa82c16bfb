#include "sluice/executor/executor.hpp"

#include <array>
#include <chrono>
#include <thread>
#include <utility>

#include "sluice/base/race_checked.hpp"
#include "sluice/executor/inline_executor.hpp"
#include "sluice/executor/manual_executor.hpp"
#include "sluice/future/sync_wait.hpp"
#include "sluice/future/task.hpp"
#include "sluice/sim/testing/scenario.hpp"
#include "tests/sim/posted_work.hpp"

namespace sluice::sim {
namespace {

using namespace std::chrono_literals;

void two_runners_share_the_queued_functions() {
  std::array<race_checked<int>, 3> runs;
  manual_executor later({.capacity = 4});
  for (auto& each : runs) {
    check(later.submit([&each] { ++each.change(); }) == status::ok, "capacity");
  }
  std::size_t by_other = 0;
  std::jthread other([&] { by_other = later.run_all(); });
  const std::size_t by_me = later.run_all();
  other.join();
  check(by_me + by_other == runs.size(), "every function to run on one of the two");
  for (auto& each : runs) check(each.read() == 1, "each to have run once");
}

void a_waiting_runner_gets_all_work_then_closed() {
  race_checked<int> runs{0};
  manual_executor later({.capacity = 1, .overflow = overflow::block});
  std::jthread maker([&] {
    for (int i = 0; i < 2; ++i) {
      check(later.submit([&] { ++runs.change(); }) == status::ok,
            "an open executor to wait for capacity");
    }
    later.close();
  });
  int served = 0;
  while (later.run_next()) ++served;
  check(served == 2 && runs.read() == 2, "all to run before status closed");
}

void a_timed_out_wait_for_work_takes_nothing() {
  race_checked<int> runs{0};
  manual_executor later({.capacity = 2});
  std::jthread maker(
      [&] { check(later.submit([&] { ++runs.change(); }) == status::ok, "capacity"); });
  const status outcome = later.run_next(deadline::after(1s));
  check(outcome == status::ok || outcome == status::timed_out, "ok or timed out");
  maker.join();
  const std::size_t left = later.run_all();
  check(left == (outcome ? 0U : 1U) && runs.read() == 1, "the function to run once, now or later");
}

void remaining_posts_run_and_submissions_do_not() {
  counted_work item;
  race_checked<int> runs{0};
  {
    manual_executor later({.capacity = 2});
    std::jthread other([&] { later.post(item); });
    check(later.submit([&] { ++runs.change(); }) == status::ok, "capacity");
  }
  check(item.runs.load() == 1 && runs.read() == 0, "only the post to have run");
}

template <overflow Policy>
void the_counts_of_a_full_one_add_up() {
  race_checked<int> runs{0};
  atomic<int> dropped{0};
  manual_executor later({.capacity = 1, .overflow = Policy, .on_drop = [&](submission&&) {
                           dropped.fetch_add(1, relaxed);
                         }});
  int accepted = 0;
  int refused = 0;
  const auto submit = [&] { return later.submit([&] { ++runs.change(); }); };
  status from_other = status::closed;
  std::jthread other([&] { from_other = submit(); });
  const status from_here = submit();
  other.join();
  for (const status s : {from_here, from_other}) {
    accepted += s == status::ok ? 1 : 0;
    refused += s == status::full ? 1 : 0;
  }
  (void)later.run_all();
  check(runs.read() == 1, "one function to fit");
  check(refused + dropped.load() == 1, "the other to be rejected or dropped");
  check(accepted == (Policy == overflow::drop_oldest || Policy == overflow::latest ? 2 : 1),
        "the submitter to be notified if its own function was rejected");
}

task<status> submits(manual_executor& target, race_checked<int>& runs, wait_limits limits) {
  const status outcome =
      co_await target.async_submit([&runs] { ++runs.change(); }, std::move(limits));
  co_return outcome;
}

void an_awaited_submission_is_accepted_or_keeps_its_function() {
  race_checked<int> runs{0};
  manual_executor later({.capacity = 1, .overflow = overflow::block});
  check(later.submit([&] { ++runs.change(); }) == status::ok, "capacity");
  std::jthread runner([&] { check(later.run_one(), "a function to run"); });
  const status outcome = sync_wait(submits(later, runs, deadline::after(1s)));
  check(outcome == status::ok || outcome == status::timed_out, "ok or timed out");
  runner.join();
  (void)later.run_all();
  check(runs.read() == (outcome ? 2 : 1), "exactly the accepted functions to have run");
}

// Each thread runs its own posts; a nested post runs afterwards, on the same thread.
void nested_inline_posts_run_afterwards_on_the_same_thread() {
  inline_executor here;
  const auto in_turn = [&here] {
    counted_work second;
    class first_work final : public work {
     public:
      first_work(inline_executor& on, counted_work& next) : on_(on), next_(next) {}
      void run() noexcept override {
        on_.post(next_);
        check(next_.runs.load() == 0, "a nested post to run afterwards");
      }

     private:
      inline_executor& on_;
      counted_work& next_;
    } first(here, second);
    here.post(first);
    check(second.runs.load() == 1, "both to have run when post returns");
    bool ran = false;
    check(here.submit([&] { ran = executor::current() == &here; }) == status::ok && ran,
          "a submission to run immediately");
  };
  std::jthread other(in_turn);
  in_turn();
}

[[maybe_unused]] const bool added =
    add({.name = "manual_executor: two runners share the queued functions",
         .options = {.schedules = 5'000},
         .body = &two_runners_share_the_queued_functions}) &&
    add({.name = "manual_executor: a waiting runner gets all work, then closed",
         .options = {.schedules = 5'000},
         .body = &a_waiting_runner_gets_all_work_then_closed}) &&
    add({.name = "manual_executor: a timed-out wait for work takes nothing",
         .options = {.schedules = 5'000},
         .body = &a_timed_out_wait_for_work_takes_nothing}) &&
    add({.name = "manual_executor: a timed-out wait for work, every schedule",
         .options = exhaustively(),
         .body = &a_timed_out_wait_for_work_takes_nothing}) &&
    add({.name = "manual_executor: remaining posts run",
         .options = {.schedules = 3'000},
         .body = &remaining_posts_run_and_submissions_do_not}) &&
    add({.name = "queued_executor: reject: the counts of a full one add up",
         .options = exhaustively(),
         .body = &the_counts_of_a_full_one_add_up<overflow::reject>}) &&
    add({.name = "queued_executor: drop_newest: the counts of a full one add up",
         .options = exhaustively(),
         .body = &the_counts_of_a_full_one_add_up<overflow::drop_newest>}) &&
    add({.name = "queued_executor: drop_oldest: the counts of a full one add up",
         .options = exhaustively(),
         .body = &the_counts_of_a_full_one_add_up<overflow::drop_oldest>}) &&
    add({.name = "queued_executor: latest: the counts of a full one add up",
         .options = exhaustively(),
         .body = &the_counts_of_a_full_one_add_up<overflow::latest>}) &&
    add({.name = "queued_executor: an awaited submission is accepted or keeps its function",
         .options = {.schedules = 3'500},
         .body = &an_awaited_submission_is_accepted_or_keeps_its_function}) &&
    add({.name = "inline_executor: nested posts run afterwards on the same thread",
         .options = exhaustively(),
         .body = &nested_inline_posts_run_afterwards_on_the_same_thread});

}  // namespace
}  // namespace sluice::sim
