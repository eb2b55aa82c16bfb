#include "sluice/executor/executor.hpp"

#include <array>
#include <chrono>
#include <thread>
#include <utility>

#include "sluice/base/shared.hpp"
#include "sluice/executor/inline_executor.hpp"
#include "sluice/executor/manual_executor.hpp"
#include "sluice/future/sync_wait.hpp"
#include "sluice/future/task.hpp"
#include "sluice/sim/testing/scenario.hpp"
#include "tests/sim/posted_work.hpp"

namespace sluice::sim {
namespace {

using namespace std::chrono_literals;

void two_who_run_it_share_what_there_is() {
  std::array<shared<int>, 3> runs;
  manual_executor later({.capacity = 4});
  for (auto& each : runs) {
    check(later.submit([&each] { ++each.change(); }) == status::ok, "room");
  }
  std::size_t by_other = 0;
  std::jthread other([&] { by_other = later.run_all(); });
  const std::size_t by_me = later.run_all();
  other.join();
  check(by_me + by_other == runs.size(), "each to be run by one of the two");
  for (auto& each : runs) check(each.read() == 1, "each to have run once");
}

void who_waits_for_work_gets_all_of_it_and_then_the_end() {
  shared<int> runs{0};
  manual_executor later({.capacity = 1, .overflow = overflow::block});
  std::jthread maker([&] {
    for (int i = 0; i < 2; ++i) {
      check(later.submit([&] { ++runs.change(); }) == status::ok, "an open one to wait for room");
    }
    later.close();
  });
  int served = 0;
  while (later.run_next()) ++served;
  check(served == 2 && runs.read() == 2, "all to be run before it says closed");
}

void a_limited_wait_for_work_takes_nothing() {
  shared<int> runs{0};
  manual_executor later({.capacity = 2});
  std::jthread maker([&] { check(later.submit([&] { ++runs.change(); }) == status::ok, "room"); });
  const status how = later.run_next(deadline::after(1s));
  check(how == status::ok || how == status::timed_out, "ok or timed out");
  maker.join();
  const std::size_t left = later.run_all();
  check(left == (how ? 0U : 1U) && runs.read() == 1, "it to be run now or later, once");
}

void posts_that_are_left_are_run_and_submissions_are_not() {
  counted_work item;
  shared<int> runs{0};
  {
    manual_executor later({.capacity = 2});
    std::jthread other([&] { later.post(item); });
    check(later.submit([&] { ++runs.change(); }) == status::ok, "room");
  }
  check(item.runs.load() == 1 && runs.read() == 0, "what was posted to have run, and only that");
}

template <overflow Policy>
void what_a_full_one_does_adds_up() {
  shared<int> runs{0};
  atomic<int> dropped{0};
  manual_executor later({.capacity = 1, .overflow = Policy, .on_drop = [&](submission&&) {
                           dropped.fetch_add(1, relaxed);
                         }});
  int accepted = 0;
  int refused = 0;
  const auto submit = [&] { return later.submit([&] { ++runs.change(); }); };
  status from_other = status::closed;
  std::jthread other([&] { from_other = submit(); });
  const status mine = submit();
  other.join();
  for (const status s : {mine, from_other}) {
    accepted += s == status::ok ? 1 : 0;
    refused += s == status::full ? 1 : 0;
  }
  (void)later.run_all();
  check(runs.read() == 1, "one to fit in");
  check(refused + dropped.load() == 1, "the other to be refused or dropped");
  check(accepted == (Policy == overflow::drop_oldest || Policy == overflow::latest ? 2 : 1),
        "the submitter to hear it, where it is its own");
}

task<status> hand_in(manual_executor& to, shared<int>& runs, wait_limits limits) {
  const status how = co_await to.async_submit([&runs] { ++runs.change(); }, std::move(limits));
  co_return how;
}

void who_awaits_room_gets_it_or_has_given_nothing() {
  shared<int> runs{0};
  manual_executor later({.capacity = 1, .overflow = overflow::block});
  check(later.submit([&] { ++runs.change(); }) == status::ok, "room");
  std::jthread runner([&] { check(later.run_one(), "one to be there"); });
  const status how = sync_wait(hand_in(later, runs, deadline::after(1s)));
  check(how == status::ok || how == status::timed_out, "ok or timed out");
  runner.join();
  (void)later.run_all();
  check(runs.read() == (how ? 2 : 1), "what was accepted to have run, and nothing else");
}

// Each thread has its own turn; what is posted from inside runs after, on that thread.
void inline_posts_need_no_stack_and_no_other_thread() {
  inline_executor here;
  const auto in_turn = [&here] {
    counted_work second;
    class first_work final : public work {
     public:
      first_work(inline_executor& on, counted_work& next) : on_(on), next_(next) {}
      void run() noexcept override {
        on_.post(next_);
        check(next_.runs.load() == 0, "what is posted from inside to run after");
      }

     private:
      inline_executor& on_;
      counted_work& next_;
    } first(here, second);
    here.post(first);
    check(second.runs.load() == 1, "both to have run when post returns");
    bool ran = false;
    check(here.submit([&] { ran = executor::current() == &here; }) == status::ok && ran,
          "a submission to run at once");
  };
  std::jthread other(in_turn);
  in_turn();
}

[[maybe_unused]] const bool added =
    add({.name = "manual_executor: two who run it share what there is",
         .how = {.schedules = 5'000},
         .body = &two_who_run_it_share_what_there_is}) &&
    add({.name = "manual_executor: who waits for work gets all, then the end",
         .how = {.schedules = 5'000},
         .body = &who_waits_for_work_gets_all_of_it_and_then_the_end}) &&
    add({.name = "manual_executor: a limited wait for work takes nothing",
         .how = {.schedules = 5'000},
         .body = &a_limited_wait_for_work_takes_nothing}) &&
    add({.name = "manual_executor: a limited wait for work, every schedule",
         .how = exhaustively(),
         .body = &a_limited_wait_for_work_takes_nothing}) &&
    add({.name = "manual_executor: posts that are left are run",
         .how = {.schedules = 3'000},
         .body = &posts_that_are_left_are_run_and_submissions_are_not}) &&
    add({.name = "queued_executor: what a full one rejects adds up",
         .how = exhaustively(),
         .body = &what_a_full_one_does_adds_up<overflow::reject>}) &&
    add({.name = "queued_executor: what a full one drops of the newest adds up",
         .how = exhaustively(),
         .body = &what_a_full_one_does_adds_up<overflow::drop_newest>}) &&
    add({.name = "queued_executor: what a full one drops of the oldest adds up",
         .how = exhaustively(),
         .body = &what_a_full_one_does_adds_up<overflow::drop_oldest>}) &&
    add({.name = "queued_executor: what a full one replaces adds up",
         .how = exhaustively(),
         .body = &what_a_full_one_does_adds_up<overflow::latest>}) &&
    add({.name = "queued_executor: who awaits room gets it or gave nothing",
         .how = {.schedules = 3'500},
         .body = &who_awaits_room_gets_it_or_has_given_nothing}) &&
    add({.name = "inline_executor: posts need no stack and no other thread",
         .how = exhaustively(),
         .body = &inline_posts_need_no_stack_and_no_other_thread});

}  // namespace
}  // namespace sluice::sim
