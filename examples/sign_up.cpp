// A sign-up: the request gets its reply at once, the slow work runs afterwards on a bounded pool.
//
// The welcome mail is a function on a pool, which rejects it when full. The profile is combined
// from two servers by futures. The recommendations come from the faster of two mirrors, within a
// limit, by tasks in a scope, which ends after all its tasks.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <string>
#include <utility>

#include "sluice/executor/thread_pool.hpp"
#include "sluice/future/async.hpp"
#include "sluice/future/scope.hpp"
#include "sluice/future/spawn.hpp"
#include "sluice/future/task.hpp"
#include "sluice/future/task_combinators.hpp"
#include "sluice/future/timers.hpp"
#include "sluice/sync/event.hpp"

using namespace std::chrono_literals;
using sluice::task;

namespace {

std::atomic<int> sent{0};

void send_welcome_mail(const std::string& address) { sent += address.empty() ? 0 : 1; }
std::string load_name(int user) { return "user " + std::to_string(user); }
int load_points(int user) { return user * 10; }

int sign_up(const std::string& address, sluice::thread_pool& pool) {
  auto accepted = pool.try_submit([address] { send_welcome_mail(address); });
  return accepted ? 201 : 503;  // full: rejected now, instead of growing until memory is exhausted
}

std::string profile_of(int user, sluice::executor& pool) {
  auto name = sluice::async(pool, [user] { return load_name(user); });
  auto points = sluice::async(pool, [user] { return load_points(user); });
  return std::move(name)
      .combine(std::move(points),
               [](std::string n, int p) { return n + ", " + std::to_string(p) + " points"; })
      .with_timeout(10s)
      .recover([](const sluice::future_error&) { return std::string("try again later"); })
      .get();
}

task<int> ask_mirror(std::chrono::milliseconds takes, int answer) {
  auto slept = co_await sluice::sleep_for(takes);
  co_return slept ? answer : 0;  // not slept: cancelled, because another answer was faster
}

task<int> recommendation() {
  auto first = co_await sluice::when_any_success(ask_mirror(1ms, 7), ask_mirror(1h, 8));
  co_return first.value;
}

task<> greet_all(int users, std::atomic<int>& greeted, sluice::executor& pool) {
  auto each = [&](sluice::scope& s) -> task<> {
    for (int i = 0; i < users; ++i) s.start([&] { ++greeted; });
    co_return;
  };
  co_await sluice::with_scope(pool, each);  // resumes when all have ended; a failure stops the rest
}

// Blocks the pool's only thread, to show the replies to a burst.
bool refuses_a_burst() {
  sluice::thread_pool small({.core = 1, .capacity = 2, .name = "mail"});
  sluice::event started;
  sluice::event go_on;
  const auto busy = small.submit([&] {
    started.set();
    go_on.wait();
  });
  started.wait();
  int refused = 0;
  for (int i = 0; i < 5; ++i) refused += sign_up("a@example.org", small) == 503 ? 1 : 0;
  go_on.set();
  small.drain();  // accepted mails are still sent
  return busy && refused == 3 && sent == 2;
}

}  // namespace

int main() {
  sluice::thread_pool pool({.core = 2, .capacity = 100, .name = "background"});
  std::atomic<int> greeted{0};
  bool ok = refuses_a_burst();
  ok = profile_of(4, pool) == "user 4, 40 points" && ok;
  ok = sluice::spawn(pool, recommendation()).get() == 7 && ok;
  sluice::spawn(pool, greet_all(100, greeted, pool)).get();
  ok = greeted == 100 && ok;
  std::printf("%s\n", ok ? "signed up, greeted, recommended" : "something is wrong");
  return ok ? 0 : 1;
}
