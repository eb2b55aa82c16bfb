// A user's program that depends on everything that its own code and the library share: types of
// exceptions, thread_local variables, global variables, virtual functions. It is compiled with
// hidden visibility. With AS_PLUGIN it is a shared object, which host.cpp loads and unloads.
//
// Returns 0, or the number of the first claim that does not hold.
#include <chrono>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include "sluice/actor/actor_system.hpp"
#include "sluice/actor/actor_error.hpp"
#include "sluice/executor/fork.hpp"
#include "sluice/executor/thread_pool.hpp"
#include "sluice/executor/work_stealing_pool.hpp"
#include "sluice/flow/refused_error.hpp"
#include "sluice/flow/retry.hpp"
#include "sluice/future/async.hpp"
#include "sluice/future/future_error.hpp"
#include "sluice/future/promise.hpp"
#include "sluice/future/spawn.hpp"
#include "sluice/future/sync_wait.hpp"
#include "sluice/future/task.hpp"
#include "sluice/inspect/inspect.hpp"
#include "sluice/queue/bounded_queue.hpp"
#include "sluice/sluice.hpp"

namespace {

using sluice::future_error;

struct own_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct question {
  using reply = int;
};
class answerer : public sluice::actor<answerer, question> {
 public:
  int on(question) {
    if (++asked_ == 2) throw own_error("the second question");
    return 42;
  }

 private:
  int asked_ = 0;
};

template <class Error, class F>
bool throws(F&& f) {
  try {
    std::forward<F>(f)();
  } catch (const Error&) {
    return true;
  } catch (...) {
  }
  return false;
}

// Thrown by the library's code, caught by the program.
bool an_error_of_the_library_is_caught() {
  sluice::future<int> broken;
  {
    sluice::promise<int> promise;
    broken = promise.get_future();
  }
  return throws<future_error>([&] { (void)broken.get(); });
}

// Thrown by the program, recognized by the library: a cancellation is never retried.
bool an_error_of_the_program_is_recognized() {
  int calls = 0;
  const sluice::retry_policy policy{.attempts_max = 3, .first_delay = std::chrono::nanoseconds(1)};
  const bool cancelled = throws<future_error>([&] {
    sluice::retry(policy, [&] {
      ++calls;
      throw future_error(future_error::cancelled);
    });
  });
  const bool given_up = throws<sluice::retry_error>([&] {
    sluice::retry(policy, [&] {
      ++calls;
      throw own_error("again");
    });
  });
  return cancelled && given_up && calls == 4;
}

bool an_own_error_passes_through() {
  sluice::thread_pool pool(1);
  auto result = sluice::async(pool, []() -> int { throw own_error("passed"); });
  return throws<own_error>([&] { (void)std::move(result).get(); });
}

bool an_actor_answers_and_fails() {
  sluice::thread_pool pool(2);
  sluice::actor_system system(pool);
  auto asked = system.spawn<answerer>();
  const bool answered = asked.ask(question{}).get() == 42;
  const bool failed = throws<own_error>([&] { (void)asked.ask(question{}).get(); });
  system.close();
  const auto joined = system.join();
  const bool gone = throws<sluice::actor_error>([&] { (void)asked.ask(question{}).get(); });
  return answered && failed && joined && gone;
}

// Set by the library, read by the program, and the other way round.
bool a_thread_knows_its_executor() {
  sluice::thread_pool pool(1);
  auto here = sluice::async(pool, [] { return sluice::executor::current(); });
  return std::move(here).get() == &pool && sluice::executor::current() == nullptr;
}

long fib(int n) {
  if (n < 2) return n;
  auto left = sluice::fork([n] { return fib(n - 1); });
  const long right = fib(n - 2);
  return left.join() + right;
}

bool a_worker_knows_its_pool() {
  sluice::work_stealing_pool pool;
  return sluice::fork(pool, [] { return fib(15); }).join() == 610;
}

sluice::task<int> add(sluice::bounded_queue<int>& from) {
  int sum = 0;
  while (auto n = co_await from.async_pop()) sum += *n;
  co_return sum;
}

bool a_coroutine_is_resumed() {
  sluice::thread_pool pool(1);
  sluice::bounded_queue<int> queue(1);
  auto sum = sluice::spawn(pool, add(queue));
  for (int i = 1; i <= 100; ++i) {
    if (!queue.push(i)) return false;
  }
  queue.close();
  return std::move(sum).get() == 5050;
}

// The program's code reads a variable of the library to see that it is watched.
bool a_wait_is_seen() {
  const sluice::inspect::enabled on;
  sluice::bounded_queue<int> queue({.capacity = 1, .name = "letters"});
  bool seen = false;
  {
    const std::jthread waits([&] { (void)queue.pop(); });
    while (sluice::inspect::waits().empty()) std::this_thread::yield();
    const auto all = sluice::inspect::waits();
    seen = all.size() == 1 && all[0].on.size() == 1 && all[0].on[0].name == "letters";
    queue.close();
  }
  return seen;
}

int first_false() {
  int number = 0;
  for (auto* const claim :
       {an_error_of_the_library_is_caught, an_error_of_the_program_is_recognized,
        an_own_error_passes_through, an_actor_answers_and_fails, a_thread_knows_its_executor,
        a_worker_knows_its_pool, a_coroutine_is_resumed, a_wait_is_seen}) {
    ++number;
    if (!claim()) {
      std::printf("claim %d does not hold\n", number);
      return number;
    }
  }
  return 0;
}

}  // namespace

#if defined(AS_PLUGIN)
extern "C" [[gnu::visibility("default")]] int run_plugin() { return first_false(); }
#else
int main() { return first_false(); }
#endif
