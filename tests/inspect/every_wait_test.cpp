// Every blocking call of the library is listed with the type and the name of the awaited object.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <mutex>
#include <shared_mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "sluice/actor/actor_registry.hpp"
#include "sluice/actor/keyed_actors.hpp"
#include "sluice/channel/select.hpp"
#include "sluice/executor/fork.hpp"
#include "sluice/executor/router.hpp"
#include "sluice/executor/strand.hpp"
#include "sluice/executor/thread_pool.hpp"
#include "sluice/executor/work_stealing_pool.hpp"
#include "sluice/flow/batcher.hpp"
#include "sluice/flow/bulkhead.hpp"
#include "sluice/flow/keyed_rate_limiter.hpp"
#include "sluice/flow/pipeline.hpp"
#include "sluice/flow/rate_limiter.hpp"
#include "sluice/future/promise.hpp"
#include "sluice/future/scope.hpp"
#include "sluice/future/shared_future.hpp"
#include "sluice/future/sync_wait.hpp"
#include "sluice/future/task_combinators.hpp"
#include "sluice/future/timers.hpp"
#include "sluice/future/when_all.hpp"
#include "sluice/future/when_any.hpp"
#include "sluice/inspect/format.hpp"
#include "sluice/queue/bounded_queue.hpp"
#include "sluice/queue/delay_queue.hpp"
#include "sluice/queue/priority_queue.hpp"
#include "sluice/queue/spsc_ring.hpp"
#include "sluice/sync/barrier.hpp"
#include "sluice/sync/condition.hpp"
#include "sluice/sync/event.hpp"
#include "sluice/sync/fair_mutex.hpp"
#include "sluice/sync/guarded.hpp"
#include "sluice/sync/latch.hpp"
#include "sluice/sync/lazy.hpp"
#include "sluice/sync/mutex.hpp"
#include "sluice/sync/semaphore.hpp"
#include "sluice/sync/shared_mutex.hpp"
#include "tests/inspect/listing.hpp"

