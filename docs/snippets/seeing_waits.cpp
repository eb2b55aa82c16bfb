// The snippets of docs/guides/seeing-waits.md.
#include <signal.h>

#include <chrono>
#include <cstdio>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "sluice/inspect/format.hpp"
#include "sluice/inspect/watchdog.hpp"
#include "sluice/queue/bounded_queue.hpp"
#include "sluice/sync/barrier.hpp"
#include "sluice/sync/lock_guard.hpp"
#include "sluice/sync/mutex.hpp"
#include "sluice/sync/semaphore.hpp"

using namespace std::chrono_literals;
namespace inspect = sluice::inspect;

namespace {

struct mail {
  std::string text;
};

int failures = 0;
void expect(bool holds, const char* expected) {
  if (holds) return;
  ++failures;
  std::fprintf(stderr, "expected %s\n", expected);
}

void look() {
  const inspect::enabled on;  // in main: earlier waits and locks are unknown

  sluice::mutex ledger(sluice::named("ledger"));
  sluice::semaphore uploads(8, sluice::named("uploads"));
  sluice::bounded_queue<mail> emails({.capacity = 1000, .name = "emails"});

  for (const auto& w : inspect::waits()) {
    std::puts((w.party.text() + " waits for " + w.on.at(0).text()).c_str());
  }
  std::fputs(inspect::to_text(inspect::waits()).c_str(), stderr);
  expect(inspect::waits().empty(), "no waiters");
}

void guard() {
  std::vector<std::string> log;
  sluice::bounded_queue<mail> emails({.capacity = 1000, .name = "emails"});
  inspect::watchdog dog({.deadlock_after = 1s,
                         .stalled_after = 30s,
                         .held_after = 5s,
                         .print_on_signal = SIGUSR1,
                         .on_report = [&](const auto& r) { log.push_back(r.text); }});
  const auto watched = dog.watch(emails);
  dog.print();
  expect(log.size() == 1, "one report");
}

void find() {
  const inspect::enabled on;
  sluice::mutex left(sluice::named("left"));
  sluice::mutex right(sluice::named("right"));
  sluice::barrier both(2);
  std::stop_source stop;
  const auto take = [&](sluice::mutex& first, sluice::mutex& second) {
    const sluice::lock_guard hold(first);
    both.arrive_and_wait();
    expect(!second.lock(stop.get_token()), "the second lock not to be had");
    both.arrive_and_wait();  // both keep their first lock until both were stopped
  };
  std::jthread ann([&] { take(left, right); });
  std::jthread bob([&] { take(right, left); });
  std::vector<inspect::deadlock> found;
  while (found.empty()) found = inspect::find_deadlocks();

  for (const auto& d : found) std::fputs(d.text().c_str(), stderr);
  std::fputs(inspect::to_mermaid(inspect::waits()).c_str(), stderr);

  expect(found.at(0).steps.size() == 2, "two parties");
  stop.request_stop();
}

void order() {
  std::vector<std::string> log;
  const inspect::enabled on(
      {.lock_order = true, .on_inversion = [&](const auto& i) { log.push_back(i.text()); }});
  sluice::mutex accounts(sluice::named("accounts"));
  sluice::mutex journal(sluice::named("journal"));
  {
    const sluice::lock_guard one(accounts);
    const sluice::lock_guard two(journal);
  }
  {
    const sluice::lock_guard one(journal);
    const sluice::lock_guard two(accounts);  // reported here, before any deadlock
  }
  expect(log.size() == 1, "one report of the inversion");
}

}  // namespace

int main() {
  look();
  guard();
  find();
  order();
  return failures == 0 ? 0 : 1;
}
