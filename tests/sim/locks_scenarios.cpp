// mutex, fair_mutex, shared_mutex, spin_lock, lock_all and guarded.

#include <chrono>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <stop_token>
#include <thread>

#include "sluice/base/race_checked.hpp"
#include "sluice/sim/testing/scenario.hpp"
#include "sluice/sync/event.hpp"
#include "sluice/sync/fair_mutex.hpp"
#include "sluice/sync/guarded.hpp"
#include "sluice/sync/lock_all.hpp"
#include "sluice/sync/mutex.hpp"
#include "sluice/sync/shared_mutex.hpp"
#include "sluice/sync/spin_lock.hpp"
#include "sluice/sync/testing/coroutine.hpp"

namespace sluice::sim {
namespace {

using namespace std::chrono_literals;
using testing::detached;

void add_one(race_checked<int>& sum) {
  sum.write(sum.read() + 1);
}

// ---- every lock

template <class Lock>
void one_at_a_time() {
  Lock lock;
  race_checked<int> sum{0};
  const auto step = [&] {
    const std::lock_guard hold(lock);
    add_one(sum);
  };
  std::jthread other(step);
  step();
  other.join();
  check(sum.read() == 2, "no lost increment");
}

template <class Lock>
void one_at_a_time_of_three() {
  Lock lock;
  race_checked<int> sum{0};
  const auto steps = [&] {
    for (int i = 0; i < 2; ++i) {
      const std::lock_guard hold(lock);
      add_one(sum);
    }
  };
  {
    std::jthread a(steps);
    std::jthread b(steps);
    steps();
  }
  check(sum.read() == 6, "no lost increment");
}

template <class Lock>
void a_try_never_succeeds_beside_an_owner() {
  Lock lock;
  race_checked<int> sum{0};
  int tried = 0;
  std::jthread other([&] {
    if (!lock.try_lock()) return;
    add_one(sum);
    tried = 1;
    lock.unlock();
  });
  {
    const std::lock_guard hold(lock);
    add_one(sum);
  }
  other.join();
  check(sum.read() == 1 + tried, "one increment per hold");
}

template <class Lock>
void a_wait_that_timed_out_does_not_hold() {
  Lock lock;
  race_checked<int> sum{0};
  int got = 0;
  std::jthread other([&] {
    if (!lock.try_lock_for(1ms)) return;
    add_one(sum);
    got = 1;
    lock.unlock();
  });
  {
    const std::lock_guard hold(lock);
    add_one(sum);
  }
  other.join();
  check(sum.read() == 1 + got, "one increment per hold");
  check(lock.try_lock(), "the lock to be free at the end");
  lock.unlock();
}

template <class Lock>
void a_wait_that_was_stopped_does_not_hold() {
  Lock lock;
  race_checked<int> sum{0};
  std::stop_source stop;
  int got = 0;
  std::jthread other([&] {
    const auto ended = lock.lock(stop.get_token());
    check(ended == status::ok || ended == status::stopped, "the lock, or the stop");
    if (!ended) return;
    add_one(sum);
    got = 1;
    lock.unlock();
  });
  {
    const std::lock_guard hold(lock);
    add_one(sum);
    stop.request_stop();
  }
  other.join();
  check(sum.read() == 1 + got, "one increment per hold");
  check(lock.try_lock(), "the lock to be free at the end");
  lock.unlock();
}

template <class Lock>
void the_last_owner_may_destroy_it() {
  auto lock = std::make_unique<Lock>();
  race_checked<int> uses{0};
  const auto use = [&] {
    lock->lock();
    add_one(uses);
    const bool last = uses.read() == 2;
    lock->unlock();
    if (last) lock.reset();
  };
  std::jthread other(use);
  use();
}

template <class Lock>
void a_coroutine_and_a_thread_take_turns() {
  Lock lock;
  race_checked<int> sum{0};
  const auto coroutine = [&]() -> detached {
    auto held = co_await lock.async_lock();
    check(held.has_value(), "an unlimited wait to end with the lock");
    add_one(sum);
  };
  std::jthread other([&] { coroutine(); });
  {
    const std::lock_guard hold(lock);
    add_one(sum);
  }
  other.join();
  check(sum.read() == 2, "the coroutine's increment");
}

template <class Lock>
void a_coroutine_that_timed_out_holds_nothing() {
  Lock lock;
  race_checked<int> sum{0};
  event finished;
  int got = 0;
  const auto coroutine = [&]() -> detached {
    const wait_limits limits(deadline::after(1ms));
    auto held = co_await lock.async_lock(limits);
    if (held.has_value()) {
      add_one(sum);
      got = 1;
      held->unlock();
    }
    finished.set();
  };
  {
    const std::lock_guard hold(lock);
    coroutine();
    add_one(sum);
  }
  finished.wait();
  check(sum.read() == 1 + got, "one increment per hold");
  check(lock.try_lock(), "the lock to be free at the end");
  lock.unlock();
}

// ---- fair_mutex

void acquisitions_are_in_order_of_arrival() {
  fair_mutex turn;
  race_checked<int> next{1};
  const auto take = [&](int position) {
    const std::lock_guard hold(turn);
    check(next.read() == position, "the longest waiter to be next");
    next.write(position + 1);
  };
  std::jthread first;
  std::jthread second;
  {
    const std::lock_guard hold(turn);
    first = std::jthread(take, 1);
    while (turn.waiting() < 1) yield();
    second = std::jthread(take, 2);
    while (turn.waiting() < 2) yield();
  }
}

// ---- shared_mutex

void readers_see_a_whole_change() {
  shared_mutex lock;
  race_checked<int> one{0};
  race_checked<int> two{0};
  std::jthread reader([&] {
    const std::shared_lock hold(lock);
    check(one.read() == two.read(), "both halves of a change");
  });
  {
    const std::lock_guard hold(lock);
    one.write(1);
    two.write(1);
  }
}

void two_readers_and_a_writer() {
  shared_mutex lock;
  race_checked<int> one{0};
  race_checked<int> two{0};
  const auto look = [&] {
    const std::shared_lock hold(lock);
    check(one.read() == two.read(), "both halves of a change");
  };
  std::jthread a(look);
  std::jthread b(look);
  for (int i = 1; i <= 2; ++i) {
    const std::lock_guard hold(lock);
    one.write(i);
    two.write(i);
  }
}

void a_writer_that_times_out_admits_the_readers() {
  shared_mutex lock;
  lock.lock_shared();
  std::jthread writer([&] {
    if (lock.try_lock_for(1ms)) lock.unlock();
  });
  std::jthread reader([&] { const std::shared_lock hold(lock); });
  reader.join();  // it reads beside this one, even if it came after the writer
  lock.unlock_shared();
}

void a_reader_that_timed_out_does_not_hold() {
  shared_mutex lock;
  std::jthread reader([&] {
    if (lock.try_lock_shared_for(1ms)) lock.unlock_shared();
  });
  { const std::lock_guard hold(lock); }
  reader.join();
  check(lock.try_lock(), "the lock to be free at the end");
  lock.unlock();
}

void a_coroutine_reads() {
  shared_mutex lock;
  race_checked<int> value{0};
  const auto coroutine = [&]() -> detached {
    auto held = co_await lock.async_lock_shared();
    check(held.has_value(), "an unlimited wait to end with the lock");
    check(value.read() <= 1, "a written value");
  };
  std::jthread other([&] { coroutine(); });
  {
    const std::lock_guard hold(lock);
    value.write(1);
  }
}

// ---- lock_all

void opposite_orders_do_not_deadlock() {
  guarded<race_checked<int>> a;
  guarded<race_checked<int>> b;
  std::jthread other([&] {
    auto [first, second] = lock_all(b, a);
    add_one(*first);
    add_one(*second);
  });
  {
    auto [first, second] = lock_all(a, b);
    add_one(*first);
    add_one(*second);
  }
  other.join();
  auto [at_a, at_b] = lock_all(a, b);
  check(at_a->read() == 2 && at_b->read() == 2, "both steps on both");
}

void all_or_none_within_a_time_limit() {
  mutex a;
  fair_mutex b;
  race_checked<int> sum{0};
  int got = 0;
  std::jthread other([&] {
    if (auto held = lock_all(1ms, b, a)) {
      add_one(sum);
      got = 1;
    }
  });
  {
    const auto held = lock_all(a, b);
    add_one(sum);
  }
  other.join();
  check(sum.read() == 1 + got, "one increment per hold of all locks");
  check(a.try_lock() && b.try_lock(), "none to be held at the end");
  a.unlock();
  b.unlock();
}

// ---- guarded

void a_change_wakes_its_waiter() {
  guarded<race_checked<int>> stock;
  std::jthread taker([&] {
    stock.when([](const auto& items) { return items.read() > 0; },
               [](auto& items) { items.write(items.read() - 1); });
  });
  stock.with([](auto& items) { add_one(items); });
  taker.join();
  check(stock.with([](auto& items) { return items.read(); }) == 0, "the item to be taken");
}

void a_wait_for_a_change_ends_in_time() {
  guarded<race_checked<int>> stock;
  int took = 0;
  std::jthread taker([&] {
    auto held = stock.lock_when([](const auto& items) { return items.read() > 0; }, 1ms);
    if (!held) return;
    held->write(held->read() - 1);
    took = 1;
  });
  stock.with([](auto& items) { add_one(items); });
  taker.join();
  check(stock.with([](auto& items) { return items.read(); }) == 1 - took, "taken or left");
}

void a_coroutine_waits_for_a_change() {
  guarded<race_checked<int>> stock;
  bool took = false;
  const auto coroutine = [&]() -> detached {
    auto held = co_await stock.async_lock();
    const auto notified =
        co_await held.async_wait([](const auto& items) { return items.read() > 0; });
    check(static_cast<bool>(notified), "an unlimited wait to succeed");
    held->write(held->read() - 1);
    took = true;
  };
  std::jthread taker([&] { coroutine(); });
  stock.with([](auto& items) { add_one(items); });
  taker.join();
  check(took, "the coroutine to be notified");
}

void readers_of_a_guarded_share_it() {
  guarded<race_checked<int>, shared_mutex> value;
  std::jthread reader(
      [&] { value.with_read([](const auto& now) { check(now.read() <= 1, "a written value"); }); });
  value.with([](auto& now) { add_one(now); });
}

template <class Lock>
bool add_lock(const std::string& type) {
  const auto every = [&](const char* claim, void (*body)()) {
    add({.name = type + ": " + claim, .options = {.schedules = 4'000}, .body = body});
    add({.name = type + ": " + claim + ", every schedule",
         .options = exhaustively(),
         .body = body});
  };
  every("one at a time", &one_at_a_time<Lock>);
  every("a try never succeeds beside an owner", &a_try_never_succeeds_beside_an_owner<Lock>);
  every("a wait that timed out does not hold", &a_wait_that_timed_out_does_not_hold<Lock>);
  every("a wait that was stopped does not hold", &a_wait_that_was_stopped_does_not_hold<Lock>);
  add({.name = type + ": one at a time of three",
       .options = {.schedules = 4'000},
       .body = &one_at_a_time_of_three<Lock>});
  every("the last owner may destroy it", &the_last_owner_may_destroy_it<Lock>);
  if constexpr (requires(Lock & l) { l.async_lock(); }) {
    every("a coroutine and a thread take turns", &a_coroutine_and_a_thread_take_turns<Lock>);
    every("a coroutine that timed out holds nothing",
          &a_coroutine_that_timed_out_holds_nothing<Lock>);
  }
  return true;
}

[[maybe_unused]] const bool added = [] {
  add_lock<mutex>("mutex");
  add_lock<fair_mutex>("fair_mutex");
  add_lock<shared_mutex>("shared_mutex");
  add_lock<spin_lock>("spin_lock");

  const auto random = [](const char* name, void (*body)(), std::uint64_t schedules = 10'000) {
    add({.name = name, .options = {.schedules = schedules}, .body = body});
  };
  const auto every = [&](const std::string& name, void (*body)()) {
    random(name.c_str(), body, 4'000);
    add({.name = name + ", every schedule", .options = exhaustively(), .body = body});
  };
  random("fair_mutex: acquisitions are in order of arrival", &acquisitions_are_in_order_of_arrival);
  every("shared_mutex: readers see a whole change", &readers_see_a_whole_change);
  random("shared_mutex: two readers and a writer", &two_readers_and_a_writer);
  random("shared_mutex: a writer that times out admits the readers",
         &a_writer_that_times_out_admits_the_readers);
  every("shared_mutex: a reader that timed out does not hold",
        &a_reader_that_timed_out_does_not_hold);
  every("shared_mutex: a coroutine reads", &a_coroutine_reads);
  every("lock_all: opposite orders do not deadlock", &opposite_orders_do_not_deadlock);
  every("lock_all: all or none within a time limit", &all_or_none_within_a_time_limit);
  every("guarded: a change wakes its waiter", &a_change_wakes_its_waiter);
  every("guarded: a wait for a change ends in time", &a_wait_for_a_change_ends_in_time);
  every("guarded: a coroutine waits for a change", &a_coroutine_waits_for_a_change);
  every("guarded: readers share it", &readers_of_a_guarded_share_it);
  return true;
}();

}  // namespace
}  // namespace sluice::sim
