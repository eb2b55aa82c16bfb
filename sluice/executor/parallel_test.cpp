#include "sluice/executor/parallel.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "sluice/base/testing/eventually.hpp"
#include "sluice/sync/testing/stress.hpp"

namespace sluice::parallel_test {
namespace {

using testing::eventually;

// Every test runs its call from outside the pool and from one of its workers.
class ParallelTest : public ::testing::TestWithParam<bool> {
 public:
  template <class Call>
  void from_here_or_a_worker(Call&& call) {
    if (GetParam()) {
      fork(pool, [&] { call(); }).join();
    } else {
      call();
    }
  }
  work_stealing_pool pool{{.threads = 3}};
};
INSTANTIATE_TEST_SUITE_P(Called, ParallelTest, ::testing::Bool(),
                         [](const auto& from) { return from.param ? "ByAWorker" : "FromOutside"; });

// ---- parallel_for

TEST_P(ParallelTest, ForVisitsEveryIndexOnce) {
  for (const int count : {0, 1, 2, 3, 7, 100, 1000, 12'345}) {
    for (const std::size_t grain : {0U, 1U, 2U, 13U, 100'000U}) {
      std::vector<std::atomic<int>> visits(static_cast<std::size_t>(count));
      from_here_or_a_worker([&] {
        parallel_for(
            pool, 0, count, [&](int i) { ++visits[static_cast<std::size_t>(i)]; },
            {.grain = grain});
      });
      for (const auto& each : visits) ASSERT_EQ(each, 1) << count << " by " << grain;
    }
  }
}

TEST_P(ParallelTest, ForTakesNegativeAndLargeNumbersAndNothingWhenLastIsBeforeFirst) {
  std::atomic<std::int64_t> sum{0};
  from_here_or_a_worker([&] {
    parallel_for(pool, -10, 11, [&](int i) { sum += i; });
    EXPECT_EQ(sum, 0);
    parallel_for(pool, 5, -5, [&](int) { sum += 1000; });
    EXPECT_EQ(sum, 0);
    const auto high = ~std::uint64_t{0};
    std::atomic<int> visits{0};
    parallel_for(pool, high - 10, high,
                 [&](std::uint64_t i) { visits += i >= high - 10 ? 1 : 99; });
    EXPECT_EQ(visits, 10);
    const std::int8_t low = -128;
    const std::int8_t top = 127;
    visits = 0;
    parallel_for(pool, low, top, [&](std::int8_t) { ++visits; });
    EXPECT_EQ(visits, 255);
  });
}

TEST_P(ParallelTest, ForTakesIteratorsAndRanges) {
  std::vector<int> numbers(1000);
  std::iota(numbers.begin(), numbers.end(), 0);
  from_here_or_a_worker([&] {
    parallel_for(pool, numbers.begin(), numbers.end(), [](int& each) { each *= 2; });
    parallel_for(pool, numbers, [](int& each) { each += 1; }, {.grain = 10});
  });
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    ASSERT_EQ(numbers[i], static_cast<int>(2 * i + 1));
  }
}

TEST_P(ParallelTest, ForUsesSeveralThreads) {
  std::atomic<int> together{0};
  from_here_or_a_worker([&] {
    parallel_for(
        pool, 0, 3,
        [&](int) {
          ++together;
          eventually([&] { return together == 3; }, "all three to run side by side");
        },
        {.grain = 1});
  });
}

TEST_P(ParallelTest, ForMayBeNested) {
  std::atomic<int> visits{0};
  from_here_or_a_worker([&] {
    parallel_for(pool, 0, 20, [&](int) {
      parallel_for(pool, 0, 20, [&](int) { parallel_for(pool, 0, 5, [&](int) { ++visits; }); });
    });
  });
  EXPECT_EQ(visits, 2000);
}

TEST_P(ParallelTest, AnExceptionReachesTheCallerAfterAllPiecesHaveEnded) {
  std::atomic<int> inside{0};
  from_here_or_a_worker([&] {
    try {
      parallel_for(
          pool, 0, 100'000,
          [&](int i) {
            ++inside;
            --inside;
            if (i == 0) throw std::runtime_error("the first index");
          },
          {.grain = 1});
      ADD_FAILURE() << "it did not throw";
    } catch (const std::runtime_error& e) {
      EXPECT_STREQ(e.what(), "the first index");
    }
    EXPECT_EQ(inside, 0) << "a piece still runs";
  });
}

// One worker visits from left to right, so the begun pieces are known.
TEST(Parallel, PiecesThatHaveNotBegunAreSkippedAfterAnException) {
  work_stealing_pool one({.threads = 1});
  int begun = 0;
  EXPECT_THROW(parallel_for(
                   one, 0, 1000,
                   [&](int i) {
                     ++begun;
                     if (i == 2) throw std::runtime_error("the third");
                   },
                   {.grain = 1}),
               std::runtime_error);
  EXPECT_EQ(begun, 3);
}

TEST_P(ParallelTest, OneOfManyExceptionsIsThrown) {
  from_here_or_a_worker([&] {
    EXPECT_THROW(parallel_for(pool, 0, 1000, [](int i) { throw std::to_string(i); }), std::string);
  });
}

TEST_P(ParallelTest, AStopSkipsTheRestAndReturnsStopped) {
  from_here_or_a_worker([&] {
    std::stop_source source;
    std::atomic<int> visits{0};
    const auto visit = [&](int i) {
      ++visits;
      if (i == 0) source.request_stop();
      // The other workers must not visit all the rest while the first element waits.
      eventually([&] { return source.stop_requested(); }, "the stop");
    };
    EXPECT_EQ(parallel_for(pool, 0, 100'000, visit, source.get_token(), {.grain = 1}),
              status::stopped);
    EXPECT_LT(visits, 100'000);
    visits = 0;
    EXPECT_EQ(parallel_for(pool, 0, 10, visit, source.get_token()), status::stopped);
    EXPECT_EQ(parallel_for(pool, 0, 0, visit, source.get_token()), status::stopped);
    EXPECT_EQ(visits, 0) << "an earlier stop wins";
    EXPECT_EQ(parallel_for(pool, 1, 10, visit, std::stop_source().get_token()), status::ok);
    EXPECT_EQ(visits, 9);
  });
}

// ---- parallel_reduce

TEST_P(ParallelTest, ReduceCombinesNeighboursInTheirOrder) {
  from_here_or_a_worker([&] {
    for (const int count : {0, 1, 2, 3, 10, 1000}) {
      for (const std::size_t grain : {0U, 1U, 7U, 5000U}) {
        std::string expected = "init";
        for (int i = 0; i < count; ++i) expected += std::to_string(i) + ",";
        const auto text = parallel_reduce(
            pool, 0, count, std::string("init"), [](int i) { return std::to_string(i) + ","; },
            std::plus<>(), {.grain = grain});
        ASSERT_EQ(text, expected);
      }
    }
  });
}

TEST_P(ParallelTest, ReduceGroupsTheSameWayForAnyNumberOfThreads) {
  std::vector<double> values(10'000);
  random dice(42);
  for (auto& each : values) each = 1.0 / (1.0 + static_cast<double>(dice.below(1'000'000)));
  const auto sum = [&](work_stealing_pool& on) {
    return parallel_reduce(on, values, 0.0, [](double v) { return v; }, std::plus<>());
  };
  from_here_or_a_worker([&] {
    const double first = sum(pool);
    for (const std::size_t threads : {1U, 2U, 5U}) {
      work_stealing_pool other({.threads = threads});
      for (int round = 0; round < 5; ++round) EXPECT_EQ(sum(other), first) << "to the last bit";
    }
  });
}

TEST_P(ParallelTest, ReduceMovesMoveOnlyValues) {
  from_here_or_a_worker([&] {
    const auto total = parallel_reduce(
        pool, 1, 101, std::make_unique<int>(0), [](int i) { return std::make_unique<int>(i); },
        [](std::unique_ptr<int> a, const std::unique_ptr<int>& b) {
          *a += *b;
          return a;
        },
        {.grain = 3});
    EXPECT_EQ(*total, 5050);
  });
}

TEST_P(ParallelTest, ReduceEndsEarlyByExceptionAndByStop) {
  from_here_or_a_worker([&] {
    const auto plus = std::plus<>();
    EXPECT_THROW(parallel_reduce(
                     pool, 0, 1000, 0,
                     [](int i) { return i == 500 ? throw std::runtime_error("map") : i; }, plus),
                 std::runtime_error);
    EXPECT_THROW(parallel_reduce(
                     pool, 0, 1000, 0, [](int i) { return i; },
                     [](int, int) -> int { throw std::logic_error("combine"); }),
                 std::logic_error);
    std::stop_source source;
    const auto mapped = [&](int i) {
      if (i == 0) source.request_stop();
      return i;
    };
    EXPECT_EQ(parallel_reduce(pool, 0, 1000, 0, mapped, plus, source.get_token()).status(),
              status::stopped);
    const auto whole = parallel_reduce(pool, 0, 10, 5, mapped, plus, std::stop_token());
    ASSERT_TRUE(whole);
    EXPECT_EQ(*whole, 50);
  });
}

// ---- parallel_invoke

TEST_P(ParallelTest, InvokeRunsAllOfThem) {
  std::atomic<int> bits{0};
  from_here_or_a_worker([&] {
    parallel_invoke(pool, [&] { bits |= 1; });
    EXPECT_EQ(bits, 1);
    parallel_invoke(
        pool, [&] { bits |= 2; }, [&] { bits |= 4; }, [&] { bits |= 8; },
        [&] { parallel_invoke(pool, [&] { bits |= 16; }, [&] { bits |= 32; }); });
  });
  EXPECT_EQ(bits, 63);
}

TEST_P(ParallelTest, InvokeRethrowsOneExceptionWhenAllHaveEnded) {
  from_here_or_a_worker([&] {
    std::atomic<int> ended{0};
    const auto one = [&] { ++ended; };
    EXPECT_THROW(parallel_invoke(
                     pool, one, [] { throw std::runtime_error("second"); }, one),
                 std::runtime_error);
    EXPECT_LE(ended, 2);
  });
}

// ---- typical use

void quicksort(work_stealing_pool& pool, std::vector<int>::iterator first,
               std::vector<int>::iterator last) {
  if (last - first < 32) {
    std::sort(first, last);
    return;
  }
  const int pivot = *(first + (last - first) / 2);
  const auto middle = std::partition(first, last, [&](int v) { return v < pivot; });
  const auto after = std::partition(middle, last, [&](int v) { return v == pivot; });
  parallel_invoke(
      pool, [&] { quicksort(pool, first, middle); }, [&] { quicksort(pool, after, last); });
}

TEST(ParallelStressTest, SortsAsTheStandardDoes) {
  sluice::testing::stress stress_run;
  for (const std::size_t threads : {1U, 2U, 4U}) {
    work_stealing_pool pool({.threads = threads, .deque_capacity = 64});
    auto dice = stress_run.generator(threads);
    std::vector<int> numbers(50'000);
    for (auto& each : numbers) each = static_cast<int>(dice.below(10'000));
    auto expected = numbers;
    std::sort(expected.begin(), expected.end());
    quicksort(pool, numbers.begin(), numbers.end());
    EXPECT_EQ(numbers, expected);
    stress_run.did(numbers.size());
  }
}

TEST(ParallelStressTest, ManyCallersShareOnePool) {
  sluice::testing::stress stress_run;
  work_stealing_pool pool({.threads = 3});
  std::vector<std::jthread> callers;
  for (std::uint64_t who = 0; who < 4; ++who) {
    callers.emplace_back([&, who] {
      auto dice = stress_run.generator(who);
      for (int round = 0; round < 50; ++round) {
        const auto count = static_cast<int>(dice.below(2000));
        const auto sum = parallel_reduce(
            pool, 0, count, std::int64_t{0}, [](int i) { return std::int64_t{i}; }, std::plus<>(),
            {.grain = 1 + dice.below(50)});
        EXPECT_EQ(sum, std::int64_t{count} * (count - 1) / 2);
        stress_run.did(static_cast<std::uint64_t>(count));
      }
    });
  }
}

}  // namespace
}  // namespace sluice::parallel_test
