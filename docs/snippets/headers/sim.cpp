// The examples in the headers of sim/. Compiled, never run.
// clang-format off: they stand here as they do there.
#include <cstdio>
#include <thread>

#include "sluice/queue/bounded_queue.hpp"
#include "sluice/sim/explore.hpp"
#include "sluice/sim/gtest.hpp"

namespace header_examples::explorer {

using namespace sluice;

void explores() {
  auto found = sim::explore({.schedules = 10'000}, [] {
    sluice::bounded_queue<int> q(1);
    std::jthread maker([&] { (void)q.push(1); });
    sim::check(q.pop().value() == 1, "the pushed item");
  });
  if (found.failed()) std::puts(found.text().c_str());
}

SLUICE_EXPLORE(Queue, HandsOver, .schedules = 10'000) {
  sluice::bounded_queue<int> q(1);
  std::jthread maker([&] { (void)q.push(1); });
  EXPECT_EQ(*q.pop(), 1);
}

}  // namespace header_examples::explorer
