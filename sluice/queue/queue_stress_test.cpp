// All forms of push and pop on one queue at the same time: no item is lost or duplicated, and every
// producer's items keep their order.

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "sluice/base/random.hpp"
#include "sluice/base/testing/effort.hpp"
#include "sluice/base/testing/eventually.hpp"
#include "sluice/base/testing/test_name.hpp"
#include "sluice/queue/testing/queue_kinds.hpp"
#include "sluice/sync/testing/coroutine.hpp"

namespace sluice::testing::queue_stress_test {
namespace {

using namespace std::chrono_literals;

constexpr int items_per_producer_max = 1'000'000;

// The pushed items of each producer and the popped items of each consumer, in order.
struct ledger {
  explicit ledger(int producers, int consumers)
      : accepted(static_cast<std::size_t>(producers)),
        taken(static_cast<std::size_t>(consumers)) {}

  std::vector<std::vector<int>> accepted;  // by producer
  std::vector<std::vector<int>> taken;     // by consumer

  void expect_exact() const {
    std::vector<std::vector<int>> arrived(accepted.size());
    for (const auto& items : taken) {
      std::vector<int> last(accepted.size(), -1);
      for (const int item : items) {
        const auto p = static_cast<std::size_t>(item / items_per_producer_max);
        ASSERT_LT(p, accepted.size());
        ASSERT_GT(item, last[p]) << "a producer's items changed their order";
        last[p] = item;
        arrived[p].push_back(item);
      }
    }
    for (std::size_t p = 0; p < accepted.size(); ++p) {
      std::sort(arrived[p].begin(), arrived[p].end());
      ASSERT_EQ(arrived[p].size(), accepted[p].size()) << "items of producer " << p;
      ASSERT_EQ(arrived[p], accepted[p]);
    }
  }
  std::size_t total() const {
    std::size_t sum = 0;
    for (const auto& items : accepted) sum += items.size();
    return sum;
  }
};

// Repeatedly stops a random one of its stop_sources and replaces it.
class stopper {
 public:
  explicit stopper(std::uint64_t seed)
      : thread_([this, seed](std::stop_token over) {
          random r(seed);
          while (!over.stop_requested()) {
            auto& one = cells_[r.below(cells)];
            std::stop_source victim(std::nostopstate);
            {
              const std::lock_guard hold(one.mutex);
              victim = std::exchange(one.source, std::stop_source());
            }
            victim.request_stop();
            std::this_thread::yield();
          }
        }) {}
  std::stop_token token(std::uint32_t n) {
    auto& one = cells_[n % cells];
    const std::lock_guard hold(one.mutex);
    return one.source.get_token();
  }

 private:
  static constexpr std::uint32_t cells = 8;
  struct cell {
    std::mutex mutex;
    std::stop_source source;
  };
  std::array<cell, cells> cells_;
  std::jthread thread_;  // last: it is joined before the other members are destroyed
};

template <class Kind>
class QueueStress : public ::testing::Test {
 public:
  using queue_type = typename Kind::queue;
  static constexpr int producers = Kind::is_shared ? 4 : 1;
  static constexpr int consumers = Kind::is_shared ? 4 : 1;

  // Pushes in a random form. Returns false if the push failed; then the item is unchanged.
  static bool push_somehow(queue_type& q, int value, random& r, stopper& stops) {
    auto made = Kind::make(value);
    status done = status::ok;
    switch (r.below(6)) {
      case 0: done = q.push(std::move(made)); break;
      case 1: done = q.try_push(std::move(made)); break;
      case 2:
        done = q.push(std::move(made), std::chrono::nanoseconds(r.below(3000)));
        break;
      case 3: done = q.push(std::move(made), stops.token(r.below(100))); break;
      case 4:
        done = q.push(std::move(made),
                      {std::chrono::microseconds(r.below(50)), stops.token(r.below(100))});
        break;
      default: {
        auto batch = q.push_all({&made, 1}, {deadline::after(20us), {}});
        done = batch.status;
        EXPECT_EQ(batch.count, done ? 1u : 0u);
        break;
      }
    }
    EXPECT_EQ(Kind::is_whole(made), !done) << to_string(done);
    return static_cast<bool>(done);
  }

