// semaphore, event, latch, barrier, condition, counter, histogram, on_done and the waiter itself.

#include <chrono>
#include <memory>
#include <mutex>
#include <stop_token>
#include <thread>

#include "sluice/base/race_checked.hpp"
#include "sluice/sim/testing/scenario.hpp"
#include "sluice/sync/barrier.hpp"
#include "sluice/sync/condition.hpp"
#include "sluice/sync/counter.hpp"
#include "sluice/sync/event.hpp"
#include "sluice/sync/histogram.hpp"
#include "sluice/sync/latch.hpp"
#include "sluice/sync/mutex.hpp"
#include "sluice/sync/on_done.hpp"
#include "sluice/sync/semaphore.hpp"
#include "sluice/sync/testing/coroutine.hpp"

namespace sluice::sim {
namespace {

using namespace std::chrono_literals;
using testing::detached;

void add_one(race_checked<int>& sum) {
  sum.write(sum.read() + 1);
}

// ---- semaphore

void one_permit_admits_one_party() {
  semaphore permit(1);
  race_checked<int> sum{0};
  const auto step = [&] {
    permit.acquire();
    add_one(sum);
    permit.release();
  };
  std::jthread other(step);
  step();
  other.join();
  check(sum.read() == 2 && permit.available() == 1, "both increments, and the permit back");
}

void a_release_is_not_lost() {
  semaphore signal(0);
  race_checked<int> value{0};
  std::jthread other([&] {
    value.write(1);
    signal.release();
  });
  signal.acquire();
  check(value.read() == 1, "the write before the release");
}

void an_acquire_that_timed_out_took_nothing() {
  semaphore permits(0);
  std::jthread other([&] { permits.release(); });
  const int got = permits.try_acquire_for(1ms) ? 1 : 0;
  other.join();
  check(permits.available() == 1 - got && permits.waiting() == 0, "acquired, or still available");
}

void an_acquire_that_was_stopped_took_nothing() {
  semaphore permits(0);
  std::stop_source stop;
  std::jthread other([&] {
    stop.request_stop();
    permits.release();
  });
  const int got = permits.acquire(stop.get_token()) ? 1 : 0;
  other.join();
  check(permits.available() == 1 - got && permits.waiting() == 0, "acquired, or still available");
}

void the_served_waiter_may_destroy_the_semaphore() {
  auto signal = std::make_unique<semaphore>(0);
  std::jthread other([&] { signal->release(); });
  signal->acquire();
  signal.reset();
}

void a_coroutine_receives_a_permit() {
  semaphore permits(0);
  race_checked<int> value{0};
  bool finished = false;
  const auto coroutine = [&]() -> detached {
    const auto ended = co_await permits.async_acquire();
    check(ended == status::ok && value.read() == 1, "the write before the release");
    finished = true;
  };
  std::jthread other([&] { coroutine(); });
  value.write(1);
  permits.release();
  other.join();
  check(finished && permits.available() == 0, "no permit left");
}

void a_coroutine_that_was_stopped_took_no_permit() {
  semaphore permits(0);
  std::stop_source stop;
  int got = -1;
  const auto coroutine = [&]() -> detached {
    const wait_limits limits(stop.get_token());
    const auto ended = co_await permits.async_acquire(1, limits);
    got = ended ? 1 : 0;
  };
  std::jthread other([&] { coroutine(); });
  stop.request_stop();
  permits.release();
  other.join();
  check(got + permits.available() == 1 && permits.waiting() == 0, "acquired, or still available");
}

void permits_are_granted_in_order() {
  semaphore permits(0);
  race_checked<int> next{1};
  const auto take = [&](int position) {
    permits.acquire(position == 1 ? 2 : 1);
    check(next.read() == position, "the longest waiter to be served first");
    next.write(position + 1);
    if (position == 1) permits.release(1);
  };
  std::jthread first(take, 1);
  while (permits.waiting() < 1) yield();
  std::jthread second(take, 2);
  while (permits.waiting() < 2) yield();
  permits.release(1);
  permits.release(1);
}

void a_timed_out_waiter_does_not_block_the_next() {
  semaphore permits(1);
  std::jthread large([&] { check(!permits.try_acquire_for(1ms, 2), "never two permits"); });
  permits.acquire();
  large.join();
  check(permits.available() == 0, "no permit left");
}

// ---- event

void a_signal_is_not_lost() {
  event done;
  race_checked<int> value{0};
  std::jthread other([&] {
    value.write(1);
    done.set();
  });
  done.wait();
  check(value.read() == 1, "the write before the signal");
}

void is_set_synchronizes() {
  event done;
  race_checked<int> value{0};
  std::jthread other([&] {
    value.write(1);
    done.set();
  });
  if (done.is_set()) check(value.read() == 1, "the write before the signal");
}

void a_released_waiter_may_destroy_the_event() {
  auto done = std::make_unique<event>();
  std::jthread other([&] { done->set(); });
  done->wait();
  done.reset();
}

void a_wait_for_an_event_ends_in_time() {
  event done;
  std::jthread other([&] { done.set(); });
  const auto ended = done.wait(1ms);
  check(ended == status::ok || ended == status::timed_out, "the signal or the deadline");
  other.join();
  check(done.is_set() && done.waiting() == 0, "a set event without waiters");
}

void a_wait_for_an_event_ends_by_a_stop() {
  event done;
  std::stop_source stop;
  std::jthread other([&] {
    stop.request_stop();
    done.set();
  });
  const auto ended = done.wait(stop.get_token());
  check(ended == status::ok || ended == status::stopped, "the signal or the stop");
}

void a_reset_does_not_revoke_a_signal() {
  event done;
  std::jthread other([&] { done.wait(); });
  while (done.waiting() == 0) yield();
  done.set();
  done.reset();
}

void an_event_wakes_a_coroutine() {
  event done;
  race_checked<int> value{0};
  bool through = false;
  const auto coroutine = [&]() -> detached {
    const auto ended = co_await done.async_wait();
    check(ended == status::ok && value.read() == 1, "the write before the signal");
    through = true;
  };
  std::jthread awaits([&] { coroutine(); });
  value.write(1);
  done.set();
  awaits.join();
  check(through, "the coroutine to be resumed");
}

void an_event_wakes_threads_and_coroutines() {
  event done;
  race_checked<int> value{0};
  atomic<int> through{0};
  const auto coroutine = [&]() -> detached {
    const auto ended = co_await done.async_wait();
    check(ended == status::ok && value.read() == 1, "the write before the signal");
    through.fetch_add(1, relaxed);
  };
  std::jthread waits([&] {
    done.wait();
    check(value.read() == 1, "the write before the signal");
    through.fetch_add(1, relaxed);
  });
  std::jthread awaits([&] { coroutine(); });
  value.write(1);
  done.set();
  waits.join();
  awaits.join();
  check(through.load(relaxed) == 2, "all waiters to be released");
}

void an_event_calls_its_callback() {
  event done;
  int calls = 0;
  std::jthread other([&] {
    on_done([&] { return done.async_wait(); }, [&](status ended) { calls += ended ? 1 : 100; });
  });
  done.set();
  other.join();
  check(calls == 1, "one call");
}

// ---- latch and barrier

void a_latch_opens_when_all_are_done() {
  latch done(2);
  race_checked<int> value{0};
  std::jthread other([&] {
    value.write(1);
    done.count_down();
  });
  done.arrive_and_wait();
  check(value.read() == 1, "the writes of both");
}

void two_workers_open_a_latch_that_is_destroyed_at_once() {
  auto done = std::make_unique<latch>(2);
  race_checked<int> one{0};
  race_checked<int> two{0};
  std::jthread a([&] {
    one.write(1);
    done->count_down();
  });
  std::jthread b([&] {
    two.write(1);
    done->count_down();
  });
  done->wait();
  done.reset();
  check(one.read() == 1 && two.read() == 1, "the writes of both");
}

void a_barrier_keeps_rounds_apart() {
  int rounds = 0;
  barrier step(2, [&] { ++rounds; });
  race_checked<int> left{0};
  race_checked<int> right{0};
  std::jthread other([&] {
    right.write(1);
    step.arrive_and_wait();
    check(left.read() == 1, "the other's write of the previous round");
    step.arrive_and_wait();
  });
  left.write(1);
  step.arrive_and_wait();
  check(right.read() == 1, "the other's write of the previous round");
  step.arrive_and_wait();
  check(rounds == 2, "the completion to run once a round");
}

void an_arrival_counts_although_its_wait_timed_out() {
  barrier step(2);
  std::jthread other([&] { (void)step.arrive_and_wait(1ms); });
  step.arrive_and_wait();
}

void a_released_waiter_may_destroy_the_barrier() {
  auto step = std::make_unique<barrier>(2);
  std::jthread other([&] { step->arrive_and_drop(); });
  step->arrive_and_wait();
  step.reset();
}

// ---- condition

void a_notification_is_not_missed() {
  mutex lock;
  condition changed;
  race_checked<bool> ready{false};
  std::jthread other([&] {
    const std::lock_guard hold(lock);
    ready.write(true);
    changed.notify_one();
  });
  std::unique_lock hold(lock);
  changed.wait(hold, [&] { return ready.read(); });
}

void notify_all_wakes_all() {
  mutex lock;
  condition changed;
  race_checked<bool> ready{false};
  const auto wait = [&] {
    std::unique_lock hold(lock);
    changed.wait(hold, [&] { return ready.read(); });
  };
  std::jthread a(wait);
  std::jthread b(wait);
  const std::lock_guard hold(lock);
  ready.write(true);
  changed.notify_all();
}

void a_wait_that_timed_out_consumes_no_notification() {
  mutex lock;
  condition changed;
  race_checked<int> tokens{0};
  const auto has_token = [&] { return tokens.read() > 0; };
  const auto bring = [&] {
    const std::lock_guard hold(lock);
    add_one(tokens);
    changed.notify_one();
  };
  bool took = false;
  std::jthread hasty([&] {
    std::unique_lock hold(lock);
    took = static_cast<bool>(changed.wait_for(hold, 1ms, has_token));
    if (took) tokens.write(tokens.read() - 1);
  });
  std::jthread patient([&] {
    std::unique_lock hold(lock);
    changed.wait(hold, has_token);
    tokens.write(tokens.read() - 1);
  });
  bring();
  hasty.join();
  if (took) bring();
}

void a_coroutine_waits_for_a_condition() {
  mutex lock;
  condition changed;
  race_checked<bool> ready{false};
  bool finished = false;
  const auto coroutine = [&]() -> detached {
    auto hold = co_await lock.async_lock();
    const auto ended = co_await changed.async_wait(*hold, [&] { return ready.read(); });
    check(ended == status::ok, "an unlimited wait to succeed");
    finished = true;
  };
  std::jthread other([&] { coroutine(); });
  {
    const std::lock_guard hold(lock);
    ready.write(true);
    changed.notify_all();
  }
  other.join();
  check(finished, "the coroutine to be notified");
}

// ---- counting

void a_counter_loses_no_add() {
  counter served;
  std::jthread other([&] {
    counter::local local(served);
    local.add(2);
    local.increment();
  });
  served.increment();
  const auto seen = served.sum();
  check(seen == 1 || seen == 4, "the adds before, and whole merges");
  other.join();
  check(served.sum() == 4, "every add");
}

void a_histogram_loses_no_record() {
  histogram sizes;
  std::jthread other([&] { sizes.record(std::uint64_t{3}); });
  sizes.record(std::uint64_t{5});
  other.join();
  const auto now = sizes.read();
  check(now.count() == 2 && now.sum() == 8, "every record");
  check(now.smallest() == 3 && now.largest() == 5, "the extremes");
}

// ---- the waiter

// One list, one lock, and one waiter with limits.
struct bench_seat {
  spin_lock guard;
  wait_list waiters;

