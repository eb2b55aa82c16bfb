// The snippets of docs/concepts/waiting.md and README.md: one queue, awaited and blocked on.
#include <chrono>
#include <cstdio>
#include <stop_token>
#include <thread>

#include "sluice/executor/inline_executor.hpp"
#include "sluice/future/future.hpp"
#include "sluice/future/spawn.hpp"
#include "sluice/future/task.hpp"
#include "sluice/queue/bounded_queue.hpp"
#include "sluice/sync/event.hpp"
#include "sluice/sync/mutex.hpp"
#include "sluice/sync/semaphore.hpp"

using namespace std::chrono_literals;

namespace {

sluice::task<int> sum_of(sluice::bounded_queue<int>& numbers) {
  int sum = 0;
  while (auto n = co_await numbers.async_pop()) sum += *n;
  co_return sum;
}

// The consumer is a coroutine, the producer a thread: the queue serves both.
bool a_coroutine_takes_what_a_thread_gives() {
  sluice::bounded_queue<int> numbers(4);
  sluice::inline_executor here;
  sluice::future<int> sum = sluice::spawn(here, sum_of(numbers));
  for (int i = 1; i <= 100; ++i) {
    if (!numbers.push(i)) return false;
  }
  numbers.close();
  return sum.get() == 5050;
}

bool every_wait_has_these_forms(std::stop_token stop) {
  sluice::bounded_queue<int> q(1);
  bool all = true;
  all &= q.try_pop().status() == sluice::status::empty;             // never waits
  all &= q.pop(1ms).status() == sluice::status::timed_out;          // until a deadline
  all &= q.pop({1ms, stop}).status() == sluice::status::timed_out;  // or until a stop
  const auto soon = sluice::deadline::after(1ms);                   // also on your own clock
  all &= q.pop({soon, stop}).status() == sluice::status::timed_out;
  return all;
}

bool the_others_have_them_too(std::stop_token stop) {
  sluice::mutex m;
  sluice::semaphore slots(2);
  sluice::event ready;
  const bool locked = m.try_lock_for(1ms);
  if (locked) m.unlock();
  const auto slot = slots.acquire(stop);
  const auto signal = ready.wait({1ms, stop});
  return locked && slot && signal == sluice::status::timed_out;
}

// A stop requested before the call wins, even over an available item.
bool a_stop_wins() {
  sluice::bounded_queue<int> q(1);
  std::stop_source stop;
  stop.request_stop();
  return q.push(1) && q.pop(stop.get_token()).status() == sluice::status::stopped && q.size() == 1;
}

}  // namespace

int main() {
  const std::stop_source no_stop;
  const bool all = a_coroutine_takes_what_a_thread_gives() &&
                   every_wait_has_these_forms(no_stop.get_token()) &&
                   the_others_have_them_too(no_stop.get_token()) && a_stop_wins();
  std::puts(all ? "ok" : "failed");
  return all ? 0 : 1;
}
