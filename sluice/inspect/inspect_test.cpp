#include "sluice/inspect/inspect.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <latch>
#include <memory>
#include <mutex>
#include <set>
#include <shared_mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "sluice/base/this_thread.hpp"
#include "sluice/channel/select.hpp"
#include "sluice/executor/inline_executor.hpp"
#include "sluice/executor/thread_pool.hpp"
#include "sluice/future/async.hpp"
#include "sluice/future/future.hpp"
#include "sluice/future/spawn.hpp"
#include "sluice/future/sync_wait.hpp"
#include "sluice/inspect/testing/looking.hpp"
#include "sluice/queue/bounded_queue.hpp"
#include "sluice/queue/spsc_ring.hpp"
#include "sluice/sync/barrier.hpp"
#include "sluice/sync/condition.hpp"
#include "sluice/sync/event.hpp"
#include "sluice/sync/fair_mutex.hpp"
#include "sluice/sync/guarded.hpp"
#include "sluice/sync/latch.hpp"
#include "sluice/sync/mutex.hpp"
#include "sluice/sync/semaphore.hpp"
#include "sluice/sync/shared_mutex.hpp"

namespace sluice::testing::inspect_test {
namespace {

using namespace std::chrono_literals;

class inspect_test : public ::testing::Test {
 protected:
  const inspect::enabled on_{{.lock_order = false}};
  const wait_report::party me_ = wait_report::party::this_thread();
};

TEST_F(inspect_test, ShowsTheWaiterAndTheHolderOfALockWithBothPlaces) {
  mutex ledger(named("ledger"));
  ledger.lock();
  const auto taken = __LINE__ - 1;
  int asked = 0;
  std::jthread clerk([&] {
    seam::name_thread("clerk");
    asked = __LINE__ + 1;
    ledger.lock();
    ledger.unlock();
  });
  const auto wait = the_wait_on(&ledger);
  EXPECT_EQ(wait.party.name, "clerk");
  EXPECT_NE(wait.party.id, me_);
  ASSERT_EQ(wait.on.size(), 1U);
  EXPECT_EQ(wait.on[0].text(), "mutex ledger");
  EXPECT_EQ(wait.on[0].wants, "lock");
  EXPECT_FALSE(wait.has_deadline);
  EXPECT_FALSE(wait.can_be_stopped);
  ASSERT_TRUE(wait.at.has_value());
  EXPECT_TRUE(ends_with(inspect::to_string(*wait.at), "inspect_test.cpp:" + std::to_string(asked)));
  ASSERT_EQ(wait.on[0].servers.size(), 1U);
  EXPECT_EQ(wait.on[0].servers[0].party.id, me_);
  EXPECT_EQ(wait.on[0].servers[0].role, "holds");
  EXPECT_TRUE(ends_with(inspect::to_string(wait.on[0].servers[0].at.value()),
                        "inspect_test.cpp:" + std::to_string(taken)));
  ledger.unlock();
}

TEST_F(inspect_test, AWaitThatHasEndedIsNotShown) {
  mutex m;
  m.lock();
  std::jthread other([&] { const std::lock_guard hold(m); });
  until_waited_for(&m);
  m.unlock();
  other.join();
  EXPECT_TRUE(waits_on(&m).empty());
  EXPECT_TRUE(inspect::holds().empty());
}

TEST_F(inspect_test, ALockGuardHasThePlaceOfTheCallingCode) {
  mutex m;
  std::unique_lock hold(m);
  std::jthread other([&] { const std::lock_guard waits(m); });
  const auto wait = the_wait_on(&m);
  EXPECT_NE(wait.at->address(), nullptr);
  EXPECT_EQ(inspect::to_string(*wait.at).find("std_mutex.h"), std::string::npos);
  hold.unlock();
}

TEST_F(inspect_test, LimitsOfAWaitAreShown) {
  manual_clock time;
  event never;
  std::stop_source stop;
  std::jthread other([&] {
    EXPECT_EQ(never.wait({deadline::after(1h, time), stop.get_token()}), status::stopped);
  });
  const auto wait = the_wait_on(&never);
  EXPECT_TRUE(wait.has_deadline);
  EXPECT_TRUE(wait.can_be_stopped);
  stop.request_stop();
}

TEST_F(inspect_test, EveryKindOfLockShowsItsHolders) {
  fair_mutex turn;
  turn.lock();
  shared_mutex table;
  table.lock_shared();
  std::stop_source stop;
  std::jthread one([&] { EXPECT_FALSE(turn.lock(stop.get_token())); });
  std::jthread two([&] { EXPECT_FALSE(table.lock(stop.get_token())); });
  EXPECT_EQ(the_wait_on(&turn).on[0].servers.at(0).role, "holds");
  const auto wait = the_wait_on(&table);
  EXPECT_EQ(wait.on[0].servers.at(0).role, "reads");
  EXPECT_FALSE(wait.on[0].servers.at(0).is_sufficient);
  stop.request_stop();
  one.join();
  two.join();
  turn.unlock();
  table.unlock_shared();
  EXPECT_TRUE(inspect::holds().empty());
}

TEST_F(inspect_test, ASemaphoreShowsItsHoldersAndTheirPermits) {
  semaphore slots(3, named("slots"));
  slots.acquire(2);
  slots.acquire();
  std::stop_source stop;
  std::jthread other([&] { EXPECT_FALSE(slots.acquire(2, stop.get_token())); });
  const auto wait = the_wait_on(&slots);
  EXPECT_EQ(wait.on[0].text(), "semaphore slots");
  ASSERT_EQ(wait.on[0].servers.size(), 1U);
  EXPECT_EQ(wait.on[0].servers[0].role, "has 3 permits");
  EXPECT_EQ(wait.on[0].by, wait_report::served_by::holders);
  stop.request_stop();
  other.join();
  slots.release(3);
  EXPECT_TRUE(inspect::holds().empty());
}

TEST_F(inspect_test, ASemaphoreReleasedByANonHolderIsASignal) {
  semaphore signal(1);
  signal.acquire();
  std::jthread([&] { signal.release(); }).join();
  signal.acquire();
  std::stop_source stop;
  std::jthread other([&] { EXPECT_FALSE(signal.acquire(stop.get_token())); });
  EXPECT_EQ(the_wait_on(&signal).on[0].by, wait_report::served_by::unknown);
  stop.request_stop();
}

TEST_F(inspect_test, AFullQueueShowsItsNameItsCapacityAndItsConsumers) {
  bounded_queue<int> emails({.capacity = 1, .name = "emails"});
  ASSERT_TRUE(emails.push(1));
  ASSERT_TRUE(emails.pop());
  ASSERT_TRUE(emails.push(2));
  std::stop_source stop;
  std::jthread other([&] { EXPECT_FALSE(emails.push(3, stop.get_token())); });
  eventually([&] { return emails.waiting_to_push() == 1; });
  std::vector<inspect::wait_info> all;
  eventually([&] {
    all = inspect::waits();
    return all.size() == 1;
  });
  const auto& on = all.at(0).on.at(0);
  EXPECT_EQ(on.text(), "bounded_queue emails");
  EXPECT_EQ(on.wants, "push");
  EXPECT_EQ(on.capacity, 1U);
  ASSERT_EQ(on.servers.size(), 1U);
  EXPECT_EQ(on.servers[0].party.id, me_);
  EXPECT_EQ(on.servers[0].role, "pops");
  stop.request_stop();
}

TEST_F(inspect_test, ARingShowsItsConsumer) {
  spsc_ring<int> ring({.capacity = 1, .name = "ring"});
  ASSERT_TRUE(ring.push(1));
  ASSERT_TRUE(ring.pop());
  ASSERT_TRUE(ring.push(2));
  std::stop_source stop;
  std::jthread other([&] { EXPECT_FALSE(ring.push(3, stop.get_token())); });
  const auto wait = the_wait_on(&ring);
  EXPECT_EQ(wait.on[0].text(), "spsc_ring ring");
  ASSERT_EQ(wait.on[0].servers.size(), 1U);
  EXPECT_EQ(wait.on[0].servers[0].party.id, me_);
  stop.request_stop();
}

TEST_F(inspect_test, AnotherQueueAtTheSameAddressHasOtherUsers) {
  std::stop_source stop;
  alignas(bounded_queue<int>) std::byte place[sizeof(bounded_queue<int>)];
  for (const bool popped_by_me : {true, false}) {
    auto* const q = std::construct_at(reinterpret_cast<bounded_queue<int>*>(place), 1U);
    ASSERT_TRUE(q->push(1));
    if (popped_by_me) {
      ASSERT_TRUE(q->pop());
      ASSERT_TRUE(q->push(1));
    }
    std::stop_source enough;
    std::jthread other([&] { EXPECT_FALSE(q->push(2, enough.get_token())); });
    eventually([&] { return inspect::waits().size() == 1; });
    EXPECT_EQ(inspect::waits().at(0).on.at(0).servers.size(), popped_by_me ? 1U : 0U);
    enough.request_stop();
    other.join();
    std::destroy_at(q);
  }
}

TEST_F(inspect_test, ASelectShowsAllOfItsObjects) {
  channel<int> orders({.capacity = 0, .name = "orders"});
  channel<int> log({.capacity = 1, .name = "log"});
  ASSERT_TRUE(log.send(1));
  std::stop_source stop;
  std::jthread other([&] {
    EXPECT_FALSE(select(stop.get_token(), on_receive(orders, [](const outcome<int>&) {}),
                        on_send(log, 2, [](status) {})));
  });
  std::vector<inspect::wait_info> all;
  eventually([&] { return (all = inspect::waits()).size() == 1; });
  ASSERT_EQ(all[0].on.size(), 2U);
  EXPECT_EQ(all[0].on[0].text(), "channel orders");
  EXPECT_EQ(all[0].on[0].wants, "pop");
  EXPECT_EQ(all[0].on[1].text(), "channel log");
  EXPECT_EQ(all[0].on[1].wants, "push");
  stop.request_stop();
}

TEST_F(inspect_test, GatesAndConditionsAreShown) {
  event ready(named("ready"));
  latch done(1, named("done"));
  barrier meeting(2, named("meeting"));
  condition changed(named("changed"));
  mutex m;
  std::stop_source stop;
  const auto token = stop.get_token();
  std::vector<std::jthread> all;
  all.emplace_back([&] { EXPECT_FALSE(ready.wait(token)); });
  all.emplace_back([&] { EXPECT_FALSE(done.wait(token)); });
  all.emplace_back([&] { EXPECT_FALSE(meeting.arrive_and_wait(token)); });
  all.emplace_back([&] {
    std::unique_lock hold(m);
    EXPECT_FALSE(changed.wait(
        hold, [] { return false; }, token));
  });
  EXPECT_EQ(the_wait_on(&ready).on[0].text(), "event ready");
  EXPECT_EQ(the_wait_on(&done).on[0].text(), "latch done");
  EXPECT_EQ(the_wait_on(&meeting).on[0].text(), "barrier meeting");
  EXPECT_EQ(the_wait_on(&changed).on[0].text(), "condition changed");
  stop.request_stop();
}

TEST_F(inspect_test, AWaitingCoroutineIsShownAsTheOutermostTask) {
  mutex m(named("m"));
  m.lock();
  thread_pool pool({.core = 1, .capacity = 4, .name = "pool"});
  const auto inner = [&]() -> task<> {
    auto hold = co_await m.async_lock();
    EXPECT_TRUE(hold);
    EXPECT_EQ(inspect::holds().size(), 1U);
    if (!inspect::holds().empty()) {
      EXPECT_EQ(inspect::holds()[0].party.id.type(), wait_report::party::kind::coroutine);
    }
  };
  const auto outer = [&]() -> task<> { co_await inner(); };
  auto ended = spawn(pool, outer());
  const auto wait = the_wait_on(&m);
  EXPECT_EQ(wait.party.id.type(), wait_report::party::kind::coroutine);
  EXPECT_EQ(wait.on[0].servers.at(0).party.id, me_);
  ASSERT_TRUE(wait.at.has_value());
  EXPECT_NE(inspect::to_string(*wait.at).find("inspect_test.cpp"), std::string::npos);
  m.unlock();
  ended.get();
  EXPECT_TRUE(inspect::holds().empty());
}

// Other work could need the lock: running it on this thread would be a deadlock.
TEST_F(inspect_test, ANotifierThatHoldsTheLockRunsNoOtherWork) {
  class debtor final : public sleep_observer {
   public:
    void falls_asleep() noexcept override {}
    void woke_up() noexcept override {}
    void helps_out() noexcept override { ++helped; }
    int helped = 0;
  };
  mutex m(named("m"));
  condition changed(named("changed"));
  bool is_there = false;  // protected by m
  thread_pool pool({.core = 1, .capacity = 4, .name = "pool"});
  const auto body = [&]() -> task<> {
    auto hold = co_await m.async_lock();
    EXPECT_TRUE(co_await changed.async_wait(*hold, [&] { return is_there; }));
  };
  auto ended = spawn(pool, body());
  EXPECT_EQ(the_wait_on(&changed).on[0].text(), "condition changed");
  debtor me;
  {
    const std::lock_guard hold(m);
    is_there = true;
    auto* const before = observe_sleep(&me);
    changed.notify_one();
    observe_sleep(before);
    EXPECT_EQ(the_wait_on(&m).on[0].text(), "mutex m");
  }
  ended.get();
  EXPECT_EQ(me.helped, 0);
}

// Destroying a queue makes all threads report their uses again; that must not outlast inspect.
TEST(inspect_switch_test, StaysOffWhenAQueueIsDestroyedDuringTurnOff) {
  std::jthread queues_go([](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      bounded_queue<int> q(1);
      EXPECT_TRUE(q.push(1));
      EXPECT_TRUE(q.pop());
    }
  });
  for (int round = 0; round < 500; ++round) {
    { const inspect::enabled on({.lock_order = false}); }
    ASSERT_FALSE(inspect::is_on()) << round;
    const auto again = std::chrono::steady_clock::now() + 10us;
    while (std::chrono::steady_clock::now() < again) ASSERT_FALSE(inspect::is_on()) << round;
  }
}

// As for a thread: the notification is one wait, reacquiring the lock another.
TEST(inspect_condition_test, ACoroutineThatReacquiresItsLockIsInAWaitOfItsOwn) {
  manual_clock time;
  const inspect::enabled on({.lock_order = false, .time = &time});
  mutex m(named("m"));
  condition changed(named("changed"));
  int seen = 0;  // protected by m
  thread_pool pool({.core = 1, .capacity = 4, .name = "pool"});
  const auto body = [&]() -> task<> {
    auto hold = co_await m.async_lock();
    EXPECT_TRUE(co_await changed.async_wait(*hold, [&] { return seen == 2; }));
  };
  auto ended = spawn(pool, body());
  std::set<std::uint64_t> numbers;
  for (int round = 1; round <= 2; ++round) {
    numbers.insert(the_wait_on(&changed).number);
    time.advance(1h);
    // Its wait is listed before it releases the lock, so this thread must not block on the lock.
    eventually([&] { return m.try_lock(); });
    const std::lock_guard hold(m, std::adopt_lock);
    seen = round;
    changed.notify_one();
    const auto wait = the_wait_on(&m);
    numbers.insert(wait.number);
    EXPECT_EQ(wait.time, 0s);
  }
  ended.get();
  EXPECT_EQ(numbers.size(), 4U);
  for (const auto& c : inspect::contention()) {
    EXPECT_EQ(c.futile_wakes, 0U) << c.type;
    if (c.address != &m && c.address != &changed) continue;
    EXPECT_EQ(c.waits, 2U) << c.type;
    EXPECT_EQ(c.longest, c.address == &m ? 0h : 1h) << c.type;
  }
}

TEST_F(inspect_test, AFutureShowsTheThreadThatRunsItsFunction) {
  thread_pool pool({.core = 1, .capacity = 4, .name = "pool"});
  event go;
  event begun;
  auto answer = async(pool, [&] {
    begun.set();
    go.wait();
    return 42;
  });
  begun.wait();
  std::jthread asks([&] { EXPECT_EQ(answer.get(), 42); });
  std::vector<inspect::wait_info> all;
  eventually([&] {
    all = inspect::waits();
    std::erase_if(all, [](const auto& w) { return w.on.at(0).type != "future"; });
    return all.size() == 1;
  });
  ASSERT_EQ(all[0].on[0].servers.size(), 1U);
  EXPECT_EQ(all[0].on[0].servers[0].party.name, "pool-1");
  EXPECT_EQ(all[0].on[0].servers[0].role, "runs");
  go.set();
}

TEST_F(inspect_test, CountsTheWaitsForAnObjectAndTheirTime) {
  mutex m(named("busy"));
  for (int round = 0; round < 3; ++round) {
    m.lock();
    std::jthread other([&] { const std::lock_guard hold(m); });
    until_waited_for(&m);
    m.unlock();
  }
  const auto all = inspect::contention();
  const auto found = std::ranges::find(all, &m, &inspect::contention_info::address);
  ASSERT_NE(found, all.end());
  EXPECT_EQ(found->name, "busy");
  EXPECT_EQ(found->waits, 3U);
  EXPECT_EQ(found->waiting, 0U);
  EXPECT_EQ(found->waiting_max, 1U);
  EXPECT_GE(found->waited, found->longest);
}

TEST_F(inspect_test, DestroyedObjectsAreRemoved) {
  {
    mutex m;
    m.lock();
    std::jthread other([&] { const std::lock_guard hold(m); });
    until_waited_for(&m);
    m.unlock();
  }
  EXPECT_TRUE(inspect::contention().empty());
  EXPECT_TRUE(inspect::holds().empty());
}

// Futures do not report their destruction.
TEST(contention_test, NewObjectsAreCountedAfterThousandsOfFutures) {
  manual_clock time;
  const inspect::enabled on({.lock_order = false, .time = &time});
  inline_executor here;
  std::vector<promise<int>> promises(4000);
  std::vector<future<int>> futures;
  for (auto& p : promises) futures.push_back(p.get_future());  // all at different addresses
  const auto body = [](future<int> f) -> task<> { (void)co_await std::move(f); };
  for (std::size_t i = 0; i < promises.size(); ++i) {
    auto awaited = spawn(here, body(std::move(futures[i])));
    promises[i].set_value(1);
    awaited.get();
  }
  std::vector<mutex> contended(64);
  const auto take = [](mutex& m) -> task<> { (void)co_await m.async_lock(); };
  for (auto& m : contended) {
    m.lock();
    auto taken = spawn(here, take(m));
    time.advance(1s);
    m.unlock();
    taken.get();
  }
  const auto all = inspect::contention();
  for (const auto& m : contended) {
    const auto found = std::ranges::find(all, &m, &inspect::contention_info::address);
    ASSERT_NE(found, all.end());
    EXPECT_EQ(found->waits, 1U);
    EXPECT_EQ(found->waited, 1s);
  }
  EXPECT_EQ(inspect::left_out(), 0U);
}

// A wait for many objects, each with a known server.
struct wait_for_many {
  static constexpr std::size_t count = 40;
  std::size_t wait_subject(wait_report::subject* out, std::size_t room) const noexcept {
    const wait_report::subject each{.object = this,
                                    .type = "sluice::many",
                                    .by = wait_report::served_by::one,
                                    .target = wait_report::party::this_thread()};
    std::fill_n(out, std::min(room, count), each);
    return count;
  }
};

TEST(inspect_many_test, AWaitForMoreObjectsThanAreListedHasUnknownServers) {
  const inspect::enabled on;
  const wait_for_many op;
  const wait_limits limits;
  thread_waiter me;
  me.commit();
  wait_report::wait_record record;
  record.begin(op, me, limits, wait_report::party::this_thread());
  const auto wait = the_wait_on(&op);
  EXPECT_LT(wait.on.size(), wait_for_many::count);
  EXPECT_TRUE(std::ranges::any_of(
      wait.on, [](const auto& o) { return o.by == wait_report::served_by::unknown; }));
}

TEST(contention_test, FutileWakesAreCounted) {
  const inspect::enabled on;
  struct one_op {
    wait_report::subject wait_subject() const noexcept {
      return {.object = this, .type = "sluice::one"};
    }
  };
  const one_op op;
  const wait_limits limits;
  thread_waiter me;
  me.commit();
  wait_report::wait_record record;
  for (int i = 0; i < 3; ++i) {
    record.begin(op, me, limits, wait_report::party::this_thread());
    record.end();
  }
  const auto all = inspect::contention();
  const auto found = std::ranges::find(all, &op, [](const auto& c) { return c.address; });
  ASSERT_NE(found, all.end());
  EXPECT_EQ(found->waits, 1U);
  EXPECT_EQ(found->futile_wakes, 2U);
}

// Reports that its thread is asleep: a queued waiter may still read whether inspect is on.
class sleeper final : public sleep_observer {
 public:
  explicit sleeper(std::atomic<bool>& asleep) : asleep_(asleep), before_(observe_sleep(this)) {}
  ~sleeper() { observe_sleep(before_); }
  void falls_asleep() noexcept override { asleep_ = true; }
  void woke_up() noexcept override {}

