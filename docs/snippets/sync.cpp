// The snippets of docs/reference/sync.md: each type of sync/ in a few lines.
#include <chrono>
#include <cstdio>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

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
#include "sluice/sync/mutex.hpp"
#include "sluice/sync/named.hpp"
#include "sluice/sync/on_done.hpp"
#include "sluice/sync/semaphore.hpp"
#include "sluice/sync/shared_mutex.hpp"
#include "sluice/sync/snapshot.hpp"
#include "sluice/sync/spin_lock.hpp"

using namespace std::chrono_literals;

namespace {

bool locks(std::stop_token stop) {
  sluice::mutex ledger(sluice::named("ledger"));
  { const std::lock_guard hold(ledger); }
  const auto locked = ledger.lock({5ms, stop});  // ok, timed_out or stopped
  if (locked) ledger.unlock();

  sluice::fair_mutex in_turn;
  { const std::scoped_lock both(ledger, in_turn); }

  sluice::shared_mutex table;
  { const std::shared_lock reading(table); }
  { const std::unique_lock writing(table); }

  sluice::spin_lock counts;
  { const std::lock_guard hold(counts); }
  return locked == sluice::status::ok;
}

bool values() {
  sluice::guarded<std::map<std::string, int>> stock;
  stock.with([](auto& map) { map["tea"] = 3; });
  const int teas = stock.when([](const auto& map) { return map.contains("tea"); },
                              [](auto& map) { return map["tea"]--; });

  sluice::guarded<int> payer(5);
  sluice::guarded<int> payee(0);
  {
    auto [a, b] = sluice::lock_all(payer, payee);
    *b += *a;
    *a = 0;
  }

  sluice::snapshot<std::vector<std::string>> hosts({"a.example"});
  hosts.update([](auto& next) { next.push_back("b.example"); });
  const auto view = hosts.load();  // stays as it is while others publish

  sluice::lazy<std::string> page([] { return std::string("built once"); });
  const bool is_moved = payee.with([](int n) { return n == 5; });
  return teas == 3 && is_moved && view->size() == 2 && page.get() == "built once";
}

bool signals(std::stop_token stop) {
  sluice::event started;
  sluice::latch reported(2);
  sluice::barrier round(2);
  const auto work = [&] {
    started.wait();
    round.arrive_and_wait();
    reported.count_down();
  };
  std::jthread one(work);
  std::jthread two(work);
  started.set();  // also for later waiters
  if (!reported.wait({1min, stop})) return false;

  sluice::semaphore slots(2);
  slots.acquire();
  slots.release();

  sluice::mutex guards;
  sluice::condition changed;
  int items = 0;
  std::jthread producer([&] {
    const std::lock_guard hold(guards);
    ++items;
    changed.notify_one();
  });
  std::unique_lock hold(guards);
  changed.wait(hold, [&] { return items > 0; });
  return items == 1;
}

bool numbers() {
  sluice::counter served;
  served.increment();

  sluice::histogram latency;
  latency.record(3ms);
  const auto p99 = latency.read().quantile(0.99);  // nanoseconds
  return served.sum() == 1 && p99 >= 3'000'000;
}

bool callbacks_and_retries(sluice::mutex& one) {
  sluice::semaphore slots(1);
  bool acquired = false;
  sluice::on_done([&] { return slots.async_acquire(); },
                  [&](sluice::status ended) { acquired = ended == sluice::status::ok; });

  for (sluice::backoff again; !one.try_lock();) again.pause();
  one.unlock();
  return acquired;
}

}  // namespace

int main() {
  const std::stop_source no_stop;
  sluice::mutex one;
  const bool all = locks(no_stop.get_token()) && values() && signals(no_stop.get_token()) &&
                   numbers() && callbacks_and_retries(one);
  std::puts(all ? "ok" : "failed");
  return all ? 0 : 1;
}
