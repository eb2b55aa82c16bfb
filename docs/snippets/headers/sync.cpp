// The examples in the headers of sync/ and inspect/. Compiled, never run.
// clang-format off: they stand here as they do there.
#include <chrono>
#include <coroutine>
#include <csignal>
#include <iostream>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "sluice/executor/thread_pool.hpp"
#include "sluice/future/task.hpp"
#include "sluice/inspect/deadlock.hpp"
#include "sluice/inspect/format.hpp"
#include "sluice/inspect/inspect.hpp"
#include "sluice/inspect/lock_order.hpp"
#include "sluice/inspect/progress.hpp"
#include "sluice/inspect/watchdog.hpp"
#include "sluice/queue/bounded_queue.hpp"
#include "sluice/sync/backoff.hpp"
#include "sluice/sync/barrier.hpp"
#include "sluice/sync/condition.hpp"
#include "sluice/sync/counter.hpp"
#include "sluice/sync/event.hpp"
#include "sluice/sync/fair_mutex.hpp"
#include "sluice/sync/guarded.hpp"
#include "sluice/sync/histogram.hpp"
#include "sluice/sync/latch.hpp"
#include "sluice/sync/lazy.hpp"
#include "sluice/sync/lock_all.hpp"
#include "sluice/sync/lock_guard.hpp"
#include "sluice/sync/mutex.hpp"
#include "sluice/sync/named.hpp"
#include "sluice/sync/on_done.hpp"
#include "sluice/sync/semaphore.hpp"
#include "sluice/sync/shared_mutex.hpp"
#include "sluice/sync/snapshot.hpp"
#include "sluice/sync/spin_lock.hpp"

