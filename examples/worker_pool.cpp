// A queue, workers, and the three ways to end them: close it and let them finish, interrupt them
// with a stop_token, or let them poll with a timeout.
#include <chrono>
#include <cstdio>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "sluice/queue/bounded_queue.hpp"
#include "sluice/sync/counter.hpp"
#include "sluice/sync/event.hpp"

using namespace std::chrono_literals;

namespace {

sluice::counter delivered;

void deliver(const std::string& letter) {
  if (!letter.empty()) delivered.increment();
}

void say_busy() {
  std::puts("busy: come back later");
}

// The letters of every scenario below.
constexpr int letters = 1'000;

// The intake ends, queued letters are delivered, then the workers end by themselves.
void close_and_drain() {
  sluice::bounded_queue<std::string> mail(1024);  // when full, push waits

  std::vector<std::jthread> workers;
  for (int i = 0; i < 8; ++i) {
    workers.emplace_back([&] {
      while (auto letter = mail.pop()) deliver(*letter);  // a whole worker loop
    });
  }
  for (int i = 0; i < letters; ++i) {
    if (!mail.push("hello", 50ms)) say_busy();  // false: still full after 50 ms, or closed
  }
  mail.close();  // a whole graceful shutdown: the workers drain the queue and end
}

// Every worker ends at its next call, even if there is more to do. Queued letters stay queued.
std::size_t interrupt() {
  sluice::bounded_queue<std::string> mail(16);
  std::vector<std::jthread> workers;
  workers.emplace_back([&](std::stop_token stop) {
    while (auto letter = mail.pop(stop)) deliver(*letter);
  });
  std::jthread writer([&](std::stop_token stop) {
    for (;;) {
      std::string letter = "hello";
      if (mail.push(std::move(letter), stop) == sluice::status::stopped) return;
    }
  });
  std::this_thread::sleep_for(5ms);

  workers.clear();  // the destructor of a jthread requests a stop, and joins
  writer = {};      // the same: a push that waits for capacity ends too
  return mail.size();
}

// A worker with other tasks limits its waits.
int look_up_now_and_then() {
  sluice::bounded_queue<std::string> mail(16);
  sluice::event going_home;
  int chores = 0;
  std::jthread worker([&] {
    while (!going_home.is_set()) {
      if (auto letter = mail.pop(1ms)) {
        deliver(*letter);
      } else if (letter.status() == sluice::status::timed_out) {
        ++chores;
      }
    }
  });
  for (int i = 0; i < letters; ++i) {
    if (!mail.push("hello")) say_busy();
  }
  while (!mail.empty()) std::this_thread::sleep_for(5ms);
  going_home.set();
  worker.join();
  return chores;
}

}  // namespace

int main() {
  close_and_drain();
  const bool all = delivered.sum() == letters;
  std::printf("closed:      %lld of %d letters delivered, then all workers ended\n",
              static_cast<long long>(delivered.sum()), letters);

  const std::size_t left = interrupt();
  std::printf("interrupted: %zu letters still inside, none lost\n", left);

  const auto before = delivered.sum();
  const int chores = look_up_now_and_then();
  const bool all_again = delivered.sum() - before == letters;
  std::printf("polled:      %lld letters delivered, and %d chores in between\n",
              static_cast<long long>(delivered.sum() - before), chores);
  return all && all_again ? 0 : 1;
}
