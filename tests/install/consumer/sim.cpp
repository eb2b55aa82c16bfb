// A program of another project, simulated with the installed library: its own code uses the
// standard library's primitives.

#include <cstdio>
#include <mutex>
#include <thread>

#include <sluice/queue/bounded_queue.hpp>
#include <sluice/sim/explore.hpp>

namespace sim = sluice::sim;

int main() {
  const auto deadlock = sim::explore({}, [] {
    std::mutex a;
    std::mutex b;
    std::jthread other([&] {
      const std::lock_guard first(a);
      const std::lock_guard second(b);
    });
    const std::lock_guard first(b);
    const std::lock_guard second(a);
  });
  const auto queue = sim::explore({}, [] {
    sluice::bounded_queue<int> q(1);
    std::jthread maker([&] { (void)q.push(1); });
    sim::check(q.pop().value() == 1, "what was pushed");
  });
  const bool right = deadlock.failed() && deadlock.kind == sim::failure_kind::deadlock &&
                     !queue.failed() && queue.schedules == 1'000;
  if (!right) std::printf("%s\n%s\n", deadlock.text().c_str(), queue.text().c_str());
  return right ? 0 : 1;
}