namespace header_examples::sync {

using namespace sluice;
using namespace std::chrono_literals;
using sluice::clock;  // and not that of <time.h>

template <class... Args>
int log(const Args&...) {
  return 0;
}
template <class... Args>
int handle(const Args&...) {
  return 0;
}
template <class... Args>
int report(const Args&...) {
  return 0;
}
template <class... Args>
int use(const Args&...) {
  return 0;
}
template <class... Args>
int send(const Args&...) {
  return 0;
}
template <class... Args>
int write(const Args&...) {
  return 0;
}
template <class... Args>
void compute(const Args&...) {}
void work();
void look();
void change();
void complain();
void prepare();
bool try_both();

struct job {};
struct field {};
struct table {};
table build_table();

void retries() {
  for (backoff again; !try_both(); ) again.pause();
}

void swap(field& a, field& b);
field now;
field next;
task<> rounds_of(int part, int rounds) {
  barrier step(4, [] { swap(now, next); });
  for (int i = 0; i < rounds; ++i) { compute(part); step.arrive_and_wait(); }
  auto token = step.arrive();
  if (!step.wait(token, 1s)) complain();
  (void)co_await step.async_arrive_and_wait();
}

struct a_lock {
  void lock(call_site at = {});
};

struct owned_lock {
  bool held_by_me() const;
  void lock(call_site at) {
    check(!held_by_me(), "sluice::mutex", "not to be locked again", at);
  }
};

void until(mutex& m, condition& ready, std::vector<int>& items, bool& done, std::stop_token stop) {
  std::unique_lock hold(m);
  ready.wait(hold, [&] { return !items.empty(); });
  if (!ready.wait(hold, [&] { return done; }, {1s, stop})) return;   // timed out or stopped
  { const sluice::lock_guard change(m); done = true; ready.notify_all(); }
}

void counts(const std::vector<std::string>& lines) {
  counter served;
  served.increment();                                        // any thread
  counter::local part(served);
  for (const auto& line : lines) part.add(handle(line));     // no atomics in here
  report(served.sum());
}

task<> once(std::stop_token stop) {
  event ready;
  std::jthread worker([&] { prepare(); ready.set(); });
  ready.wait();                                         // at once if it is set already
  if (!ready.wait({1s, stop})) complain();
  (void)co_await ready.async_wait();
}

task<> in_turn(wait_limits limits) {
  sluice::fair_mutex turn;
  const sluice::lock_guard hold(turn);                 // or std::unique_lock, std::scoped_lock
  if (turn.try_lock_for(5ms)) { work(); turn.unlock(); }
  auto held = co_await turn.async_lock(limits);
}

using id = int;
job take_first(std::map<id, job>& map);
task<> guarded_jobs(id done) {
  guarded<std::map<id, job>> jobs;
  jobs.with([&](auto& map) { map.erase(done); });
  if (auto held = jobs.try_lock_for(5ms)) held->clear();
  const auto next = jobs.when([](auto& map) { return !map.empty(); }, take_first);
  auto held = co_await jobs.async_lock();
}

void times(std::chrono::nanoseconds took) {
  histogram latency;
  latency.record(took);                              // std::chrono::nanoseconds, or a number
  log("p99 {} ns", latency.read().quantile(0.99));
}

struct a_worker {
  template <class F>
  void start(F) {}
};
task<> all_done(std::vector<a_worker>& pool, int workers) {
  latch done(workers);
  for (auto& w : pool) w.start([&] { work(); done.count_down(); });
  done.wait();
  if (!done.wait(5s)) complain();
  (void)co_await done.async_wait();
}

task<> when_asked(std::stop_token stop) {
  lazy<table> primes([] { return build_table(); });
  use(primes.get());  // a table&; throws what the initialiser threw
  if (auto t = primes.get({10ms, stop})) use(*t);
  auto t = co_await primes.async_get();
}

struct account {
  int balance = 0;
};
void transfer(guarded<account>& a, guarded<account>& b, mutex& mutex_, mutex& other_mutex_) {
  auto [payer, payee] = lock_all(a, b);               // guarded<account> a, b
  payer->balance -= 5;
  payee->balance += 5;
  if (auto held = lock_all(10ms, mutex_, other_mutex_)) work();
}

task<> exclusive() {
  sluice::mutex m;
  const sluice::lock_guard hold(m);                    // or std::unique_lock, std::scoped_lock
  if (m.try_lock_for(5ms)) { work(); m.unlock(); }
  auto held = co_await m.async_lock({deadline::after(1s)});
}

void names() {
  mutex ledger(named("ledger"));
  semaphore slots(8, named("uploads"));
}

void callbacks(bounded_queue<job>& queue) {
  on_done([&] { return queue.async_pop({deadline::after(1s)}); },
          [](outcome<job> j) { use(j); });
}

task<> permits() {
  semaphore slots(8);
  slots.acquire();
  work();
  slots.release();
  if (slots.try_acquire_for(100ms, 3)) slots.release(3);
  (void)co_await slots.async_acquire();
}

task<> readers(wait_limits limits) {
  sluice::shared_mutex m;
  { const std::shared_lock reading(m); look(); }
  { const std::unique_lock writing(m, 5ms); if (writing) change(); }
  auto reading = co_await m.async_lock_shared(limits);
}

struct routes {
  int find(const std::string& host) const;
  void insert(const std::string& host, int address);
};
routes read_routes();
void versions(const std::string& host, int address) {
  snapshot<routes> table(read_routes());
  const auto now = table.load();                       // any thread, at any time
  send(now->find(host));
  table.update([&](routes& next) { next.insert(host, address); });
}

void short_hold(spin_lock& spin) {
  const sluice::lock_guard hold(spin);
}

void holds(mutex& ledger) {
  {
  const sluice::lock_guard hold(ledger);
  const sluice::lock_guard adopted(ledger, std::adopt_lock);
  }
}

// ---- inspect

void deadlocks() {
  for (const auto& d : inspect::find_deadlocks()) std::cerr << d.text();
}
void formats() {
  std::cerr << inspect::to_text(inspect::waits());
  write("waits.dot", inspect::to_dot(inspect::waits()));      // dot -Tsvg waits.dot
}
void in_main() {
  inspect::enabled on;                                 // in main
  work();
  std::cerr << inspect::to_text(inspect::waits());
}
void order_of_locks() {
  inspect::enabled on(
      {.lock_order = true, .on_inversion = [](const auto& i) { log(i.text()); }});
}
void how_far(thread_pool& pool) {
  static_assert(inspect::reports_progress<thread_pool>);
  const auto progress = inspect::progress_of(pool);
}
void looks_after(bounded_queue<job>& emails) {
  inspect::watchdog dog({.held_after = 2s, .print_on_signal = SIGUSR1});
  const auto mail = dog.watch(emails);                 // a queue or an executor
}

}  // namespace header_examples::sync
