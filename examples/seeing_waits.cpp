// Two tellers move money between two accounts, and each first locks the account that it debits:
// sooner or later both wait for each other. Inspect reports the risk before it happens, and the
// waits and their places when it has happened. A teller gives up after a while, so work continues.

#include <chrono>
#include <cstdio>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>

#include "sluice/base/this_thread.hpp"
#include "sluice/inspect/format.hpp"
#include "sluice/inspect/watchdog.hpp"
#include "sluice/sync/barrier.hpp"
#include "sluice/sync/event.hpp"
#include "sluice/sync/lock_guard.hpp"
#include "sluice/sync/mutex.hpp"

using namespace std::chrono_literals;
namespace inspect = sluice::inspect;

namespace {

struct account {
  explicit account(const char* name) : lock(sluice::named(name)) {}
  sluice::mutex lock;
  long balance = 100;
};

// Returns false if the other account was not locked in time; then nothing was moved.
bool move_money(account& payer, account& payee, long amount, sluice::barrier& both) {
  const sluice::lock_guard hold(payer.lock);
  both.arrive_and_wait();  // bad luck, made certain for this example
  if (!payee.lock.try_lock_for(10s)) return false;
  const sluice::lock_guard adopted(payee.lock, std::adopt_lock);
  payer.balance -= amount;
  payee.balance += amount;
  return true;
}

}  // namespace

int main() {
  sluice::event reported;
  int deadlocks = 0;
  int inversions = 0;
  inspect::watchdog dog(
      {.period = 50ms,
       .deadlock_after = 100ms,
       .on_report =
           [&](const inspect::report& r) {
             std::fputs(r.text.c_str(), stdout);
             if (r.type == inspect::report::kind::deadlock) {
               ++deadlocks;
               std::fputs(inspect::to_mermaid(inspect::waits()).c_str(), stdout);
               reported.set();
             }
           },
       .inspecting = {.lock_order = true, .on_inversion = [&](const inspect::lock_inversion& i) {
                        ++inversions;
                        std::fputs(i.text().c_str(), stdout);
                      }}});

  account ours("ours");
  account theirs("theirs");

  // One after the other: no deadlock, but the risk is reported.
  sluice::barrier alone(1);
  const bool first = move_money(ours, theirs, 5, alone) && move_money(theirs, ours, 5, alone);

  // At the same time: a deadlock. The first teller gives up after the report.
  sluice::barrier both(2);
  std::stop_source enough;
  std::jthread ann([&] {
    sluice::seam::name_thread("ann");
    const sluice::lock_guard hold(ours.lock);
    both.arrive_and_wait();
    if (theirs.lock.lock(enough.get_token())) theirs.lock.unlock();
  });
  std::jthread bob([&] {
    sluice::seam::name_thread("bob");
    if (!move_money(theirs, ours, 5, both)) std::puts("bob gave up");
  });
  reported.wait();
  enough.request_stop();
  ann.join();
  bob.join();

  std::fputs(inspect::to_text(inspect::contention()).c_str(), stdout);
  std::printf("%ld and %ld; %d deadlock, %d inversion\n", ours.balance, theirs.balance, deadlocks,
              inversions);
  return first && deadlocks == 1 && inversions == 1 ? 0 : 1;
}
