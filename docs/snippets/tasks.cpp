// The snippets of docs/reference/task.md: tasks on a pool, cancelled, limited, and in a scope.
#include <chrono>
#include <cstdio>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "sluice/channel/channel.hpp"
#include "sluice/executor/thread_pool.hpp"
#include "sluice/future/scope.hpp"
#include "sluice/future/spawn.hpp"
#include "sluice/future/sync_wait.hpp"
#include "sluice/future/task.hpp"
#include "sluice/future/task_combinators.hpp"
#include "sluice/future/this_task.hpp"
#include "sluice/future/timers.hpp"

using namespace std::chrono_literals;
using sluice::channel;
using sluice::deadline;
using sluice::scope;
using sluice::task;

namespace {

task<std::size_t> length(channel<std::string>& lines) {
  auto line = co_await lines.async_receive();
  co_return line ? line->size() : 0;
}

task<std::size_t> two_lengths(channel<std::string>& lines) {
  co_return co_await length(lines) + co_await length(lines);
}

bool a_task_is_waited_for() {
  channel<std::string> lines(2);
  if (!lines.send("four") || !lines.send("seventh")) return false;
  return sluice::sync_wait(two_lengths(lines)) == 11;
}

bool or_spawned_and_cancelled(sluice::executor& pool) {
  channel<std::string> never_sent(1);
  sluice::future<std::size_t> f = sluice::spawn(pool, two_lengths(never_sent));
  f.cancel();  // both waits end with `stopped`, so both lengths are 0
  try {
    return f.get() == 0;
  } catch (const sluice::future_error& e) {
    return e.why() == sluice::future_error::cancelled;  // it had not begun
  }
}

bool or_limited() {
  channel<std::string> never_sent(1);
  auto late = sluice::sync_wait(two_lengths(never_sent), deadline::after(1ms));
  return late.status() == sluice::status::timed_out;
}

// Sums up on the pool and checks its token between the steps.
task<long> sum(sluice::executor& pool, const std::vector<int>& numbers) {
  co_await sluice::resume_on(pool);
  const std::stop_token stop = co_await sluice::this_task::stop_token();
  long total = 0;
  for (const int n : numbers) {
    if (stop.stop_requested()) break;
    total += n;
  }
  co_return total;  // the awaiting task resumes on its own executor
}

task<int> ask(const char* server, std::chrono::milliseconds takes) {
  const auto slept = co_await sluice::sleep_for(takes);
  if (!slept) co_return -1;  // asked to stop
  co_return server[0];
}

task<bool> several_at_once() {
  auto [a, b] = co_await sluice::when_all(ask("a", 1ms), ask("b", 2ms));
  auto first = co_await sluice::when_any(ask("slow", 1h), ask("quick", 1ms));
  auto soon = co_await sluice::within(ask("slow", 1h), deadline::after(1ms));
  co_return a == 'a' && b == 'b' && first.index == 1 && !soon;
}

task<> shout(std::string line, channel<std::string>& out) {
  (void)co_await out.async_send(line + "!");
}

task<> shout_all(channel<std::string>& in, channel<std::string>& out, sluice::executor& pool) {
  auto each_in_its_own_task = [&](scope& s) -> task<> {
    while (auto line = co_await in.async_receive()) s.start(shout(std::move(*line), out));
  };
  co_await sluice::with_scope(pool, each_in_its_own_task);
  out.close();  // all children have ended
}

bool a_scope_waits_for_its_children(sluice::executor& pool) {
  channel<std::string> in(4);
  channel<std::string> out(4);
  for (const char* word : {"one", "two"}) {
    if (!in.send(word)) return false;
  }
  in.close();
  auto done = sluice::spawn(pool, shout_all(in, out, pool));
  std::size_t letters = 0;
  for (auto& line : out) letters += line.size();
  done.get();
  return letters == 8;
}

bool a_scope_has_a_deadline(sluice::executor& pool) {
  channel<std::string> in(1);
  channel<std::string> out(1);
  const auto body = [&](scope& s) -> task<> {
    while (auto line = co_await in.async_receive()) s.start(shout(std::move(*line), out));
  };
  const sluice::status on_a_thread = sluice::sync_wait(sluice::with_scope(pool, body), 60ms);
  auto in_a_task = [&]() -> task<sluice::status> {
    co_return co_await sluice::within(sluice::with_scope(pool, body), 5s);
  };
  in.close();  // the body ends by itself
  return on_a_thread == sluice::status::timed_out &&
         sluice::sync_wait(in_a_task()) == sluice::status::ok;
}

bool the_first_failure_is_thrown(sluice::executor& pool) {
  try {
    sluice::sync_scope(pool, [](scope& s) {
      auto waits = s.spawn(ask("slow", 1h));  // is asked to stop
      s.start([] { throw std::runtime_error("disk full"); });
    });
  } catch (const std::runtime_error&) {
    return true;
  }
  return false;
}

}  // namespace

int main() {
  sluice::thread_pool pool(2);
  const std::vector<int> numbers{1, 2, 3};
  const bool all = a_task_is_waited_for() && or_spawned_and_cancelled(pool) && or_limited() &&
                   sluice::sync_wait(sum(pool, numbers)) == 6 &&
                   sluice::sync_wait(several_at_once()) && a_scope_waits_for_its_children(pool) &&
                   a_scope_has_a_deadline(pool) && the_first_failure_is_thrown(pool);
  std::puts(all ? "ok" : "failed");
  return all ? 0 : 1;
}
