#include "sluice/sync/lazy.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "sluice/base/testing/eventually.hpp"
#include "sluice/sync/event.hpp"
#include "sluice/sync/testing/waiting_suite.hpp"

namespace sluice::testing::lazy_test {
namespace {

using namespace std::chrono_literals;

// Shut while another thread is building.
class lazy_gate {
 public:
  static constexpr bool opened_by_another_thread = true;

  lazy_gate() : builder_([this] { value_.get(); }) { started_.wait(); }
  ~lazy_gate() { open(); }

  status wait(const wait_limits& limits) { return value_.get(limits).status(); }
  template <class Where>
  static detached await(lazy_gate& gate, Where&, wait_limits limits, ending& ended) {
    auto found = co_await gate.value_.async_get(std::move(limits));
    ended.set(found.status());
  }
  void open() {
    finish_.set();
    if (builder_.joinable()) builder_.join();  // from here on it is built
  }
  std::size_t waiting() const { return value_.waiting(); }

 private:
  event started_;
  event finish_;
  lazy<int> value_{[this] {
    started_.set();
    finish_.wait();
    return 42;
  }};
  std::jthread builder_;
};

INSTANTIATE_TYPED_TEST_SUITE_P(lazy, waiting_suite, lazy_gate);

TEST(lazy_test, IsBuiltOnFirstUseAndOnlyOnce) {
  int built = 0;
  lazy<std::string> text([&] {
    ++built;
    return std::string("value");
  });
  EXPECT_FALSE(text.is_built());
  EXPECT_EQ(text.try_get().status(), status::empty) << "try_get does not build";
  EXPECT_EQ(built, 0);
  EXPECT_EQ(text.get(), "value");
  EXPECT_EQ(&text.get(), &text.get());
  EXPECT_EQ(built, 1);
  EXPECT_TRUE(text.is_built());
  ASSERT_TRUE(text.try_get());
  text.try_get()->get() += "!";
  EXPECT_EQ(text.get(), "value!");
}

TEST(lazy_test, IsBuiltOnceAndSeenWholeByAll) {
  stress run;
  struct pair {
    int a = 0;
    int b = 0;
  };
  for (int round = 0; round < 500; ++round) {
    std::atomic<int> built{0};
    lazy<pair> value([&] {
      ++built;
      return pair{.a = 1, .b = 1};
    });
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&] { EXPECT_EQ(value.get().a + value.get().b, 2); });
    }
    threads.clear();
    EXPECT_EQ(built, 1);
    run.did(4);
  }
}

TEST(lazy_test, HoldsATypeThatCanBeNeitherMovedNorCopied) {
  struct fixed {
    explicit fixed(int v) : value(v) {}
    fixed(const fixed&) = delete;
    int value;
  };
  lazy<fixed> value([seven = std::make_unique<int>(7)] { return fixed(*seven); });
  EXPECT_EQ(value.get().value, 7);
}

TEST(lazy_test, TheInitialiserIsFreedOnceItHasSucceeded) {
  auto captured = std::make_shared<int>(1);
  std::weak_ptr<int> watch = captured;
  lazy<int> value([captured = std::move(captured)] { return *captured; });
  EXPECT_FALSE(watch.expired());
  EXPECT_EQ(value.get(), 1);
  EXPECT_TRUE(watch.expired());
}

TEST(lazy_test, AValueThatWasNeverBuiltIsNeverDestroyed) {
  struct counted {
    explicit counted(int& c) : count(c) {}
    counted(const counted&) = delete;
    ~counted() { ++count; }
    int& count;
  };
  int destroyed = 0;
  {
    lazy<counted> value([&] { return counted(destroyed); });
  }
  EXPECT_EQ(destroyed, 0);
  {
    lazy<counted> value([&] { return counted(destroyed); });
    value.get();
  }
  EXPECT_EQ(destroyed, 1);
}

TEST(lazy_test, AnExceptionGoesToTheCallerThatRanTheInitialiserAndTheNextTriesAgain) {
  int tries = 0;
  lazy<int> value([&]() -> int {
    if (++tries < 3) throw std::runtime_error("not yet");
    return tries;
  });
  EXPECT_THROW(value.get(), std::runtime_error);
  EXPECT_FALSE(value.is_built());
  EXPECT_THROW((void)value.get(1h), std::runtime_error);
  EXPECT_EQ(value.get(), 3);
}