 private:
  std::atomic<bool>& asleep_;
  sleep_observer* const before_;
};

TEST(inspect_off_test, WaitsThatBeganWhileItWasOffAreNotShown) {
  mutex m;
  m.lock();
  std::stop_source stop;
  std::atomic<bool> asleep{false};
  std::jthread other([&] {
    const sleeper tells(asleep);
    EXPECT_FALSE(m.lock(stop.get_token()));
  });
  eventually([&] { return asleep.load(); });
  EXPECT_TRUE(inspect::waits().empty());
  EXPECT_FALSE(inspect::is_on());
  const inspect::enabled on;
  EXPECT_TRUE(inspect::is_on());
  EXPECT_TRUE(inspect::waits().empty());
  stop.request_stop();
  other.join();
  m.unlock();
}

TEST(inspect_off_test, AWaitThatEndsAfterInspectWasTurnedOffSucceeds) {
  mutex m;
  std::optional<inspect::enabled> on(std::in_place);
  m.lock();
  std::jthread other([&] { const std::lock_guard hold(m); });
  until_waited_for(&m);
  on.reset();
  EXPECT_EQ(waits_on(&m).size(), 1U);  // it was reported, and still waits
  m.unlock();
  other.join();
  EXPECT_TRUE(inspect::waits().empty());
}

TEST(inspect_off_test, HoldsFromBeforeATurnOffAreRemoved) {
  mutex m;
  {
    const inspect::enabled on;
    m.lock();
    EXPECT_EQ(inspect::holds().size(), 1U);
  }
  m.unlock();
  const inspect::enabled on;
  EXPECT_TRUE(inspect::holds().empty());
}

TEST(inspect_clock_test, TimesAreOfTheClockInTheOptions) {
  manual_clock time;
  const inspect::enabled on({.time = &time});
  mutex m;
  m.lock();
  std::jthread other([&] { const std::lock_guard hold(m); });
  until_waited_for(&m);
  time.advance(7s);
  EXPECT_EQ(the_wait_on(&m).time, 7s);
  EXPECT_EQ(inspect::holds().at(0).time, 7s);
  m.unlock();
}

TEST(inspect_DeathTest, MayBeTurnedOnOnlyOnceAtATime) {
  const inspect::enabled on;
  EXPECT_DEATH({ const inspect::enabled again; }, "at most once at a time");
}

// For the thread sanitizer: inspects during waits and while objects are created and destroyed.
TEST(inspect_stress_test, AnyThreadMayInspectWhileWaitsBeginAndEnd) {
  const inspect::enabled on({.lock_order = true});
  std::stop_source stop;
  mutex m;
  bounded_queue<int> q(2);
  channel<int> meet;
  std::vector<std::jthread> all;
  for (int i = 0; i < 2; ++i) {
    all.emplace_back([&] {
      while (!stop.stop_requested()) {
        const std::lock_guard hold(m);
        const mutex brief(named("brief"));
      }
    });
    all.emplace_back([&] {
      while (q.push(1, stop.get_token())) {
      }
    });
    all.emplace_back([&] {
      while (q.pop(stop.get_token())) {
      }
    });
    all.emplace_back([&] {
      while (meet.send(1, stop.get_token())) {
      }
    });
    all.emplace_back([&] {
      while (select(stop.get_token(), on_receive(meet, [](const outcome<int>&) {}))) {
      }
    });
  }
  for (int looks = 0; looks < 200; ++looks) {
    (void)inspect::waits();
    (void)inspect::contention();
    (void)inspect::holds();
    std::this_thread::yield();
  }
  stop.request_stop();
}

}  // namespace
}  // namespace sluice::testing::inspect_test