namespace sluice::testing::every_wait_test {
namespace {

using namespace std::chrono_literals;

struct greeting {};

class guest : public actor<guest, greeting> {
 public:
  void on(greeting) {}
  bool may_passivate() const { return false; }
};

using every_wait_test = listing_fixture;

TEST_F(every_wait_test, OfLocksAndSignals) {
  mutex m(named("ledger"));
  fair_mutex f(named("turn"));
  shared_mutex s(named("table"));
  semaphore slots(0, named("slots"));
  event ready(named("ready"));
  latch done(1, named("done"));
  barrier meeting(2, named("meeting"));
  condition changed(named("changed"));
  mutex of_changed;
  const std::lock_guard one(m);
  const std::lock_guard two(f);
  const std::lock_guard three(s);
  const ending at_the_end{*this};
  lists("mutex ledger", [&](auto stop) { EXPECT_FALSE(m.lock(stop)); });
  lists("fair_mutex turn", [&](auto stop) { EXPECT_FALSE(f.lock(stop)); });
  lists("shared_mutex table", [&](auto stop) { EXPECT_FALSE(s.lock(stop)); });
  lists("shared_mutex table", [&](auto stop) { EXPECT_FALSE(s.lock_shared(stop)); });
  lists("semaphore slots", [&](auto stop) { EXPECT_FALSE(slots.acquire(stop)); });
  lists("event ready", [&](auto stop) { EXPECT_FALSE(ready.wait(stop)); });
  lists("latch done", [&](auto stop) { EXPECT_FALSE(done.wait(stop)); });
  lists("barrier meeting", [&](auto stop) { EXPECT_FALSE(meeting.arrive_and_wait(stop)); });
  lists("condition changed", [&](auto stop) {
    std::unique_lock hold(of_changed);
    EXPECT_FALSE(changed.wait(
        hold, [] { return false; }, stop));
  });
}

TEST_F(every_wait_test, ForAValueFromAnotherThread) {
  event begun;
  event go;
  lazy<int> built(
      [&] {
        begun.set();
        go.wait();
        return 1;
      },
      named("built"));
  promise<int> p;
  auto f = p.get_future();
  promise<int> q;
  const shared_future<int> shared(q.get_future());
  const ending at_the_end{*this};
  party("builder", [&] { EXPECT_EQ(built.get(), 1); });
  begun.wait();
  lists("lazy built", [&](auto stop) { EXPECT_FALSE(built.get(stop)); });
  go.set();
  lists("future ", [&](auto stop) { EXPECT_FALSE(f.get(stop)); });
  lists("shared_future ", [&](auto stop) { EXPECT_FALSE(shared.get(stop)); });
  manual_clock time;
  lists("sleep", [&](auto stop) {
    const auto body = [&]() -> task<> {
      const status slept = co_await sleep_for(1h, time, stop);
      EXPECT_FALSE(slept);
    };
    sync_wait(body());
  });
}

TEST_F(every_wait_test, OfASleepHasTheLineOfItsCaller) {
  manual_clock time;
  std::stop_source stop;
  constexpr int line = __LINE__ + 2;
  const auto body = [&]() -> task<> {
    const status slept = co_await sleep_for(1h, time, stop.get_token());
    EXPECT_EQ(slept, status::stopped);
  };
  std::jthread sleeper([&] { sync_wait(body()); });
  std::string place;
  eventually([&] {
    for (const auto& w : inspect::waits()) {
      if (w.on[0].text().starts_with("sleep") && w.at) place = inspect::to_string(*w.at);
    }
    return !place.empty();
  });
  EXPECT_NE(place.find("every_wait_test.cpp:" + std::to_string(line)), std::string::npos) << place;
  stop.request_stop();
}

TEST_F(every_wait_test, ForAGuardedValue) {
  guarded<int> balance(named("balance"), 0);
  const ending at_the_end{*this};
  {
    const auto held = balance.lock();
    lists("mutex balance", [&](auto stop) { EXPECT_FALSE(balance.lock(stop)); });
  }
  lists("condition balance", [&](auto stop) {
    auto access = balance.lock();
    EXPECT_FALSE(access.wait([](int now) { return now > 0; }, stop));
  });
}

TEST_F(every_wait_test, ForSeveralFutures) {
  promise<int> p;
  promise<int> q;
  auto all = when_all(p.get_future(), q.get_future());
  promise<int> r;
  promise<int> s;
  auto any = when_any(r.get_future(), s.get_future());
  const ending at_the_end{*this};
  lists("future ", [&](auto stop) { EXPECT_FALSE(all.get(stop)); });
  lists("future ", [&](auto stop) { EXPECT_FALSE(any.get(stop)); });
}

TEST_F(every_wait_test, OfEachOfSeveralTasks) {
  event ready(named("ready"));
  event done(named("done"));
  const ending at_the_end{*this};
  const auto until = [](event& e, std::stop_token stop) -> task<> {
    (void)co_await e.async_wait(std::move(stop));
  };
  for (const char* name : {"event ready", "event done"}) {
    lists_awaited(name, [&](auto stop) { return when_all(until(ready, stop), until(done, stop)); });
    lists_awaited(name, [&](auto stop) { return when_any(until(ready, stop), until(done, stop)); });
  }
}

TEST_F(every_wait_test, ForTheEndOfStartedWork) {
  event go;
  const ending at_the_end{*this};
  scope_options one(1);
  one.name = "few";
  lists("scope few", [&](auto stop) {
    sync_scope(
        pool_, [&](scope& s) { s.start([&] { (void)go.wait(stop); }); }, one);
  });
  lists("semaphore few", [&](auto stop) {
    event ended;  // the first child holds the slot until the second one was stopped
    scope s(pool_, one);
    s.start([&] { ended.wait(); });
    auto another = [&]() -> task<> { co_return; }();
    EXPECT_FALSE(s.start(std::move(another), stop));
    ended.set();
    s.join();
  });
  lists("fork ", [&](auto stop) { fork(pool_, [&] { (void)go.wait(stop); }).join(); });
  lists("event actors", [&](auto stop) { EXPECT_FALSE(system_.join(stop)); });
}

TEST_F(every_wait_test, OfAPipeline) {
  event begun;
  event go;
  thread_pool two({.core = 2, .capacity = 10, .name = "two"});
  auto line = pipeline<int>::on(two)
                  .stage("decode", [](int n) { return n; }, {.capacity = 1})
                  .sink("store",
                        [&](int) {
                          begun.set();
                          go.wait();
                        },
                        {.capacity = 1});
  const ending at_the_end{*this};
  ASSERT_TRUE(line.push(1));
  begun.wait();
  // One more item in each queue, and one between them.
  for (int n = 2; n <= 4; ++n) ASSERT_TRUE(line.push(n));
  lists("bounded_queue decode", [&](auto stop) { EXPECT_FALSE(line.push(5, stop)); });
  lists("bounded_queue store", [&](auto) {});
  lists("event decode..store", [&](auto stop) { EXPECT_FALSE(line.join(stop)); });
  go.set();
}

TEST_F(every_wait_test, OfQueuesAndChannels) {
  bounded_queue<int> emails({.capacity = 1, .name = "emails"});
  spsc_ring<int> ring({.capacity = 1, .name = "ring"});
  priority_queue<int> urgent({.capacity = 1, .name = "urgent"});
  delay_queue<int> later({.capacity = 1, .name = "later"});
  channel<int> orders({.capacity = 0, .name = "orders"});
  const ending at_the_end{*this};
  lists("bounded_queue emails", [&](auto stop) { EXPECT_FALSE(emails.pop(stop)); });
  lists("spsc_ring ring", [&](auto stop) { EXPECT_FALSE(ring.pop(stop)); });
  lists("priority_queue urgent", [&](auto stop) { EXPECT_FALSE(urgent.pop(stop)); });
  lists("delay_queue later", [&](auto stop) { EXPECT_FALSE(later.pop(stop)); });
  lists("channel orders", [&](auto stop) { EXPECT_FALSE(orders.receive(stop)); });
  lists("channel orders", [&](auto stop) { EXPECT_FALSE(orders.send(1, stop)); });
  lists("channel orders", [&](auto stop) {
    EXPECT_FALSE(select(stop, on_receive(orders, [](const outcome<int>&) {})));
  });
  ASSERT_TRUE(emails.push(1));
  ASSERT_TRUE(ring.push(1));
  ASSERT_TRUE(urgent.push(1));
  lists("bounded_queue emails", [&](auto stop) { EXPECT_FALSE(emails.push(2, stop)); });
  lists("spsc_ring ring", [&](auto stop) { EXPECT_FALSE(ring.push(2, stop)); });
  lists("priority_queue urgent", [&](auto stop) { EXPECT_FALSE(urgent.push(2, stop)); });
}

TEST_F(every_wait_test, OfExecutors) {
  event begun;
  event go;
  thread_pool disk({.core = 1, .capacity = 1, .name = "disk"});
  strand account(disk, {.capacity = 1, .name = "account"});
  work_stealing_pool many({.threads = 1, .name = "many"});
  const ending at_the_end{*this};
  ASSERT_TRUE(disk.submit([&] {
    begun.set();
    go.wait();
  }));
  begun.wait();
  ASSERT_TRUE(disk.submit([] {}));
  ASSERT_TRUE(account.submit([] {}));
  lists("thread_pool disk", [&](auto stop) { EXPECT_FALSE(disk.submit([] {}, stop)); });
  lists("event disk", [&](auto stop) { EXPECT_FALSE(disk.join(stop)); });
  lists("strand account", [&](auto stop) { EXPECT_FALSE(account.submit([] {}, stop)); });
  lists("strand account", [&](auto stop) { EXPECT_FALSE(account.join(stop)); });
  lists("event many", [&](auto stop) { EXPECT_FALSE(many.join(stop)); });
  go.set();
}

TEST_F(every_wait_test, OfARouter) {
  router<int> desk({.capacity = 1, .name = "desk"});
  auto clerk = desk.join();
  const ending at_the_end{*this};
  lists("router desk", [&](auto stop) { EXPECT_FALSE(clerk.next(stop)); });
  ASSERT_TRUE(desk.push(1));
  lists("router desk", [&](auto stop) { EXPECT_FALSE(desk.push(2, stop)); });
  lists("router desk", [&](auto stop) { EXPECT_FALSE(desk.wait_ended(stop)); });
}

TEST_F(every_wait_test, OfFlowControl) {
  rate_limiter calls({.rate = {1, 1h}, .burst = 1, .initial = 0, .name = "calls"});
  keyed_rate_limiter<int> each({.rate = {1, 1h}, .burst = 1, .keys_max = 2, .name = "each"});
  bulkhead few({.active_max = 1, .waiting_max = 1, .name = "few"});
  batcher<int> rows({.size = 1, .capacity = 1, .name = "rows"});
  const ending at_the_end{*this};
  lists("rate_limiter calls", [&](auto stop) { EXPECT_FALSE(calls.acquire(stop)); });
  ASSERT_TRUE(each.try_acquire(7));
  lists("keyed_rate_limiter each", [&](auto stop) { EXPECT_FALSE(each.acquire(7, stop)); });
  const auto inside = few.enter();
  lists("bulkhead few", [&](auto stop) { EXPECT_FALSE(few.enter(stop)); });
  lists("batcher rows", [&](auto stop) { EXPECT_FALSE(rows.take(stop)); });
  ASSERT_TRUE(rows.push(1));
  lists("batcher rows", [&](auto stop) { EXPECT_FALSE(rows.push(2, stop)); });
  lists("batcher rows", [&](auto stop) { EXPECT_FALSE(rows.wait_ended(stop)); });
}

TEST_F(every_wait_test, OfActors) {
  event go(named("go"));
  actor_registry staff(named("staff"));
  const auto store = hire("store", 1);
  keyed_options o;
  o.type = "guest";
  o.live_max = o.live_limit = 1;
  keyed_actors<guest> guests(system_, o);
  const ending at_the_end{*this};
  run_in(store, [&] { (void)go.wait(token()); });
  until_waited_for(&go);
  lists("actor store", [&](auto stop) { EXPECT_FALSE(store.ask(riddle{}).get(stop)); });
  lists("actor store", [&](auto stop) { EXPECT_FALSE(store.send(act{[] {}}, stop)); });
  lists("actor store", [&](auto stop) { EXPECT_FALSE(store.ended().get(stop)); });
  lists("actor_registry staff",
        [&](auto stop) { EXPECT_FALSE(staff.wait_for<doer>("nobody", stop)); });
  ASSERT_TRUE(guests.of("first").send(greeting{}));
  lists("condition places for guest",
        [&](auto stop) { EXPECT_FALSE(guests.of("second").send(greeting{}, stop)); });
  // The first guest has terminated, and the second has taken its slot.
  const ref<guest> first = guests.of("first").now();
  first.stop();
  (void)first.ended().get();
  ASSERT_TRUE(guests.of("second").send(greeting{}));
  lists("keyed_actors guest", [&](auto stop) {
    const auto body = [&]() -> task<> {
      greeting hello;
      auto sending = first.async_send(hello, stop);
      const status sent = co_await sending;
      EXPECT_EQ(sent, status::stopped);
    };
    sync_wait(body());
  });
  go.set();
}

// The holders of the slots are known.
TEST_F(every_wait_test, ABulkheadReportsItsHolders) {
  bulkhead few({.active_max = 1, .waiting_max = 1, .name = "few"});
  mutex m(named("m"));
  const ending at_the_end{*this};
  party("ann", [&] {
    const auto inside = few.enter();
    both_.arrive_and_wait();
    want(m);
    both_.arrive_and_wait();  // ann holds the slot until bob was stopped
  });
  party("bob", [&] {
    const std::lock_guard hold(m);
    both_.arrive_and_wait();
    EXPECT_FALSE(few.enter(token()));
    both_.arrive_and_wait();
  });
  const auto found = the_deadlock();
  EXPECT_EQ(parties(found), (names{"ann", "bob"}));
  EXPECT_EQ(objects(found), (names{"bulkhead few", "mutex m"}));
  stop_.request_stop();
  threads_.clear();
  EXPECT_TRUE(inspect::holds().empty());
}

// The slot is returned when the future is completed, on any thread.
TEST_F(every_wait_test, ASlotHeldByAFutureIsNotHeldByItsCaller) {
  bulkhead few({.active_max = 1, .waiting_max = 1, .name = "few"});
  promise<void> call;
  future<void> done = few.call([&] { return call.get_future(); });
  const ending at_the_end{*this};
  party("ann", [&] {
    auto second = few.call([&] { return make_ready_future(); });
    EXPECT_NO_THROW(second.get());
  });
  const auto wait = the_wait_on(&few);
  EXPECT_TRUE(wait.on[0].servers.empty()) << inspect::to_text({wait});
  EXPECT_TRUE(inspect::find_deadlocks().empty());
  call.set_value();
  done.get();
}

TEST_F(every_wait_test, ASlotHeldByAChildIsNotHeldByItsStarter) {
  const ending at_the_end{*this};
  const auto starts_two = [&](auto start) {
    event go;  // the first child holds the slot until the second one was stopped
    scope s(pool_, scope_options(1));
    s.start([&] { go.wait(); });
    start(s);
    go.set();
    s.join();
  };
  const auto nothing = []() -> task<> { co_return; };
  party("ann", [&] {
    starts_two([&](scope& s) {
      auto second = nothing();
      EXPECT_FALSE(s.start(std::move(second), token()));
    });
  });
  party("bob", [&] {
    starts_two([&](scope& s) {
      const auto body = [&]() -> task<> {
        EXPECT_FALSE(co_await s.async_start(nothing(), {deadline::never(), token()}));
      };
      sync_wait(body());
    });
  });
  std::vector<inspect::wait_info> for_slots;
  eventually([&] {
    for_slots = inspect::waits();
    std::erase_if(for_slots, [](const auto& w) { return w.on[0].type != "semaphore"; });
    return for_slots.size() == 2;
  });
  for (const auto& w : for_slots) EXPECT_TRUE(w.on[0].servers.empty()) << inspect::to_text({w});
  EXPECT_TRUE(inspect::find_deadlocks().empty());
}

TEST_F(every_wait_test, TheRunnerOfAJoinedChildHasNoAcquisitionPlace) {
  event go;
  const ending at_the_end{*this};
  party("ann",
        [&] { sync_scope(pool_, [&](scope& s) { s.start([&] { (void)go.wait(token()); }); }); });
  until_waited_for(&go);  // a thread of the pool runs it
  std::string text;
  eventually(
      [&] { return (text = inspect::to_text(inspect::waits())).find("scope") != text.npos; });
  EXPECT_NE(text.find(" runs for "), std::string::npos) << text;
  EXPECT_EQ(text.find("scope_core"), std::string::npos) << text;
}

TEST_F(every_wait_test, ABatcherReportsItsConsumers) {
  batcher<int> rows({.size = 1, .capacity = 1, .name = "rows"});
  mutex m(named("m"));
  const ending at_the_end{*this};
  party("ann", [&] {
    EXPECT_TRUE(rows.push(0));
    EXPECT_TRUE(rows.take());
    both_.arrive_and_wait();
    want(m);
  });
  party("bob", [&] {
    const std::lock_guard hold(m);
    both_.arrive_and_wait();
    while (rows.push(1, token())) {
    }
  });
  const auto found = the_deadlock();
  EXPECT_EQ(parties(found), (names{"ann", "bob"}));
  EXPECT_FALSE(found.is_certain());
}

TEST_F(every_wait_test, ForTokensEndsByItselfUnlessThereAreNone) {
  rate_limiter calls({.rate = {1, 1h}, .burst = 1, .initial = 0});
  rate_limiter closed({.rate = {0, 1h}, .burst = 1, .initial = 0});
  const ending at_the_end{*this};
  party("ann", [&] { EXPECT_FALSE(calls.acquire(token())); });
  party("bob", [&] { EXPECT_FALSE(closed.acquire(token())); });
  EXPECT_TRUE(the_wait_on(&calls).ends_by_itself);
  EXPECT_FALSE(the_wait_on(&closed).ends_by_itself);
}

}  // namespace
}  // namespace sluice::testing::every_wait_test
