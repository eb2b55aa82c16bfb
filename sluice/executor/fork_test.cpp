#include "sluice/executor/fork.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "sluice/base/testing/eventually.hpp"
#include "sluice/sync/event.hpp"
#include "sluice/sync/testing/stress.hpp"

namespace sluice::fork_test {
namespace {

using testing::eventually;

long fib(int n) {
  if (n < 2) return n;
  auto left = fork([n] { return fib(n - 1); });
  const long right = fib(n - 2);
  return left.join() + right;
}

TEST(ForkTest, JoinGivesTheResult) {
  work_stealing_pool pool({.threads = 2});
  EXPECT_EQ(fork(pool, [] { return 42; }).join(), 42);
  EXPECT_EQ(fork(pool, [] { return fib(20); }).join(), 6765);
}

TEST(ForkTest, OneWorkerIsEnough) {
  work_stealing_pool pool({.threads = 1});
  EXPECT_EQ(fork(pool, [] { return fib(15); }).join(), 610);
  EXPECT_EQ(pool.stats().stolen, 0U);
}

TEST(ForkTest, ResultsMayBeVoidReferencesAndMoveOnly) {
  work_stealing_pool pool({.threads = 2});
  int touched = 0;
  fork(pool, [&] { ++touched; }).join();
  EXPECT_EQ(touched, 1);
  int& same = fork(pool, [&]() -> int& { return touched; }).join();
  EXPECT_EQ(&same, &touched);
  auto owned = fork(pool, [] { return std::make_unique<int>(7); }).join();
  EXPECT_EQ(*owned, 7);
  fork(pool, [&] {
    auto child = fork([p = std::make_unique<int>(8)]() mutable { return std::move(p); });
    EXPECT_EQ(*child.join(), 8);
    int& inner = fork([&]() -> int& { return touched; }).join();
    EXPECT_EQ(&inner, &touched);
  }).join();
}

TEST(ForkTest, JoinRethrowsTheExceptionOfTheChild) {
  work_stealing_pool pool({.threads = 2});
  auto outside = fork(pool, []() -> int { throw std::runtime_error("outside"); });
  EXPECT_THROW(outside.join(), std::runtime_error);
  fork(pool, [] {
    auto inside = fork([]() -> int { throw std::logic_error("inside"); });
    EXPECT_THROW(inside.join(), std::logic_error);
  }).join();
}

TEST(ForkTest, AStolenChildsExceptionReachesItsJoin) {
  work_stealing_pool pool({.threads = 2});
  fork(pool, [] {
    event taken;
    auto child = fork([&] {
      taken.set();
      throw std::runtime_error("stolen");
    });
    taken.wait();  // another worker runs it
    EXPECT_THROW(child.join(), std::runtime_error);
  }).join();
}

TEST(ForkTest, AChildThatIsNotJoinedIsJoinedAtItsDestruction) {
  std::atomic<int> ran{0};
  std::atomic<int> reported{0};
  work_stealing_pool pool({.threads = 2, .on_error = [&](std::exception_ptr) { ++reported; }});
  {
    auto child = fork(pool, [&] { ++ran; });
  }
  EXPECT_EQ(ran, 1);
  fork(pool, [&] {
    {
      auto child = fork([&] { ++ran; });
    }
    EXPECT_EQ(ran, 2);
    {
      auto child = fork([] { throw std::runtime_error("never read"); });
    }
    EXPECT_EQ(reported, 1);
  }).join();
}

TEST(ForkTest, ChildrenMayBeJoinedInAnyOrder) {
  work_stealing_pool pool({.threads = 2});
  for (int round = 0; round < 200; ++round) {
    const int sum = fork(pool, [] {
      auto a = fork([] { return 1; });
      auto b = fork([] { return 10; });
      auto c = fork([] { return 100; });
      const int first = a.join();  // not the youngest
      const int third = c.join();
      return first + b.join() + third;
    }).join();
    ASSERT_EQ(sum, 111);
  }
}

TEST(ForkTest, AForkThatFindsTheDequeFullRunsAtOnce) {
  work_stealing_pool pool({.threads = 1, .deque_capacity = 2});
  fork(pool, [] {
    int order = 0;
    auto a = fork([&] { return ++order; });
    auto b = fork([&] { return ++order; });
    auto c = fork([&] { return ++order; });
    EXPECT_EQ(order, 1) << "the third has run";
    EXPECT_TRUE(c.is_done());
    EXPECT_EQ(c.join(), 1);
    EXPECT_EQ(b.join(), 2);
    EXPECT_EQ(a.join(), 3);
  }).join();
}

TEST(ForkTest, AJoinHelpsWhileAnotherWorkerRunsItsChild) {
  work_stealing_pool pool({.threads = 2});
  event taken;
  event release;
  std::atomic<bool> helped_with{false};
  auto parent = fork(pool, [&] {
    auto child = fork([&] {
      taken.set();
      release.wait();
    });
    taken.wait();
    child.join();
  });
  taken.wait();
  // Both workers are blocked: one in the child, the other in the join. The join runs this.
  ASSERT_TRUE(pool.submit([&] {
    helped_with = true;
    release.set();
  }));
  parent.join();
  EXPECT_TRUE(helped_with);
}

// Uses enough stack that a join this deep runs no other work.
[[gnu::noinline]] int deep_in_the_stack(const std::function<int()>& call) {
  std::array<char, std::size_t{3} << 19> frame;
  asm volatile("" : : "r"(frame.data()) : "memory");  // keeps the frame from being optimized away
  const int result = call();
  asm volatile("" : : "r"(frame.data()) : "memory");
  return result;
}

TEST(ForkTest, AJoinDeepInTheStackSleepsAndAnotherThreadRunsTheRest) {
  work_stealing_pool pool({.threads = 2});
  event taken;
  event release;
  std::atomic<std::thread::id> joiner;
  std::atomic<std::thread::id> releaser;
  auto parent = fork(pool, [&] {
    return deep_in_the_stack([&] {
      joiner = std::this_thread::get_id();
      auto child = fork([&] {
        taken.set();
        release.wait();
        return 42;
      });
      taken.wait();
      return child.join();
    });
  });
  eventually([&] { return pool.stats().blocked == 2; }, "child and join to sleep");
  ASSERT_TRUE(pool.submit([&] {
    releaser = std::this_thread::get_id();
    release.set();
  }));
  EXPECT_EQ(parent.join(), 42);
  EXPECT_NE(releaser.load(), joiner.load());
}

TEST(ForkTest, AWorkerOfAnotherPoolMayForkAndItsPoolIsNotifiedOfItsSleep) {
  work_stealing_pool one({.threads = 1, .name = "one"});
  work_stealing_pool other({.threads = 1, .name = "other"});
  // The only worker of each waits for the other pool: without spares this could not end.
  const int result = fork(one, [&] {
    return fork(other, [&] { return fork(one, [] { return 5; }).join() + 1; }).join() + 1;
  }).join();
  EXPECT_EQ(result, 7);
}

TEST(ForkTest, AfterThePoolHasEndedAForkRunsAtOnce) {
  work_stealing_pool pool({.threads = 1});
  pool.drain();
  auto child = fork(pool, [] { return std::this_thread::get_id(); });
  EXPECT_TRUE(child.is_done());
  EXPECT_EQ(child.join(), std::this_thread::get_id());
}

TEST(ForkDeathTest, JoiningTwiceIsABrokenContract) {
  EXPECT_DEATH(
      {
        work_stealing_pool pool({.threads = 1});
        auto child = fork(pool, [] {});
        child.join();
        child.join();
      },
      "a child to be joined once");
}

TEST(ForkDeathTest, JoiningOnAnotherThreadIsABrokenContract) {
  EXPECT_DEATH(
      {
        work_stealing_pool pool({.threads = 1});
        auto child = fork(pool, [] {});
        std::jthread([&] { child.join(); }).join();
      },
      "joined by the thread that forked it");
  EXPECT_DEATH(
      {
        work_stealing_pool pool({.threads = 1});
        fork(pool, [] {
          auto child = fork([] {});
          std::jthread([&] { child.join(); }).join();
        }).join();
      },
      "joined by the thread that forked it");
}

TEST(ForkDeathTest, ForkingWithoutAPoolOnAThreadThatIsNoWorkerIsABrokenContract) {
  EXPECT_DEATH(fork([] {}).join(), "a worker of a work_stealing_pool, or a pool to be named");
}

TEST(ForkStressTest, ManyTreesFromManyThreadsComeOutRight) {
  sluice::testing::stress stress_run;
  for (const std::size_t threads : {1U, 2U, 4U}) {
    work_stealing_pool pool({.threads = threads, .deque_capacity = 16});
    std::vector<std::jthread> callers;
    for (int c = 0; c < 3; ++c) {
      callers.emplace_back([&] {
        for (int round = 0; round < 30; ++round) {
          EXPECT_EQ(fork(pool, [] { return fib(14); }).join(), 377);
        }
      });
    }
    callers.clear();
    stress_run.did(pool.stats().forked);
  }
}

// A tree whose inner nodes also submit, post and join in random order.
long random_tree(work_stealing_pool& pool, random& dice, int depth, std::atomic<long>& extra) {
  if (depth == 0) return 1;
  const auto seed = dice.next();
  const bool submits = dice.below(4) == 0;
  const bool in_order = dice.below(2) == 0;
  auto left = fork(pool, [&pool, seed, depth, &extra] {
    random own(seed);
    return random_tree(pool, own, depth - 1, extra);
  });
  auto right = fork(pool, [&pool, seed, depth, &extra] {
    random own(seed + 1);
    return random_tree(pool, own, depth - 1, extra);
  });
  if (submits) {
    EXPECT_TRUE(pool.submit([&extra] { ++extra; }));
  }
  if (in_order) {
    const long first = left.join();
    return first + right.join() + (submits ? 1000 : 0);
  }
  const long first = right.join();
  return first + left.join() + (submits ? 1000 : 0);
}

TEST(ForkStressTest, RandomTreesWithSubmissionsInBetweenLoseNothing) {
  sluice::testing::stress stress_run;
  for (const std::size_t capacity : {2U, 8U, 4096U}) {
    std::atomic<long> extra{0};
    long expected_extra = 0;
    {
      work_stealing_pool pool({.threads = 4, .deque_capacity = capacity});
      auto dice = stress_run.generator(capacity);
      for (int round = 0; round < 40; ++round) {
        const long total =
            fork(pool, [&] { return random_tree(pool, dice, 8, extra); }).join();
        EXPECT_EQ(total % 1000, 256);
        expected_extra += total / 1000;
        stress_run.did(512);
      }
    }
    EXPECT_EQ(extra.load(), expected_extra);
  }
}

}  // namespace
}  // namespace sluice::fork_test
