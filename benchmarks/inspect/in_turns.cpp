#include "benchmarks/inspect/in_turns.hpp"

#include <algorithm>
#include <chrono>
#include <mutex>
#include <thread>
#include <vector>

#include "sluice/inspect/inspect.hpp"

namespace sluice::bench {
namespace {

using std::chrono::steady_clock;

constexpr seconds turn{0.01};
constexpr seconds turns_last_min = 10 * turn;  // also with --quick
constexpr seconds margin{0.1};                 // a run lasts this much longer than its turns

std::mutex lock;
std::vector<const seen_count*>& all() {
  static std::vector<const seen_count*> list;
  return list;
}

// Items and time, with inspect on or off.
struct sum {
  std::uint64_t items = 0;
  seconds took{0};

  double rate() const {
    if (items == 0) fail("a run in turns ended without a single item");
    return static_cast<double>(items) / took.count();
  }
};

// Adds one turn to `total`, unless the run ended before the turn.
void take_turn(sum& total, steady_clock::time_point run_ends) {
  const auto from = steady_clock::now();
  const std::uint64_t before = seen_count::total();
  std::this_thread::sleep_for(turn);
  const std::uint64_t after = seen_count::total();
  const auto until = steady_clock::now();
  if (until >= run_ends || after < before) return;
  total.items += after - before;
  total.took += until - from;
}

}  // namespace

seen_count::seen_count(std::function<std::uint64_t()> count) : count_(std::move(count)) {
  const std::lock_guard hold(lock);
  all().push_back(this);
}

seen_count::~seen_count() {
  const std::lock_guard hold(lock);
  std::erase(all(), this);
}

std::uint64_t seen_count::total() {
  const std::lock_guard hold(lock);
  std::uint64_t sum = 0;
  for (const seen_count* c : all()) sum += c->count_();
  return sum;
}

measure in_turns::half(std::size_t which) const {
  return [state = state_, which](const settings& s) {
    auto& known = state->known;
    if (!known[which]) {
      const seconds turns_last = std::max(2 * s.run_time, turns_last_min);  // as two runs
      std::jthread running([&] { state->run(turns_last + margin); });
      while (seen_count::total() == 0) std::this_thread::yield();
      const auto begun = steady_clock::now();
      std::array<sum, 2> totals;
      while (steady_clock::now() - begun < turns_last) {
        const auto ends = begun + std::chrono::duration_cast<steady_clock::duration>(turns_last);
        {
          const inspect::enabled on({.lock_order = false});
          take_turn(totals[0], ends);
        }
        take_turn(totals[1], ends);
      }
      running.join();
      known = {totals[0].rate(), totals[1].rate()};
    }
    return *std::exchange(known[which], std::nullopt);
  };
}

}  // namespace sluice::bench