  bool notify() {
    wake_batch wakes;
    const std::lock_guard hold(guard);
    auto* const node = claim_front(waiters);
    if (node != nullptr) wakes.add(*node->waiting);
    return node != nullptr;
  }
  waiter::state wait(const wait_limits& limits) {
    thread_waiter self;
    wait_node node;
    {
      const std::lock_guard hold(guard);
      check(link_waiter(waiters, node, self) == enlisted::waiting, "no earlier end");
    }
    const auto ended = self.park(limits);
    const std::lock_guard hold(guard);
    if (node.linked()) node.unlink();
    return ended;
  }
};

enum class limited_by : std::uint8_t { stop, stop_and_deadline };

void exactly_one_ends_a_wait(limited_by limit) {
  bench_seat seat;
  std::stop_source stop;
  bool claimed = false;
  std::jthread notifier([&] {
    claimed = seat.notify();
    stop.request_stop();
  });
  const auto until = limit == limited_by::stop ? deadline::never() : deadline::after(1ms);
  const auto ended = seat.wait({until, stop.get_token()});
  notifier.join();
  check(claimed == (ended == waiter::state::claimed),
        "the notifier to succeed if and only if it was first");
  check(limit != limited_by::stop || ended != waiter::state::timed_out,
        "no time-out without a deadline");
}

[[maybe_unused]] const bool added = [] {
  const auto random = [](const std::string& name, std::function<void()> body,
                         std::uint64_t schedules = 10'000) {
    add({.name = name, .options = {.schedules = schedules}, .body = std::move(body)});
  };
  const auto every = [&](const std::string& name, const std::function<void()>& body) {
    random(name, body, 4'000);
    add({.name = name + ", every schedule", .options = exhaustively(), .body = body});
  };
  every("semaphore: one permit admits one party", &one_permit_admits_one_party);
  every("semaphore: a release is not lost", &a_release_is_not_lost);
  every("semaphore: an acquire that timed out took nothing",
        &an_acquire_that_timed_out_took_nothing);
  every("semaphore: an acquire that was stopped took nothing",
        &an_acquire_that_was_stopped_took_nothing);
  every("semaphore: the served waiter may destroy it",
        &the_served_waiter_may_destroy_the_semaphore);
  every("semaphore: a coroutine receives a permit", &a_coroutine_receives_a_permit);
  every("semaphore: a coroutine that was stopped took nothing",
        &a_coroutine_that_was_stopped_took_no_permit);
  every("semaphore: a timed-out waiter does not block the next",
        &a_timed_out_waiter_does_not_block_the_next);
  random("semaphore: permits are granted in order", &permits_are_granted_in_order);
  every("event: a signal is not lost", &a_signal_is_not_lost);
  every("event: is_set synchronizes", &is_set_synchronizes);
  every("event: a released waiter may destroy it", &a_released_waiter_may_destroy_the_event);
  every("event: a wait ends in time", &a_wait_for_an_event_ends_in_time);
  every("event: a wait ends by a stop", &a_wait_for_an_event_ends_by_a_stop);
  every("event: a reset does not revoke a signal", &a_reset_does_not_revoke_a_signal);
  every("on_done: an event calls its callback", &an_event_calls_its_callback);
  every("event: wakes a coroutine", &an_event_wakes_a_coroutine);
  random("event: wakes threads and coroutines", &an_event_wakes_threads_and_coroutines);
  every("latch: opens when all are done", &a_latch_opens_when_all_are_done);
  random("latch: two workers open a latch that is destroyed at once",
         &two_workers_open_a_latch_that_is_destroyed_at_once);
  every("barrier: keeps rounds apart", &a_barrier_keeps_rounds_apart);
  every("barrier: an arrival counts although its wait timed out",
        &an_arrival_counts_although_its_wait_timed_out);
  every("barrier: a released waiter may destroy it", &a_released_waiter_may_destroy_the_barrier);
  every("condition: a notification is not missed", &a_notification_is_not_missed);
  random("condition: notify_all wakes all", &notify_all_wakes_all);
  random("condition: a wait that timed out consumes no notification",
         &a_wait_that_timed_out_consumes_no_notification);
  every("condition: a coroutine waits", &a_coroutine_waits_for_a_condition);
  every("counter: loses no add", &a_counter_loses_no_add);
  random("histogram: loses no record", &a_histogram_loses_no_record, 300);
  every("waiter: exactly one ends a wait, notifier or stop",
        [] { exactly_one_ends_a_wait(limited_by::stop); });
  every("waiter: exactly one ends a wait, notifier, stop or deadline",
        [] { exactly_one_ends_a_wait(limited_by::stop_and_deadline); });
  return true;
}();

}  // namespace
}  // namespace sluice::sim
