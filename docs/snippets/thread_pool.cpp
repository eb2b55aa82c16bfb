// The snippets of docs/reference/thread-pool.md.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <stop_token>
#include <vector>

#include "sluice/executor/thread_pool.hpp"

namespace {

using namespace std::chrono_literals;

bool a_fixed_pool() {
  std::atomic<int> shrunk{0};
  std::vector<int> album(200);
  sluice::thread_pool pool({.core = 4, .capacity = 100, .name = "thumbs"});
  for (auto& image : album) {
    const auto submitted = pool.submit([&] {  // waits while 100 are queued
      image = 1;
      ++shrunk;
    });
    if (!submitted) return false;
  }
  pool.drain();
  return shrunk == 200;
}

bool an_elastic_pool() {
  sluice::thread_pool pool({
      .core = 2,
      .max = 16,
      .keep_alive = 10s,
      .capacity = 1000,
      .overflow = sluice::overflow::reject,
  });
  return pool.threads() == 2 && pool.stats().threads_limit == 16;
}

bool priorities() {
  std::atomic<int> sent{0};
  sluice::thread_pool pool({.core = 1, .by_priority = true, .ageing = 10s});
  const auto newsletter = [&] { ++sent; };
  const auto password_mail = [&] { ++sent; };
  bool ok = true;
  ok &= static_cast<bool>(pool.submit({0, newsletter}));
  ok &= static_cast<bool>(pool.submit({9, password_mail}));  // goes first
  pool.drain();
  return ok && sent == 2;
}

bool the_end() {
  sluice::thread_pool pool({.core = 2});
  const auto crawl = [stop = pool.stop_token()] {
    while (!stop.stop_requested()) std::atomic_signal_fence(std::memory_order_seq_cst);
  };
  if (!pool.submit(crawl)) return false;
  auto unstarted = pool.shutdown(sluice::deadline::after(20ms));
  for (auto& function : unstarted) function();  // or keep them for later
  return pool.join() == sluice::status::ok;
}

bool sized_by_what_it_runs() {
  sluice::thread_pool pool({
      .core = 2,
      .max = 64,
      .sizing = sluice::sizing::adaptive{},
  });
  return pool.threads() == 2 && sluice::recommended_threads(4, 50ms, 5ms) == 44;
}

bool times() {
  sluice::thread_pool pool({.core = 1, .time_every = 1});
  for (int i = 0; i < 100; ++i) {
    if (!pool.submit([] {})) return false;
  }
  pool.drain();
  const auto waited = pool.wait_times();
  std::printf("half waited at most %llu ns, one in a hundred longer than %llu ns\n",
              static_cast<unsigned long long>(waited.quantile(0.5)),
              static_cast<unsigned long long>(waited.quantile(0.99)));
  return waited.count() == 100;
}

}  // namespace

int main() {
  const bool all = a_fixed_pool() && an_elastic_pool() && priorities() && the_end() &&
                   sized_by_what_it_runs() && times();
  std::printf("%s\n", all ? "as documented" : "NOT as documented");
  return all ? 0 : 1;
}
