// Every awaitable of the library is listed with the type and the name of the awaited object.
#include <gtest/gtest.h>

#include <mutex>
#include <shared_mutex>
#include <stop_token>
#include <utility>

#include "sluice/actor/actor_registry.hpp"
#include "sluice/channel/select.hpp"
#include "sluice/executor/router.hpp"
#include "sluice/executor/strand.hpp"
#include "sluice/executor/thread_pool.hpp"
#include "sluice/flow/batcher.hpp"
#include "sluice/flow/bulkhead.hpp"
#include "sluice/flow/keyed_rate_limiter.hpp"
#include "sluice/flow/pipeline.hpp"
#include "sluice/flow/rate_limiter.hpp"
#include "sluice/future/promise.hpp"
#include "sluice/future/scope.hpp"
#include "sluice/future/shared_future.hpp"
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

namespace sluice::testing::every_awaited_test {
namespace {

using namespace std::chrono_literals;

using every_awaited_test = listing_fixture;

TEST_F(every_awaited_test, OfLocksAndSignals) {
  mutex m(named("ledger"));
  fair_mutex f(named("turn"));
  shared_mutex s(named("table"));
  semaphore slots(0, named("slots"));
  event ready(named("ready"));
  latch done(1, named("done"));
  barrier meeting(2, named("meeting"));
  const std::lock_guard one(m);
  const std::lock_guard two(f);
  const std::lock_guard three(s);
  const ending at_the_end{*this};
  lists_awaited("mutex ledger", [&](auto stop) { return m.async_lock(stop); });
  lists_awaited("fair_mutex turn", [&](auto stop) { return f.async_lock(stop); });
  lists_awaited("shared_mutex table", [&](auto stop) { return s.async_lock(stop); });
  lists_awaited("shared_mutex table", [&](auto stop) { return s.async_lock_shared(stop); });
  lists_awaited("semaphore slots", [&](auto stop) { return slots.async_acquire(1, stop); });
  lists_awaited("event ready", [&](auto stop) { return ready.async_wait(stop); });
  lists_awaited("latch done", [&](auto stop) { return done.async_wait(stop); });
  lists_awaited("barrier meeting", [&](auto stop) { return meeting.async_arrive_and_wait(stop); });
}

TEST_F(every_awaited_test, OfConditions) {
  condition changed(named("changed"));
  mutex of_changed;
  guarded<int> balance(named("balance"), 0);
  const ending at_the_end{*this};
  lists("condition changed", [&](const std::stop_token& stop) {
    const auto body = [&]() -> task<> {
      std::unique_lock hold(of_changed);
      (void)co_await changed.async_wait(
          hold, [] { return false; }, stop);
    };
    sync_wait(body());
  });
  lists("condition balance", [&](const std::stop_token& stop) {
    const auto body = [&]() -> task<> {
      auto access = co_await balance.async_lock();
      (void)co_await access.async_wait([](int now) { return now > 0; }, stop);
    };
    sync_wait(body());
  });
  const auto held = balance.lock();
  lists_awaited("mutex balance", [&](auto stop) { return balance.async_lock(stop); });
}

TEST_F(every_awaited_test, ForAValueFromAnotherThread) {
  event begun;
  event go;
  lazy<int> built([&] {
    begun.set();
    go.wait();
    return 1;
  });
  promise<int> p;
  auto f = p.get_future();
  promise<int> q;
  const shared_future<int> shared(q.get_future());
  const ending at_the_end{*this};
  party("builder", [&] { EXPECT_EQ(built.get(), 1); });
  begun.wait();
  lists_awaited("lazy ", [&](auto stop) { return built.async_get(stop); });
  go.set();
  lists_awaited("future ", [&](auto stop) { return f.async_get(stop); });
  lists_awaited("shared_future ", [&](auto stop) { return shared.async_get(stop); });
}

TEST_F(every_awaited_test, OfQueuesAndChannels) {
  bounded_queue<int> emails({.capacity = 1, .name = "emails"});
  spsc_ring<int> ring({.capacity = 1, .name = "ring"});
  priority_queue<int> urgent({.capacity = 1, .name = "urgent"});
  delay_queue<int> later({.capacity = 1, .name = "later"});
  channel<int> orders({.capacity = 0, .name = "orders"});
  int item = 2;
  const ending at_the_end{*this};
  lists_awaited("bounded_queue emails", [&](auto stop) { return emails.async_pop(stop); });
  lists_awaited("bounded_queue emails", [&](auto stop) { return emails.async_pop_some(2, stop); });
  lists_awaited("spsc_ring ring", [&](auto stop) { return ring.async_pop(stop); });
  lists_awaited("priority_queue urgent", [&](auto stop) { return urgent.async_pop(stop); });
  lists_awaited("delay_queue later", [&](auto stop) { return later.async_pop(stop); });
  lists_awaited("channel orders", [&](auto stop) { return orders.async_receive(stop); });
  lists_awaited("channel orders", [&](auto stop) { return orders.async_send(item, stop); });
  lists("channel orders", [&](const std::stop_token& stop) {
    const auto body = [&]() -> task<> {
      (void)co_await async_select(stop, on_receive(orders, [](const outcome<int>&) {}));
    };
    sync_wait(body());
  });
  ASSERT_TRUE(emails.push(1));
  ASSERT_TRUE(ring.push(1));
  ASSERT_TRUE(urgent.push(1));
  lists_awaited("bounded_queue emails", [&](auto stop) { return emails.async_push(item, stop); });
  lists_awaited("spsc_ring ring", [&](auto stop) { return ring.async_push(item, stop); });
  lists_awaited("priority_queue urgent", [&](auto stop) { return urgent.async_push(item, stop); });
}

TEST_F(every_awaited_test, OfExecutors) {
  event begun;
  event go;
  thread_pool disk({.core = 1, .capacity = 1, .name = "disk"});
  strand account(disk, {.capacity = 1, .name = "account"});
  router<int> desk({.capacity = 1, .name = "desk"});
  auto clerk = desk.join();
  const ending at_the_end{*this};
  ASSERT_TRUE(disk.submit([&] {
    begun.set();
    go.wait();
  }));
  begun.wait();
  ASSERT_TRUE(disk.submit([] {}));
  ASSERT_TRUE(account.submit([] {}));
  lists_awaited("thread_pool disk", [&](auto stop) { return disk.async_submit([] {}, stop); });
  lists_awaited("strand account", [&](auto stop) { return account.async_submit([] {}, stop); });
  lists_awaited("strand account", [&](auto stop) { return account.async_join(stop); });
  lists_awaited("router desk", [&](auto stop) { return clerk.async_next(stop); });
  ASSERT_TRUE(desk.push(1));
  lists_awaited("router desk", [&](auto stop) { return desk.async_push(2, stop); });
  lists_awaited("router desk", [&](auto stop) { return desk.async_wait_ended(stop); });
  go.set();
}

TEST_F(every_awaited_test, OfFlowControl) {
  rate_limiter calls({.rate = {1, 1h}, .burst = 1, .initial = 0, .name = "calls"});
  keyed_rate_limiter<int> each({.rate = {1, 1h}, .burst = 1, .keys_max = 2, .name = "each"});
  bulkhead few({.active_max = 1, .waiting_max = 1, .name = "few"});
  batcher<int> rows({.size = 1, .capacity = 1, .name = "rows"});
  int row = 2;
  const ending at_the_end{*this};
  lists_awaited("rate_limiter calls", [&](auto stop) { return calls.async_acquire(1, stop); });
  ASSERT_TRUE(each.try_acquire(7));
  lists_awaited("keyed_rate_limiter each",
                [&](auto stop) { return each.async_acquire(7, 1, stop); });
  const auto inside = few.enter();
  lists_awaited("bulkhead few", [&](auto stop) { return few.async_enter(stop); });
  lists_awaited("batcher rows", [&](auto stop) { return rows.async_take(stop); });
  ASSERT_TRUE(rows.push(1));
  lists_awaited("batcher rows", [&](auto stop) { return rows.async_push(row, stop); });
}

TEST_F(every_awaited_test, ForTheEndOfStartedWork) {
  event go;
  thread_pool one({.core = 1, .capacity = 10, .name = "one"});
  auto line = pipeline<int>::on(one).sink("store", [](int) {});
  const ending at_the_end{*this};
  lists_awaited("event actors", [&](auto stop) { return system_.async_join(stop); });
  lists_awaited("event store..store", [&](auto stop) { return line.async_join(stop); });
  lists_awaited("scope ", [&](auto stop) {
    return with_scope(pool_, [&go, stop](scope& s) -> task<> {
      s.start([&go, stop] { (void)go.wait(stop); });
      co_return;
    });
  });
  line.drain();
}

TEST_F(every_awaited_test, OfActors) {
  event go(named("go"));
  actor_registry staff(named("staff"));
  const auto store = hire("store", 1);
  const ending at_the_end{*this};
  run_in(store, [&] { (void)go.wait(token()); });
  until_waited_for(&go);
  run_in(store, [] {});
  lists_awaited("actor store", [&](auto stop) { return store.async_send(act{[] {}}, stop); });
  lists_awaited("actor store", [&](auto stop) { return store.async_shutdown(stop); });
  lists_awaited("actor_registry staff",
                [&](auto stop) { return staff.async_wait_for<doer>("nobody", stop); });
  go.set();
}

}  // namespace
}  // namespace sluice::testing::every_awaited_test
