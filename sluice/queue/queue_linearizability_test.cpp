// Small concurrent histories of a bounded_queue. A search checks that each has a sequential order
// of its operations that is valid for a plain queue and agrees with their times.

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <latch>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "sluice/base/random.hpp"
#include "sluice/base/testing/effort.hpp"
#include "sluice/base/testing/test_name.hpp"
#include "sluice/queue/bounded_queue.hpp"

namespace sluice::queue_linearizability_test {
namespace {

using namespace std::chrono_literals;

struct operation {
  enum class kind : std::uint8_t { push, pop, close, is_closed } type;
  int value = 0;  // pushed or popped; of is_closed: the result
  status result = status::ok;
  int begun = 0;
  int ended = 0;
};

std::string describe(const std::vector<operation>& history) {
  static constexpr std::array names{"push", "pop", "close", "is_closed"};
  std::string text;
  for (const auto& op : history) {
    text += std::to_string(op.begun) + ".." + std::to_string(op.ended) + " " +
            names[static_cast<std::size_t>(op.type)] + " " + std::to_string(op.value) + " " +
            std::string(to_string(op.result)) + "\n";
  }
  return text;
}

// Returns whether the history has an order that is valid for a plain queue and in which no
// operation precedes another that ended before it began.
class search {
 public:
  search(const std::vector<operation>& history, std::size_t capacity)
      : history_(history), capacity_(capacity) {}
  bool succeeds() { return go(0, {}, false); }

 private:
  using state = std::pair<std::uint32_t, std::pair<std::deque<int>, bool>>;

  bool go(std::uint32_t done, const std::deque<int>& inside, bool closed) {
    if (done + 1 == 1U << history_.size()) return true;
    if (!seen_.insert({done, {inside, closed}}).second) return false;
    int first_end = 1 << 30;
    for (std::size_t i = 0; i < history_.size(); ++i) {
      if ((done >> i & 1U) == 0) first_end = std::min(first_end, history_[i].ended);
    }
    for (std::size_t i = 0; i < history_.size(); ++i) {
      const auto& op = history_[i];
      if ((done >> i & 1U) != 0 || op.begun > first_end) continue;
      auto after = inside;
      bool closed_after = closed;
      if (!apply(op, after, closed_after)) continue;
      if (go(done | 1U << i, after, closed_after)) return true;
    }
    return false;
  }

  bool apply(const operation& op, std::deque<int>& inside, bool& closed) const {
    switch (op.type) {
      case operation::kind::push:
        if (closed) return op.result == status::closed;
        if (op.result == status::ok && inside.size() < capacity_) {
          inside.push_back(op.value);
          return true;
        }
        // It gave up at a moment when the queue was full.
        return (op.result == status::full || op.result == status::timed_out) &&
               inside.size() == capacity_;
      case operation::kind::pop:
        if (!inside.empty()) {
          if (op.result != status::ok || inside.front() != op.value) return false;
          inside.pop_front();
          return true;
        }
        return closed ? op.result == status::closed
                      : op.result == status::empty || op.result == status::timed_out;
      case operation::kind::close:
        if ((op.result == status::ok) == closed) return false;
        closed = true;
        return true;
      case operation::kind::is_closed: return (op.value != 0) == closed;
    }
    return false;
  }

  const std::vector<operation>& history_;
  const std::size_t capacity_;
  std::set<state> seen_;
};

TEST(LinearizabilitySearch, AcceptsGoodHistoriesAndRejectsBadOnes) {
  using k = operation::kind;
  const std::vector<operation> overlapping{{k::push, 1, status::ok, 0, 3},
                                           {k::pop, 1, status::ok, 1, 2}};
  EXPECT_TRUE(search(overlapping, 1).succeeds());
  const std::vector<operation> from_nowhere{{k::pop, 1, status::ok, 0, 1},
                                            {k::push, 1, status::ok, 2, 3}};
  EXPECT_FALSE(search(from_nowhere, 1).succeeds());
  const std::vector<operation> out_of_order{{k::push, 1, status::ok, 0, 1},
                                            {k::push, 2, status::ok, 2, 3},
                                            {k::pop, 2, status::ok, 4, 5}};
  EXPECT_FALSE(search(out_of_order, 2).succeeds());
  const std::vector<operation> lost{{k::push, 1, status::ok, 0, 1},
                                    {k::pop, 0, status::empty, 2, 3}};
  EXPECT_FALSE(search(lost, 2).succeeds());
  const std::vector<operation> closed_too_soon{{k::close, 0, status::ok, 2, 3},
                                               {k::pop, 0, status::closed, 0, 1}};
  EXPECT_FALSE(search(closed_too_soon, 2).succeeds());
}

class recorder {
 public:
  recorder(std::size_t capacity, std::uint64_t seed) : queue_(capacity), seed_(seed) {}

  std::vector<operation> run(int threads, int each) {
    std::vector<std::vector<operation>> parts(static_cast<std::size_t>(threads));
    {
      std::latch start(threads);
      std::vector<std::jthread> crew;
      for (int t = 0; t < threads; ++t) {
        crew.emplace_back([&, t] {
          random r(seed_ * 31 + static_cast<std::uint64_t>(t));
          start.arrive_and_wait();
          for (int i = 0; i < each; ++i) {
            parts[static_cast<std::size_t>(t)].push_back(one(r, t * 100 + i));
          }
        });
      }
    }
    std::vector<operation> all;
    for (auto& part : parts) all.insert(all.end(), part.begin(), part.end());
    return all;
  }

 private:
  operation one(random& r, int value) {
    using k = operation::kind;
    const auto dice = r.below(40);
    const bool waits = r.below(3) == 0;
    const auto wait = std::chrono::nanoseconds(r.below(2000));
    operation op{dice == 0  ? k::close
                 : dice < 3 ? k::is_closed
                 : dice % 2 ? k::push
                            : k::pop,
                 value};
    op.begun = now_.fetch_add(1);
    switch (op.type) {
      case k::push:
        op.result = waits ? queue_.push(int(value), wait) : queue_.try_push(value);
        break;
      case k::pop: {
        auto got = waits ? queue_.pop(wait) : queue_.try_pop();
        op.result = got.status();
        op.value = got ? *got : 0;
        break;
      }
      case k::close: op.result = queue_.close() ? status::ok : status::closed; break;
      case k::is_closed: op.value = queue_.is_closed() ? 1 : 0; break;
    }
    op.ended = now_.fetch_add(1);
    return op;
  }

  bounded_queue<int> queue_;
  const std::uint64_t seed_;
  std::atomic<int> now_{0};
};

TEST(BoundedQueueLinearizability, EverySmallHistoryHasAnOrder) {
  constexpr int histories = 3000;
  constexpr int threads = 3;
  constexpr int each = 5;
  const std::uint64_t seed = sluice::testing::seed(sluice::testing::test_name(), 2718);
  for (int n = 0; n < histories; ++n) {
    const std::size_t capacity = 1 + static_cast<std::size_t>(n) % 3;
    const auto history =
        recorder(capacity, seed + static_cast<std::uint64_t>(n)).run(threads, each);
    ASSERT_TRUE(search(history, capacity).succeeds())
        << "capacity " << capacity << ", history " << n << ":\n" << describe(history);
  }
  std::printf("%d histories of %d threads x %d operations, seed %llu\n", histories, threads, each,
              static_cast<unsigned long long>(seed));
}

}  // namespace
}  // namespace sluice::queue_linearizability_test
