// The snippets of docs/reference/executor.md.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "sluice/executor/manual_executor.hpp"
#include "sluice/executor/router.hpp"
#include "sluice/executor/strand.hpp"
#include "sluice/executor/thread_pool.hpp"

namespace {

using namespace std::chrono_literals;

struct order {
  std::uint64_t account = 0;
  int number = 0;
};

bool the_submitter_gets_a_status() {
  sluice::manual_executor background({.capacity = 1});
  const auto serve = [&](sluice::executor& ex) {
    if (auto s = ex.try_submit([] { std::puts("indexed"); }); !s) return 503;
    return 202;
  };
  return serve(background) == 202 && serve(background) == 503 && background.run_all() == 1;
}

bool one_at_a_time() {
  sluice::thread_pool pool(4);
  long balance = 0;  // only functions on the strand touch it: it needs no lock
  sluice::strand account(pool);
  for (int i = 0; i < 1000; ++i) {
    if (!account.submit([&] { balance += 10; })) return false;
  }
  account.drain();  // closes, and waits until all functions have run
  return balance == 10'000;
}

bool in_order_of_the_account() {
  sluice::thread_pool pool(4);
  std::vector<int> last(8, -1);  // of each account; one worker at a time uses it
  std::atomic<bool> in_order{true};
  const auto book = [&](order& o) {
    if (std::exchange(last[o.account], o.number) >= o.number) in_order = false;
  };
  sluice::router<order> desk({
      .rule = sluice::routing::by_key,
      .capacity = 32,
      .key = [](const order& o) { return o.account; },
  });
  auto ann = desk.join(pool, book);
  {
    auto bob = desk.join(pool, book);
    for (int i = 0; i < 400; ++i) {
      if (!desk.push({.account = static_cast<std::uint64_t>(i % 8), .number = i})) return false;
    }
  }  // bob leaves: ann gets the items that he has not begun
  for (int i = 400; i < 800; ++i) {
    if (!desk.push({.account = static_cast<std::uint64_t>(i % 8), .number = i})) return false;
  }
  desk.drain();
  return in_order && last[7] == 799;
}

bool a_loop_of_its_own() {
  sluice::router<std::string> lines({.rule = sluice::routing::least_loaded});
  auto worker = lines.join();
  if (!lines.push("hello") || !lines.push("world")) return false;
  lines.close();
  std::string all;
  while (auto line = worker.next()) all += *line;
  return all == "helloworld";
}

}  // namespace

int main() {
  const bool ok = the_submitter_gets_a_status() && one_at_a_time() && in_order_of_the_account() &&
                  a_loop_of_its_own();
  return ok ? 0 : 1;
}
