#include "sluice/sim/explore.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "sluice/base/atomic.hpp"
#include "sluice/base/check.hpp"
#include "sluice/base/detail/run_local.hpp"
#include "sluice/base/intrusive_list.hpp"
#include "sluice/base/race_checked.hpp"
#include "sluice/queue/bounded_queue.hpp"
#include "sluice/sync/event.hpp"

namespace sluice::sim::explore_test {
namespace {

using namespace std::chrono_literals;

void lost_update() {
  atomic<int> count{0};
  {
    const auto raise = [&] { count.store(count.load() + 1); };
    std::jthread a(raise);
    std::jthread b(raise);
  }
  check(count.load() == 2, "both counted");
}

result every_schedule_of(const std::function<void()>& body) {
  return explore({.search = search::exhaustive, .schedules = 0}, body);
}

TEST(Explore, ABodyWithoutThreadsHasOneSchedule) {
  const auto r = every_schedule_of([] {});
  EXPECT_TRUE(r.complete);
  EXPECT_EQ(r.schedules, 1U);
  EXPECT_FALSE(r.failed());
}

TEST(Explore, EverySearchFindsALostUpdate) {
  for (const auto mode : {search::random, search::pct, search::mixed, search::exhaustive}) {
    const auto r = explore({.search = mode, .schedules = 1'000}, &lost_update);
    EXPECT_TRUE(r.failed());
    EXPECT_EQ(r.kind, failure_kind::check);
    EXPECT_NE(r.message.find("both counted"), std::string::npos);
  }
}

TEST(Explore, AnExhaustiveSearchReportsThatItIsComplete) {
  const auto r = every_schedule_of([] {
    atomic<int> count{0};
    {
      const auto raise = [&] { count.fetch_add(1, relaxed); };
      std::jthread a(raise);
      std::jthread b(raise);
    }
    check(count.load() == 2, "both counted");
  });
  EXPECT_FALSE(r.failed()) << r.text();
  EXPECT_TRUE(r.complete);
  EXPECT_GT(r.schedules, 1U);
}

TEST(Explore, TheSameSeedGivesTheSameSchedules) {
  const auto one = explore({.schedules = 1'000, .seed = 5}, &lost_update);
  const auto two = explore({.schedules = 1'000, .seed = 5}, &lost_update);
  const auto other = explore({.schedules = 1'000, .seed = 6}, &lost_update);
  EXPECT_EQ(one.text(), two.text());
  EXPECT_NE(one.schedule, other.schedule);
}

TEST(Explore, ATraceReplaysTheSmallestScheduleThatFails) {
  const auto found = explore({.search = search::random}, &lost_update);
  ASSERT_TRUE(found.failed());
  const auto again = explore({.search = search::replay, .trace = found.trace}, &lost_update);
  EXPECT_TRUE(again.failed());
  EXPECT_EQ(again.schedules, 1U);
  EXPECT_EQ(again.steps_text, found.steps_text);
  EXPECT_EQ(again.message, found.message);
  // One switch away from a runnable thread is enough.
  EXPECT_EQ(std::ranges::count(found.trace, ','), 1) << found.trace;
}

// Fails in every schedule.
void count_too_far(int times) {
  atomic<int> count{0};
  {
    const auto raise = [&] {
      for (int i = 0; i < times; ++i) ++count;
    };
    std::jthread a(raise);
    std::jthread b(raise);
  }
  check(count.load() == 1, "too much");
}

TEST(Explore, AScheduleIsShownAsFoundWithoutTimeToMinimizeIt) {
  const auto body = [] { count_too_far(20); };
  const auto as_found = explore({.search = search::random, .minimize_max = 0ms}, body);
  const auto shorter = explore({.search = search::random}, body);
  ASSERT_TRUE(as_found.failed());
  EXPECT_EQ(std::ranges::count(shorter.trace, ','), 0) << shorter.trace;
  EXPECT_GT(std::ranges::count(as_found.trace, ','), 2) << as_found.trace;
  EXPECT_TRUE(explore({.search = search::replay, .trace = as_found.trace}, body).failed());
}

// With one change fewer, the second check fails in place of the first.
TEST(Explore, AMinimizedScheduleFailsTheSameCheck) {
  const auto body = [] {
    atomic<int> first{0};
    atomic<int> second{0};
    std::jthread other([&] {
      first.store(1);
      second.store(1);
    });
    const bool between = first.load() == 1 && second.load() == 0;
    other.join();
    check(!between, "not to be seen in between");
    check(false, "something else");
  };
  // Counts the seeds whose first failing schedule fails in the rare way.
  int rare = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    const auto mode = search::random;
    const auto as_found = explore({.search = mode, .seed = seed, .minimize_max = 0ms}, body);
    const auto shorter = explore({.search = mode, .seed = seed}, body);
    EXPECT_EQ(as_found.message, shorter.message) << "seed " << seed;
    rare += as_found.message.find("in between") != std::string::npos;
  }
  EXPECT_GT(rare, 0);
  EXPECT_LT(rare, 200);
}

TEST(Explore, AFailureThatDoesNotRepeatIsShownAsFound) {
  int runs = 0;
  const auto once = explore({}, [&] { check(++runs != 3, "the third run"); });
  ASSERT_TRUE(once.failed());
  EXPECT_EQ(once.schedule, 3U);
  EXPECT_NE(once.message.find("the third run"), std::string::npos) << once.message;
  EXPECT_NE(once.message.find("does not fail\n"), std::string::npos) << once.message;
  runs = 0;
  const auto otherwise = explore({}, [&] {
    ++runs;
    check(runs != 3, "the third run");
    check(runs < 4, "a later run");
  });
  EXPECT_NE(otherwise.message.find("the third run"), std::string::npos) << otherwise.message;
  EXPECT_NE(otherwise.message.find("differently: expected a later run"), std::string::npos)
      << otherwise.message;
}

TEST(ExploreDeathTest, RejectsASearchWithoutAnEnd) {
  for (const auto mode : {search::random, search::pct, search::mixed}) {
    EXPECT_DEATH((void)explore({.search = mode, .schedules = 0}, [] {}), "schedules or time_max");
  }
  EXPECT_GT(explore({.schedules = 0, .time_max = 1ms}, [] {}).schedules, 0U);
  EXPECT_TRUE(explore({.search = search::exhaustive, .schedules = 0}, [] {}).complete);
  EXPECT_EQ(explore({.search = search::replay, .schedules = 0, .trace = "1"}, [] {}).schedules, 1U);
}

// A simulated day has millions of steps.
TEST(Explore, ALongScheduleShowsItsLastSteps) {
  const options o{.search = search::random, .steps_max = 100'000, .minimize_max = 0ms};
  const auto found = explore(o, [] { count_too_far(5'000); });
  ASSERT_TRUE(found.failed());
  EXPECT_LE(std::ranges::count(found.steps_text, '\n'), 170);
  EXPECT_NE(found.steps_text.find("lines before these"), std::string::npos);
  EXPECT_NE(found.steps_text.find("too much"), std::string::npos);
  EXPECT_LT(found.text().size(), 40'000U);
  EXPECT_NE(found.text().find("run it again with this seed"), std::string::npos);
}

TEST(Explore, ShowsTheStepsInAColumnForEachThread) {
  const auto found = explore({}, &lost_update);
  EXPECT_NE(found.steps_text.find("body"), std::string::npos);
  EXPECT_NE(found.steps_text.find("thread 2"), std::string::npos);
  EXPECT_NE(found.steps_text.find("load #1 seq_cst = 0"), std::string::npos);
  EXPECT_NE(found.steps_text.find("explore_test.cpp:"), std::string::npos);
  EXPECT_NE(found.text().find(found.trace), std::string::npos);
}

TEST(ExploreDeathTest, RejectsAnInvalidTrace) {
  EXPECT_DEATH((void)explore({.search = search::replay, .trace = "1,x"}, [] {}), "a trace");
  EXPECT_DEATH((void)explore({.search = search::replay, .trace = ""}, [] {}), "a trace");
  EXPECT_DEATH((void)explore({.search = search::replay, .trace = "1,5t1,3t1"}, [] {}), "a trace");
}

TEST(Explore, FindsADeadlockAndNamesTheWaiters) {
  const auto r = explore({}, [] {
    std::mutex a;
    std::mutex b;
    std::jthread one([&] {
      const std::lock_guard first(a);
      const std::lock_guard second(b);
    });
    const std::lock_guard first(b);
    const std::lock_guard second(a);
  });
  ASSERT_TRUE(r.failed());
  EXPECT_EQ(r.kind, failure_kind::deadlock);
  EXPECT_NE(r.message.find("body waits: a mutex"), std::string::npos) << r.message;
  EXPECT_NE(r.message.find("thread 1 waits: a mutex"), std::string::npos) << r.message;
}

TEST(Explore, FindsALivelock) {
  const auto r = explore({.steps_max = 2'000}, [] {
    atomic<bool> never{false};
    while (!never.load()) yield();
  });
  EXPECT_EQ(r.kind, failure_kind::livelock);
  EXPECT_TRUE(r.failed());
}

TEST(Explore, ASpinThatAnotherThreadEndsIsNoLivelock) {
  const auto r = every_schedule_of([] {
    atomic<bool> done{false};
    std::jthread other([&] { done.store(true); });
    while (!done.load()) yield();
  });
  EXPECT_FALSE(r.failed()) << r.text();
  EXPECT_TRUE(r.complete);
}

TEST(Explore, FindsARaceOfPlainData) {
  const auto r = every_schedule_of([] {
    race_checked<int> data{0};
    std::jthread one([&] { data.write(1); });
    (void)data.read();
  });
  ASSERT_TRUE(r.failed());
  EXPECT_EQ(r.kind, failure_kind::race);
}

TEST(Explore, FindsNoRaceOfGuardedData) {
  const auto r = every_schedule_of([] {
    std::mutex m;
    race_checked<int> data{0};
    std::jthread one([&] {
      const std::lock_guard hold(m);
      data.change() += 1;
    });
    const std::lock_guard hold(m);
    data.change() += 1;
  });
  EXPECT_FALSE(r.failed()) << r.text();
  EXPECT_TRUE(r.complete);
}

TEST(Explore, FindsARaceInAList) {
  struct element : list_hook {};
  const auto r = every_schedule_of([] {
    element one;
    element two;
    {
      intrusive_list<element> list;
      std::jthread other([&] { list.push_back(one); });
      list.push_back(two);
      other.join();
      one.unlink();
      two.unlink();
    }
  });
  ASSERT_TRUE(r.failed());
  EXPECT_EQ(r.kind, failure_kind::race);
}

TEST(Explore, FindsAnElementThatIsFreedWhileLinked) {
  struct element : list_hook {};
  const auto r = explore({}, [] {
    intrusive_list<element> list;
    auto* const one = ::new (::operator new(sizeof(element))) element;
    list.push_back(*one);
    ::operator delete(static_cast<void*>(one));  // without its destructor, whose check would fail
    element two;
    list.push_back(two);
  });
  ASSERT_TRUE(r.failed());
  EXPECT_EQ(r.kind, failure_kind::use_after_free);
}

void leak() {
  [[maybe_unused]] static int* volatile kept = nullptr;
  kept = new int(1);
}

TEST(Explore, FindsALeak) {
  const auto r = explore({}, &leak);
  EXPECT_EQ(r.kind, failure_kind::leak);
  EXPECT_TRUE(r.failed());
  EXPECT_FALSE(explore({.leaks = false}, &leak).failed());
}

TEST(Explore, FindsAUseAfterFree) {
  // The last thread to leave frees it; the other one still reads it.
  const auto r = explore({}, [] {
    struct hall {
      atomic<int> inside{2};
      atomic<bool> lit{true};
    };
    auto* const h = new hall;
    const auto leave = [h] {
      if (h->inside.fetch_sub(1) == 1) {
        delete h;
      } else {
        (void)h->lit.load();
      }
    };
    std::jthread one(leave);
    leave();
  });
  ASSERT_TRUE(r.failed());
  EXPECT_EQ(r.kind, failure_kind::use_after_free);
}

TEST(Explore, FindsADoubleFree) {
  const auto r = explore({}, [] {
    int* volatile p = new int(1);
    delete p;
    delete p;
  });
  EXPECT_EQ(r.kind, failure_kind::use_after_free);
  EXPECT_TRUE(r.failed());
}

TEST(Explore, FindsACrash) {
  const auto r = explore({}, [] {
    volatile int* volatile nowhere = nullptr;
    *nowhere = 1;
  });
  EXPECT_EQ(r.kind, failure_kind::crash);
  EXPECT_TRUE(r.failed());
}

TEST(Explore, FindsAnExceptionThatLeavesAThread) {
  const auto r = explore({}, [] { throw std::runtime_error("full"); });
  EXPECT_EQ(r.kind, failure_kind::exception);
  EXPECT_NE(r.message.find("full"), std::string::npos);
}

TEST(Explore, FindsABrokenContract) {
  const auto r = explore({}, [] { sluice::check(false, "sluice::thing", "the impossible"); });
  EXPECT_EQ(r.kind, failure_kind::check);
  EXPECT_NE(r.message.find("the impossible"), std::string::npos);
}

TEST(Explore, ContinuesAfterAFailure) {
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(explore({}, &lost_update).failed());
    EXPECT_FALSE(explore({.schedules = 10}, [] { (void)std::make_unique<int>(1); }).failed());
  }
}

TEST(Explore, TheNumbersOfJoinedThreadsAreReused) {
  const auto r = explore({.schedules = 20}, [] {
    race_checked<int> data{0};
    for (int i = 0; i < 100; ++i) {
      const std::jthread one([&] { data.write(data.read() + 1); });
    }
    check(data.read() == 100, "every thread to have run");
  });
  EXPECT_FALSE(r.failed()) << r.text();
}

TEST(Explore, FindsARaceOfAThreadWithAReusedNumber) {
  const auto r = explore({.schedules = 100}, [] {
    race_checked<int> data{0};
    for (int i = 0; i < 40; ++i) {
      const std::jthread one([&] { data.write(i); });
    }
    const std::jthread late([&] { data.write(1); });
    data.write(2);
  });
  EXPECT_EQ(r.kind, failure_kind::race);
  EXPECT_TRUE(r.failed());
}

TEST(Explore, AStopCallbackMayBeDestroyedOnAnotherThread) {
  const auto r = explore({.schedules = 200}, [] {
    std::stop_source stop;
    atomic<int> called{0};
    std::jthread owner([&] {
      const std::stop_callback when_asked(stop.get_token(), [&] { called.fetch_add(1); });
      while (called.load() == 0) yield();
    });
    stop.request_stop();
  });
  EXPECT_FALSE(r.failed()) << r.text();
}

TEST(Explore, ThreadLocalVariablesAreNotShared) {
  const auto r = explore({.search = search::exhaustive, .schedules = 0}, [] {
    static constinit thread_local atomic<int> own{0};
    auto count = [] {
      seam::writes_plain(&own);
      check(own.fetch_add(1) == 0, "a variable of its own");
      check(own.load() == 1, "its own increment");
    };
    const std::jthread other(count);
    count();
  });
  EXPECT_FALSE(r.failed()) << r.text();
}

TEST(Explore, TheDestructorOfAStopCallbackWaitsAndSeesItsEffect) {
  const auto r = explore({.schedules = 2'000}, [] {
    race_checked<int> calls{0};
    std::stop_source asks;
    auto call = [&] { ++calls.change(); };
    std::optional<std::stop_callback<decltype(call)>> waits(std::in_place, asks.get_token(), call);
    const std::jthread other([&] { asks.request_stop(); });
    waits.reset();
    check(calls.read() <= 1, "at most one call");
  });
  EXPECT_FALSE(r.failed()) << r.text();
}

TEST(Explore, TheLastOwnerSeesTheWritesOfTheOthers) {
  const auto r = explore({.schedules = 2'000}, [] {
    struct counted {
      ~counted() { check(n.load(relaxed) == 2, "the increments of both"); }
      atomic<int> n{0};
    };
    auto one = std::make_shared<counted>();
    const std::jthread other([two = one]() mutable {
      two->n.fetch_add(1, relaxed);
      two.reset();
    });
    one->n.fetch_add(1, relaxed);
    one.reset();
  });
  EXPECT_FALSE(r.failed()) << r.text();
}

TEST(Explore, ABackgroundThreadRunsUntilItBlocks) {
  const auto r = explore({.schedules = 500}, [] {
    struct held {
      event ready;
    };
    seam::run_forever(
        [](void* at) {
          const std::unique_ptr<held> owned(static_cast<held*>(at));
          owned->ready.wait();
        },
        new held);
  });
  EXPECT_TRUE(r.failed()) << "memory of a background thread that is blocked is a leak";
  const auto ends = explore({.schedules = 500}, [] {
    seam::run_forever(
        [](void* at) {
          const std::unique_ptr<atomic<int>> owned(static_cast<atomic<int>*>(at));
          for (int i = 0; i < 5; ++i) owned->fetch_add(1);
        },
        new atomic<int>(0));
  });
  EXPECT_FALSE(ends.failed()) << ends.text();
}

TEST(Simulated, TimePassesOnlyInTheSchedule) {
  const auto began = std::chrono::steady_clock::now();
  const auto r = explore({.schedules = 10}, [] {
    const auto start = std::chrono::steady_clock::now();
    const auto wall = std::chrono::system_clock::now();
    std::this_thread::sleep_for(24h);
    check(std::chrono::steady_clock::now() - start >= 24h, "a day to have passed");
    check(std::chrono::system_clock::now() - wall >= 24h, "a day to have passed on the wall clock");
    bounded_queue<int> q(1);
    check(q.pop(1h).status() == status::timed_out, "an hour to pass in a wait");
  });
  EXPECT_FALSE(r.failed()) << r.text();
  EXPECT_LT(std::chrono::steady_clock::now() - began, 1h);
}

TEST(Simulated, ConditionsOfTheStandardLibraryWork) {
  const auto r = explore({.schedules = 2'000}, [] {
    std::mutex m;
    std::condition_variable changed;
    race_checked<int> turn{0};
    std::jthread one([&] {
      std::unique_lock hold(m);
      changed.wait(hold, [&] { return turn.read() == 1; });
      turn.write(2);
      changed.notify_all();
    });
    std::unique_lock hold(m);
    turn.write(1);
    changed.notify_all();
    changed.wait(hold, [&] { return turn.read() == 2; });
    check(!changed.wait_for(hold, 1s, [] { return false; }), "the wait to time out");
  });
  EXPECT_FALSE(r.failed()) << r.text();
}

TEST(Simulated, ReadersShareAndWritersDoNot) {
  const auto r = explore({.schedules = 2'000}, [] {
    std::shared_mutex m;
    race_checked<int> value{0};
    std::jthread reader([&] {
      const std::shared_lock hold(m);
      (void)value.read();
    });
    std::jthread writer([&] {
      const std::unique_lock hold(m);
      value.change() += 1;
    });
    const std::shared_lock hold(m);
    (void)value.read();
  });
  EXPECT_FALSE(r.failed()) << r.text();
}

struct counts_its_end {
  explicit counts_its_end(atomic<int>& ended) : ended_(ended) {}
  ~counts_its_end() { ended_.fetch_add(1); }
  atomic<int>& ended_;
};

TEST(Simulated, EachThreadHasItsOwnThreadLocals) {
  const auto r = explore({.schedules = 500}, [] {
    atomic<int> ended{0};
    static constinit thread_local int own = 7;
    const auto use = [&] {
      static thread_local counts_its_end at_thread_end(ended);
      check(own == 7, "the initial value in every thread");
      own = 8;
      ended.load();
      check(own == 8, "this thread's value");
    };
    {
      std::jthread one(use);
      std::jthread two(use);
    }
    check(ended.load() == 2, "both destroyed with their threads");
    check(own == 7, "an unchanged value in this thread");
  });
  EXPECT_FALSE(r.failed()) << r.text();
}

TEST(Simulated, ExceptionsBelongToTheirThread) {
  const auto r = explore({.schedules = 500}, [] {
    atomic<int> turn{0};
    const auto thrower = [&](int number) {
      try {
        throw number;
      } catch (int caught) {
        turn.fetch_add(1);
        try {
          turn.fetch_add(1);
          throw;
        } catch (int again) {
          check(caught == number && again == number, "this thread's exception");
        }
      }
    };
    std::jthread one([&] { thrower(1); });
    thrower(2);
  });
  EXPECT_FALSE(r.failed()) << r.text();
}

TEST(Simulated, AStopCallbackRunsOnTheRequestingThread) {
  const auto r = explore({.schedules = 2'000}, [] {
    std::stop_source source;
    bounded_queue<int> q(1);
    std::jthread waits(
        [&] { check(q.pop(source.get_token()).status() == status::stopped, "to be stopped"); });
    source.request_stop();
  });
  EXPECT_FALSE(r.failed()) << r.text();
}

TEST(Simulated, AWaitMayTimeOutAlthoughOthersCouldRun) {
  int timed_out = 0;
  int served = 0;
  const auto r = explore({.schedules = 2'000}, [&] {
    bounded_queue<int> q(1);
    std::jthread maker([&] { (void)q.try_push(1); });
    (q.pop(1s) ? served : timed_out) += 1;
  });
  EXPECT_FALSE(r.failed()) << r.text();
  EXPECT_GT(timed_out, 0);
  EXPECT_GT(served, timed_out);
}

}  // namespace
}  // namespace sluice::sim::explore_test