  // Returns false if the queue is closed and drained.
  static bool pop_somehow(queue_type& q, std::vector<int>& taken, random& r, stopper& stops) {
    auto got = [&]() -> outcome<typename Kind::item> {
      switch (r.below(6)) {
        case 0: return q.pop();
        case 1: return q.try_pop();
        case 2: return q.pop(std::chrono::nanoseconds(r.below(3000)));
        case 3: return q.pop(stops.token(r.below(100)));
        case 4: return q.pop({std::chrono::microseconds(r.below(50)), stops.token(r.below(100))});
        default: {
          auto some = q.pop_some(1 + r.below(4), {deadline::after(20us), {}});
          if (!some) return some.status();
          for (std::size_t i = 0; i + 1 < some->size(); ++i) {
            taken.push_back(Kind::value_of((*some)[i]));
          }
          return std::move(some->back());
        }
      }
    }();
    if (got) taken.push_back(Kind::value_of(*got));
    return got.status() != status::closed;
  }

  // `Where`: a manual_sink, which resumes the coroutine; with any other type, the waker resumes it.
  template <class Where>
  static detached produce(Where&, queue_type& q, int first, int count,
                          std::vector<int>& accepted, std::uint64_t seed,
                          std::atomic<int>& left) {
    random r(seed);
    for (int i = 0; i < count; ++i) {
      auto made = Kind::make(first + i);
      wait_limits limits;
      if (r.below(2) == 0) {
        limits.deadline = deadline::after(std::chrono::microseconds(r.below(50)));
      }
      const auto done = co_await q.async_push(made, std::move(limits));
      EXPECT_EQ(Kind::is_whole(made), !done);
      if (done) accepted.push_back(first + i);
    }
    --left;
  }
  template <class Where>
  static detached consume(Where&, queue_type& q, std::vector<int>& taken, std::uint64_t seed,
                          std::atomic<int>& left, int most) {
    random r(seed);
    while (static_cast<int>(taken.size()) < most) {
      wait_limits limits;
      if (r.below(2) == 0) {
        limits.deadline = deadline::after(std::chrono::microseconds(r.below(50)));
      }
      auto got = co_await q.async_pop(std::move(limits));
      if (got) taken.push_back(Kind::value_of(*got));
      if (got.status() == status::closed) break;
    }
    --left;
  }

  // The number of producers of each kind, and of consumers.
  struct parties {
    int threads;
    int coroutines;
  };

