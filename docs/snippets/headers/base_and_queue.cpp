// The examples in the headers of base/, queue/ and channel/. Compiled, never run.
// clang-format off: they stand here as they do there.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "sluice/base/clock.hpp"
#include "sluice/base/outcome.hpp"
#include "sluice/base/race_checked.hpp"
#include "sluice/base/unique_function.hpp"
#include "sluice/channel/channel.hpp"
#include "sluice/channel/select.hpp"
#include "sluice/future/task.hpp"
#include "sluice/queue/bounded_queue.hpp"
#include "sluice/queue/delay_queue.hpp"
#include "sluice/queue/priority_queue.hpp"
#include "sluice/queue/spsc_ring.hpp"

namespace header_examples::base_and_queue {

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
int reply(const Args&...) {
  return 0;
}
template <class... Args>
int send(const Args&...) {
  return 0;
}
template <class... Args>
int print(const Args&...) {
  return 0;
}
template <class... Args>
int show(const Args&...) {
  return 0;
}
template <class... Args>
int parse(const Args&...) {
  return 0;
}
void print_everything();

struct job {
  void run();
};
struct letter_text {};
struct frame {};
struct packet {};
void run(job& j);
bool read(packet& p);

// ---- base

namespace with_a_clock {
using mail = letter_text;
void later() {
  manual_clock clock;
  delay_queue<mail> later({.capacity = 100, .clock = &clock});
  clock.advance(5min);
}
}  // namespace with_a_clock

void outcomes(bounded_queue<job>& queue, const job& job) {
  while (auto item = queue.pop()) handle(*item);         // false: closed and drained
  if (auto s = queue.try_push(job); !s) log(to_string(s));
}

void data(std::mutex& m) {
  race_checked<int> balance{0};                 // guarded by m
  { std::lock_guard hold(m); balance.write(balance.read() + 10); }
}

void functions() {
  unique_function<void()> f = [p = std::make_unique<job>()] { p->run(); };
  f();
}

// ---- queue

void bounded(job j) {
  sluice::bounded_queue<job> jobs(1024);
  std::jthread worker([&] { while (auto j = jobs.pop()) run(*j); });
  if (auto s = jobs.push(std::move(j), 50ms); !s) reply(503);
  jobs.close();                       // the worker drains the queue and ends

  sluice::bounded_queue<frame> frames({.capacity = 8, .overflow = overflow::drop_oldest});
}

namespace delayed_mail {
using mail = letter_text;
void later(const mail& letter) {
  sluice::delay_queue<mail> later(1000);
  (void)later.push({letter, std::chrono::steady_clock::now() + 5min});
  while (auto m = later.pop()) send(m->item);
}
}  // namespace delayed_mail

void urgent() {
  struct mail { int priority; std::string text; };
  sluice::priority_queue<mail> outbox({.capacity = 1000, .ageing = 10s});
  (void)outbox.push({.priority = 9, .text = "your code is 1234"});
  while (auto m = outbox.pop()) send(*m);
}

void one_to_one(packet p) {
  sluice::spsc_ring<packet> ring(4096);
  std::jthread parser([&] { while (auto p = ring.pop()) parse(*p); });
  while (read(p)) (void)ring.push(std::move(p));
  ring.close();
}

// ---- channel

void channels() {
  sluice::channel<int> squares;  // rendezvous
  std::jthread maker([&] {
    for (int i = 0; i < 10 && squares.send(i * i); ++i) {}
    squares.close();
  });
  for (int s : squares) print(s);
}

void consume(sluice::receive_only<frame> in) { for (auto& f : in) show(f); }
void produce(sluice::send_only<frame> out);   // cannot receive: that does not compile

struct order {};
void book(outcome<order> o);
void note(status s);
task<> choose(channel<order>& orders, channel<std::string>& log, std::string line,
              std::stop_token stop, int booked) {
  auto r = select(on_receive(orders, [&](outcome<order> o) { book(o); }),
                  on_send(log, line, [&](status s) { note(s); }));
  if (r.index == 0) ++booked;
  r = try_select(on_receive(orders, book));    // never waits: `empty`, as Go's default
  r = select(50ms, on_receive(orders, book));  // or timed_out
  r = select(stop, on_receive(orders, book));  // or stopped
  r = co_await async_select({}, on_receive(orders, book));
}

}  // namespace header_examples::base_and_queue