TEST(lazy_test, AFailurePassesTheRightToBuildToOneWaiter) {
  event started;
  event fail;
  event second_started;
  event succeed;
  std::atomic<int> tries{0};
  std::atomic<int> failures{0};
  lazy<int> value([&]() -> int {
    if (++tries == 1) {
      started.set();
      fail.wait();
      throw std::runtime_error("first");
    }
    second_started.set();
    succeed.wait();
    return 2;
  });
  std::vector<std::jthread> threads;
  const auto ask = [&] {
    threads.emplace_back([&] {
      try {
        EXPECT_EQ(value.get(), 2);
      } catch (const std::runtime_error&) {
        ++failures;
      }
    });
  };
  ask();
  started.wait();
  for (std::size_t i = 1; i <= 3; ++i) {
    ask();
    eventually([&] { return value.waiting() == i; });
  }
  fail.set();
  second_started.wait();
  EXPECT_EQ(value.waiting(), 2U) << "only one tries again";
  succeed.set();
  threads.clear();
  EXPECT_EQ(failures, 1);
  EXPECT_EQ(tries, 2);
}

TEST(lazy_test, ACoroutineBuildsOnItsSink) {
  event started;
  event fail;
  std::atomic<int> tries{0};
  std::thread::id built_on;
  lazy<int> value([&]() -> int {
    if (++tries == 1) {
      started.set();
      fail.wait();
      throw std::runtime_error("first");
    }
    built_on = std::this_thread::get_id();
    return 5;
  });
  std::jthread first([&] { EXPECT_THROW(value.get(), std::runtime_error); });
  started.wait();
  manual_sink sink;
  int seen = 0;
  [](manual_sink&, lazy<int>& v, int& out) -> detached { out = *co_await v.async_get(); }(
                                               sink, value, seen);
  fail.set();
  first.join();
  EXPECT_EQ(sink.run_all(), 1U);
  EXPECT_EQ(seen, 5);
  EXPECT_EQ(built_on, std::this_thread::get_id());
}

TEST(lazy_test, ADeadlineThatHasPassedStillBuildsIfTheValueIsIdle) {
  lazy<int> value([] { return 1; });
  auto found = value.get(-1s);
  ASSERT_TRUE(found);
  int& reference = *found;
  EXPECT_EQ(reference, 1);
}

TEST(lazy_test, AWaitThatGaveUpDoesNotSwallowTheRightToBuild) {
  stress run;
  for (int round = 0; round < 300; ++round) {
    auto choose = run.generator(static_cast<std::uint64_t>(round));
    std::atomic<int> tries{0};
    const int failures = static_cast<int>(choose.below(4));
    lazy<int> value([&]() -> int {
      if (++tries <= failures) throw std::runtime_error("again");
      return tries;
    });
    std::vector<std::jthread> threads;
    for (int t = 0; t < 5; ++t) {
      const auto wait = std::chrono::microseconds(choose.below(50));
      const bool limited = t > 0;
      threads.emplace_back([&value, &run, wait, limited] {
        for (;;) {
          try {
            if (!limited) {
              value.get();
              return;
            }
            if (value.get(wait)) return;
          } catch (const std::runtime_error&) {
          }
          run.did();
        }
      });
    }
    threads.clear();
    EXPECT_EQ(tries, failures + 1);
    EXPECT_EQ(value.get(), failures + 1);
  }
}

TEST(lazy_DeathTest, GettingItFromItsOwnInitialiserIsABrokenContract) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        lazy<int>* self = nullptr;
        lazy<int> value([&self]() -> int { return self->get(); });
        self = &value;
        value.get();
      },
      "sluice::lazy.*its initialiser not to call get on the value it builds");
}

TEST(lazy_DeathTest, DestroyingItWhileItIsBuiltIsABrokenContract) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        event started;
        event never;
        auto* const value = new lazy<int>([&] {
          started.set();
          never.wait();
          return 1;
        });
        std::jthread builds([value] { value->get(); });
        started.wait();
        delete value;
      },
      "sluice::lazy.*its initialiser not to be running at its destruction");
}

}  // namespace
}  // namespace sluice::testing::lazy_test
