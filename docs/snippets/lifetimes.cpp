// The snippets of docs/concepts/lifetimes.md.
#include <chrono>
#include <cstdio>

#include "sluice/executor/strand.hpp"
#include "sluice/executor/thread_pool.hpp"
#include "sluice/future/timers.hpp"
#include "sluice/sync/event.hpp"

namespace {

using namespace std::chrono_literals;

bool in_the_order_of_declaration() {
  sluice::thread_pool pool(2);
  sluice::strand account(pool);  // destroyed before its pool
  return static_cast<bool>(account.submit([] {}));
}

bool cancelled_and_waited_for() {
  sluice::event ticked;
  sluice::thread_pool pool(2);
  auto ticking = sluice::every(10ms, pool, [&] { ticked.set(); });
  ticked.wait();
  ticking.cancel();
  ticking.get();  // from here on the pool may end
  return true;
}

}  // namespace

int main() {
  if (in_the_order_of_declaration() && cancelled_and_waited_for()) return 0;
  std::puts("a snippet does not do what its document says");
  return 1;
}
