// The snippets of docs/concepts/lifetimes.md, and the guard of docs/concepts/shutdown.md.
#include <chrono>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "sluice/executor/strand.hpp"
#include "sluice/executor/thread_pool.hpp"
#include "sluice/future/timers.hpp"
#include "sluice/queue/bounded_queue.hpp"
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

// Closes the queue on every way out of the block, also by an exception.
struct close_at_end {
  sluice::bounded_queue<std::string>& queue;
  ~close_at_end() { queue.close(); }
};

void fails_halfway(int& delivered) {
  sluice::bounded_queue<std::string> mail(16);
  std::vector<std::jthread> workers;
  const close_at_end guard{mail};  // after the threads: runs before they are joined
  workers.emplace_back([&] {
    while (auto letter = mail.pop()) ++delivered;
  });
  if (mail.push("hello")) throw std::runtime_error("no more letters");
}

bool closed_by_an_exception() {
  int delivered = 0;
  try {
    fails_halfway(delivered);
  } catch (const std::runtime_error&) {
    return delivered == 1;
  }
  return false;
}

}  // namespace

int main() {
  if (in_the_order_of_declaration() && cancelled_and_waited_for() && closed_by_an_exception()) {
    return 0;
  }
  std::puts("a snippet of the document failed");
  return 1;
}