  void run(std::uint64_t seed, std::size_t capacity, int each, parties who) {
    const auto q = Kind::open(capacity);
    const int all = who.threads + who.coroutines;
    ledger books(all, all);
    std::atomic<int> producing{who.coroutines};
    std::atomic<int> consuming{who.coroutines};
    const auto at = [](int n) { return static_cast<std::size_t>(n); };
    const auto own_seed = [seed](int n) { return seed * 1000 + static_cast<std::uint64_t>(n); };
    {
      stopper stops(seed);
      manual_sink sink;
      int anywhere = 0;
      std::jthread executor([&sink](std::stop_token over) {
        while (!over.stop_requested()) {
          if (sink.run_all() == 0) std::this_thread::yield();
        }
      });
      std::vector<std::jthread> takers;
      std::vector<std::jthread> makers;
      for (int n = 0; n < who.threads; ++n) {
        takers.emplace_back([&, n] {
          random r(own_seed(n));
          while (pop_somehow(*q, books.taken[at(n)], r, stops)) {}
        });
        makers.emplace_back([&, n] {
          random r(own_seed(100 + n));
          for (int i = 0; i < each; ++i) {
            const int value = n * items_per_producer_max + i;
            if (push_somehow(*q, value, r, stops)) books.accepted[at(n)].push_back(value);
          }
        });
      }
      for (int n = who.threads; n < all; ++n) {
        auto& taken = books.taken[at(n)];
        auto& accepted = books.accepted[at(n)];
        const int first = n * items_per_producer_max;
        // A coroutine that its waker resumes is so fast that the others get few items, so it leaves
        // early.
        if (n % 2 == 0) {
          consume(sink, *q, taken, own_seed(n), consuming, who.threads == 0 ? 1 << 30 : each);
          produce(anywhere, *q, first, each, accepted, own_seed(100 + n), producing);
        } else {
          consume(anywhere, *q, taken, own_seed(n), consuming, each / 4);
          produce(sink, *q, first, each, accepted, own_seed(100 + n), producing);
        }
      }
      makers.clear();
      eventually([&] { return producing == 0; }, "the producing coroutines to end");
      q->close();
      takers.clear();
      eventually([&] { return consuming == 0; }, "the consuming coroutines to end");
    }
    books.expect_exact();
    const auto stats = q->stats();
    EXPECT_EQ(stats.pushed, books.total());
    EXPECT_EQ(stats.popped, books.total());
    EXPECT_LE(stats.high_water, capacity);
    std::printf("%s: %d pushes, %zu accepted, capacity %zu, %d+%d threads, %d+%d coroutines, "
                "seed %llu\n",
                Kind::name, all * each, books.total(), capacity, who.threads, who.threads,
                who.coroutines, who.coroutines, static_cast<unsigned long long>(seed));
  }
};

TYPED_TEST_SUITE(QueueStress, queue_kinds, kind_name);

TYPED_TEST(QueueStress, NothingIsLostAndNothingComesTwice) {
  this->run(1, 1, 2000, {.threads = this->producers, .coroutines = 0});
  this->run(2, 3, 3000, {.threads = this->producers, .coroutines = 0});
  this->run(3, 64, 5000, {.threads = this->producers, .coroutines = 0});
}

TYPED_TEST(QueueStress, CoroutinesAmongThreadsLoseNothingEither) {
  // A ring has one party on each side: both are coroutines.
  const int threads = TypeParam::is_shared ? 3 : 0;
  const int coroutines = TypeParam::is_shared ? 3 : 1;
  this->run(11, 1, 1000, {threads, coroutines});
  this->run(12, 3, 2000, {threads, coroutines});
  this->run(13, 64, 3000, {threads, coroutines});
}

TYPED_TEST(QueueStress, CloseAtAnyMomentLosesNothingThatWasAccepted) {
  constexpr int rounds = 150;
  const std::uint64_t seed = sluice::testing::seed(sluice::testing::test_name(), 5);
  random r(seed);
  std::size_t total = 0;
  for (int round = 0; round < rounds; ++round) {
    const auto q = TypeParam::open(1 + r.below(4));
    ledger books(this->producers, this->consumers);
    {
      std::vector<std::jthread> crew;
      for (int c = 0; c < this->consumers; ++c) {
        crew.emplace_back([&, c] {
          auto& items = books.taken[static_cast<std::size_t>(c)];
          while (auto got = q->pop()) items.push_back(TypeParam::value_of(*got));
        });
      }
      for (int p = 0; p < this->producers; ++p) {
        crew.emplace_back([&, p] {
          auto& items = books.accepted[static_cast<std::size_t>(p)];
          for (int value = p * items_per_producer_max;; ++value) {
            const auto done = q->push(TypeParam::make(value));
            if (done == status::closed) break;
            items.push_back(value);
          }
        });
      }
      const auto after = r.below(60);
      eventually([&] { return q->stats().pushed >= after; });
      q->close();
    }
    books.expect_exact();
    total += books.total();
  }
  std::printf("%s: %d queues closed, %zu items, seed %llu\n", TypeParam::name, rounds, total,
              static_cast<unsigned long long>(seed));
}

TYPED_TEST(QueueStress, CoroutinesHandOverManyTimesWithoutNesting) {
  constexpr int rounds = 200'000;
  const auto there = TypeParam::open(1);
  const auto back = TypeParam::open(1);
  bool over = false;
  [](auto& in, auto& out) -> detached {
    while (auto got = co_await in.async_pop()) {
      EXPECT_EQ(co_await out.async_push(std::move(*got)), status::ok);
    }
    out.close();
  }(*there, *back);
  [](auto& out, auto& in, bool& done) -> detached {
    for (int i = 0; i < rounds; ++i) {
      EXPECT_EQ(co_await out.async_push(TypeParam::make(i)), status::ok);
      auto got = co_await in.async_pop();
      if (!got || TypeParam::value_of(*got) != i) break;
    }
    out.close();
    done = !(co_await in.async_pop());
  }(*there, *back, over);
  EXPECT_TRUE(over);
  EXPECT_EQ(there->stats().popped, std::uint64_t{rounds});
  std::printf("%s: %d round trips, no seed: nothing random\n", TypeParam::name, rounds);
}

// ---- against a std::deque

template <class Kind>
class QueueModel : public ::testing::Test {};
TYPED_TEST_SUITE(QueueModel, queue_kinds, kind_name);

TYPED_TEST(QueueModel, AgreesWithADequeOnEveryOperation) {
  constexpr int operations = 20'000;
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    random r(seed);
    const std::size_t capacity = 1 + r.below(10);
    const auto q = TypeParam::open(capacity);
    std::deque<int> model;
    bool closed = false;
    std::uint64_t pushed = 0;
    std::uint64_t popped = 0;
    const auto expected_push = [&](status full) {
      return closed ? status(status::closed) : model.size() == capacity ? full
                                                                        : status(status::ok);
    };
    const auto expected_pop = [&](status empty) {
      return !model.empty() ? status(status::ok) : closed ? status(status::closed) : empty;
    };
    const auto push = [&](int value, status done, status full) {
      ASSERT_EQ(done, expected_push(full)) << "seed " << seed;
      if (!done) return;
      model.push_back(value);
      ++pushed;
    };
    const auto pop = [&](auto&& got, status empty) {
      ASSERT_EQ(got.status(), expected_pop(empty)) << "seed " << seed;
      if (!got) return;
      ASSERT_EQ(TypeParam::value_of(*got), model.front()) << "seed " << seed;
      model.pop_front();
      ++popped;
    };
    for (int n = 0; n < operations; ++n) {
      switch (r.below(10)) {
        case 0:
        case 1: push(n, q->try_push(TypeParam::make(n)), status::full); break;
        case 2: push(n, q->push(TypeParam::make(n), -1ns), status::timed_out); break;
        case 3: {
          std::vector<typename TypeParam::item> batch;
          const auto count = r.below(5);
          for (std::uint32_t i = 0; i < count; ++i) batch.push_back(TypeParam::make(n));
          const auto room = closed ? 0 : capacity - model.size();
          const auto result = q->try_push_all(batch);
          ASSERT_EQ(result.count, std::min<std::size_t>(count, room));
          const auto left = result.count < count;
          ASSERT_EQ(result.status, !left    ? status::ok
                                   : closed ? status::closed
                                            : status::full);
          model.insert(model.end(), result.count, n);
          pushed += result.count;
          break;
        }
        case 4:
        case 5: pop(q->try_pop(), status::empty); break;
        case 6: pop(q->pop(0ns), status::timed_out); break;
        case 7: {
          const auto max = 1 + r.below(4);
          auto some = q->try_pop_some(max);
          ASSERT_EQ(some.status(), expected_pop(status::empty));
          if (!some) break;
          ASSERT_EQ(some->size(), std::min<std::size_t>(max, model.size()));
          for (auto& got : *some) {
            ASSERT_EQ(TypeParam::value_of(got), model.front());
            model.pop_front();
            ++popped;
          }
          break;
        }
        case 8: {
          if (model.size() == capacity && !closed) break;  // the push would wait
          push(n, q->push(TypeParam::make(n)), status::full);
          break;
        }
        default:
          if (model.empty() && !closed) break;
          pop(q->pop(), status::empty);
          break;
      }
      if (n == operations - 200) {
        ASSERT_TRUE(q->close());
        closed = true;
      }
      ASSERT_EQ(q->size(), model.size());
      ASSERT_EQ(q->is_closed(), closed);
    }
    EXPECT_EQ(q->stats().pushed, pushed);
    EXPECT_EQ(q->stats().popped, popped);
    std::printf("%s: %d operations, capacity %zu, seed %llu\n", TypeParam::name, operations,
                capacity, static_cast<unsigned long long>(seed));
  }
}

}  // namespace
}  // namespace sluice::testing::queue_stress_test
