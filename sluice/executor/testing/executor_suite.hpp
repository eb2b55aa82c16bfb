#pragma once

// The guarantees of every executor, tested once for all of them; executor_kinds.hpp defines Kind.
//
//   INSTANTIATE_TYPED_TEST_SUITE_P(thread_pool, executor_suite, thread_pool_kind);
//   INSTANTIATE_TYPED_TEST_SUITE_P(thread_pool, bounded_executor_suite, thread_pool_kind);
//
// `bounded_executor_suite` (bounded_executor_suite.hpp, included here): for executors with a queue.

#include <algorithm>
#include <array>
#include <chrono>
#include <deque>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <vector>

#include "sluice/executor/testing/bounded_executor_suite.hpp"
#include "sluice/executor/testing/executor_kinds.hpp"
#include "sluice/sync/event.hpp"
#include "sluice/sync/testing/coroutine.hpp"
#include "sluice/sync/testing/stress.hpp"

namespace sluice::testing {

template <class Kind>
class executor_suite : public executor_words<Kind> {};

TYPED_TEST_SUITE_P(executor_suite);

// ---- running

TYPED_TEST_P(executor_suite, EverythingSubmittedIsRunExactlyOnce) {
  this->open();
  constexpr std::size_t count = 500;
  std::vector<std::atomic<int>> times(count);
  for (auto& each : times) {
    while (!this->ex().try_submit(this->job([&each] { ++each; }))) {
      if constexpr (TypeParam::workers == 0) this->kind->step();
    }
  }
  this->until_ran(count);
  for (auto& each : times) EXPECT_EQ(each, 1);
}

TYPED_TEST_P(executor_suite, EveryFormOfSubmitRunsItsFunction) {
  using namespace std::chrono_literals;
  this->open();
  std::stop_source source;
  submission moved = this->job();
  submission tried = this->job();
  EXPECT_EQ(this->ex().submit(this->job()), status::ok);
  EXPECT_EQ(this->ex().submit(this->job(), source.get_token()), status::ok);
  EXPECT_EQ(this->ex().try_submit(this->job()), status::ok);
  EXPECT_EQ(this->ex().submit(this->job(), 1h), status::ok);
  EXPECT_EQ(this->ex().submit(this->job(), -1h), status::ok) << "it tries once";
  EXPECT_EQ(this->ex().submit(this->job(), std::chrono::system_clock::now() + 1h), status::ok);
  EXPECT_EQ(this->ex().submit({5, this->job()}), status::ok);
  EXPECT_EQ(this->ex().submit(std::move(moved)), status::ok);
  EXPECT_FALSE(moved);
  EXPECT_EQ(this->ex().try_submit(std::move(tried)), status::ok);
  EXPECT_FALSE(tried);
  this->until_ran(9);
  EXPECT_EQ(this->ran, 9);
}

TYPED_TEST_P(executor_suite, SubmitHappensBeforeTheFunction) {
  this->open();
  for (int i = 1; i <= 200; ++i) {
    int plain = 0;  // no atomic: submit must be enough
    plain = i;
    std::atomic<int> seen{0};
    ASSERT_EQ(this->ex().submit([&] { seen = plain; }), status::ok);
    this->until([&] { return seen != 0; });
    EXPECT_EQ(seen, i);
  }
}

TYPED_TEST_P(executor_suite, PostHappensBeforeTheWork) {
  this->open();
  for (int i = 1; i <= 200; ++i) {
    int plain = 0;
    std::atomic<int> seen{0};
    posted item([&] { seen = plain; });
    plain = i;
    this->ex().post(item);
    this->until([&] { return seen != 0; });
    EXPECT_EQ(seen, i);
  }
}

TYPED_TEST_P(executor_suite, TakesFunctionsThatCanOnlyBeMovedAndLargeOnes) {
  this->open();
  auto box = std::make_unique<int>(42);
  std::atomic<int> seen{0};
  ASSERT_EQ(this->ex().submit(this->job([&, box = std::move(box)] { seen = *box; })), status::ok);
  std::array<int, 100> large{};
  large.back() = 7;
  std::atomic<int> last{0};
  ASSERT_EQ(this->ex().submit(this->job([&last, large] { last = large.back(); })), status::ok);
  this->until_ran(2);
  EXPECT_EQ(seen, 42);
  EXPECT_EQ(last, 7);
}

TYPED_TEST_P(executor_suite, AFunctionIsDestroyedOnceItHasRun) {
  this->open();
  const auto canary = std::make_shared<int>(1);
  ASSERT_EQ(this->ex().submit(this->job([canary] {})), status::ok);
  this->until([&] { return canary.use_count() == 1; }, "the function to be destroyed");
  EXPECT_EQ(this->ran, 1);
}

TYPED_TEST_P(executor_suite, FunctionsMaySubmit) {
  this->open();
  constexpr int length = 200;
  struct link {  // submits the next link
    executor_suite<TypeParam>* test;
    int left;
    void operator()() const {
      if (left > 0) {
        EXPECT_EQ(test->ex().try_submit(test->job(link{test, left - 1})), status::ok);
      }
    }
  };
  ASSERT_EQ(this->ex().submit(this->job(link{this, length - 1})), status::ok);
  this->until_ran(length);
  EXPECT_EQ(this->ran, length);
}

TYPED_TEST_P(executor_suite, FunctionsMayPostAndPostsMaySubmit) {
  this->open();
  posted inner([&] { ++this->ran; });
  posted outer([&] {
    ++this->ran;
    EXPECT_EQ(this->ex().try_submit(this->job()), status::ok);
    this->ex().post(inner);
  });
  ASSERT_EQ(this->ex().submit(this->job([&] { this->ex().post(outer); })), status::ok);
  this->until_ran(4);
  EXPECT_EQ(this->ran, 4);
}

TYPED_TEST_P(executor_suite, AChainOfPostsNeedsNoStack) {
  this->open();
  constexpr int length = 20'000;
  std::atomic<int> ended{0};
  std::atomic<int> deepest{0};
  posted* self = nullptr;
  posted link([&] {
    static thread_local int depth = 0;  // several workers may have begun one and not returned
    if (++depth > deepest) deepest = depth;
    if (++this->ran < length) this->ex().post(*self);
    --depth;
    ++ended;
  });
  self = &link;
  this->ex().post(link);
  this->until_ran(length);
  EXPECT_EQ(deepest, 1);
  this->until([&] { return ended == length; });
}

// ---- threads

TYPED_TEST_P(executor_suite, CurrentIsTheExecutorInsideAndNothingOutside) {
  this->open();
  EXPECT_EQ(executor::current(), nullptr);
  std::atomic<executor*> in_function{nullptr};
  std::atomic<executor*> in_post{nullptr};
  ASSERT_EQ(this->ex().submit([&] { in_function = executor::current(); }), status::ok);
  this->until([&] { return in_function != nullptr; });
  posted item([&] { in_post = executor::current(); });
  this->ex().post(item);
  this->until([&] { return in_post != nullptr; });
  EXPECT_EQ(in_function, &this->ex());
  EXPECT_EQ(in_post, &this->ex());
  EXPECT_EQ(executor::current(), nullptr);
}

template <class Executor>
detached resume_on(Executor&, event& e, std::atomic<executor*>& where) {
  (void)co_await e.async_wait();
  where = executor::current();
}

TYPED_TEST_P(executor_suite, ACoroutineResumesOnIt) {
  this->open();
  event e;
  std::atomic<executor*> where{nullptr};
  resume_on(this->ex(), e, where);
  EXPECT_EQ(where, nullptr);
  e.set();
  this->until([&] { return where != nullptr; });
  EXPECT_EQ(where, &this->ex());
}

TYPED_TEST_P(executor_suite, RunsAsManyAtOnceAsDocumented) {
  if constexpr (TypeParam::workers > 1) {
    this->open();
    std::atomic<std::size_t> together{0};
    for (std::size_t i = 0; i < TypeParam::workers; ++i) {
      ASSERT_EQ(this->ex().submit(this->job([&] {
        ++together;
        eventually([&] { return together >= TypeParam::workers; }, "all workers at once");
      })),
                status::ok);
    }
    this->until_ran(static_cast<int>(TypeParam::workers));
  }
  if constexpr (TypeParam::is_serial) {
    this->open({.capacity = 1024});
    int plain = 0;  // no atomic: one at a time must be enough
    constexpr int count = 1000;
    for (int i = 0; i < count; ++i) {
      ASSERT_EQ(this->ex().submit(this->job([&] { ++plain; })), status::ok);
    }
    this->until_ran(count);
    EXPECT_EQ(plain, count);
  }
}

TYPED_TEST_P(executor_suite, OneSubmittersFunctionsRunInTheirOrderWhereThatIsPromised) {
  if constexpr (!TypeParam::keeps_order) {
    GTEST_SKIP() << "promises no order";
  } else {
    this->open({.capacity = 512});
    std::vector<int> order;
    for (int i = 0; i < 300; ++i) {
      ASSERT_EQ(this->ex().submit(this->job([&order, i] { order.push_back(i); })), status::ok);
    }
    this->until_ran(300);
    for (int i = 0; i < 300; ++i) EXPECT_EQ(order[static_cast<std::size_t>(i)], i);
  }
}

// ---- errors and stops

TYPED_TEST_P(executor_suite, AFunctionThatThrowsIsReportedOnceAndOthersRun) {
  std::mutex guard;
  std::vector<std::string> messages;
  this->open({.on_error = [&](std::exception_ptr error) {
    const std::lock_guard hold(guard);
    try {
      std::rethrow_exception(std::move(error));
    } catch (const std::exception& e) {
      messages.emplace_back(e.what());
    } catch (int) {
      messages.emplace_back("an int");
    }
  }});
  const auto reported = [&](std::size_t count) {
    const std::lock_guard hold(guard);
    return messages.size() == count;
  };
  if constexpr (!TypeParam::is_bounded) ::testing::internal::CaptureStderr();
  ASSERT_EQ(this->ex().submit(this->job([] { throw std::runtime_error("no paper"); })), status::ok);
  if constexpr (TypeParam::is_bounded) this->until([&] { return reported(1); });
  ASSERT_EQ(this->ex().submit(this->job([] { throw 7; })), status::ok);
  if constexpr (TypeParam::is_bounded) this->until([&] { return reported(2); });
  ASSERT_EQ(this->ex().submit(this->job()), status::ok);
  this->until_ran(1);
  EXPECT_EQ(this->ran, 1) << "functions that threw did not reach their end";
  if constexpr (TypeParam::is_bounded) {
    EXPECT_EQ(messages, (std::vector<std::string>{"no paper", "an int"}));
  } else {
    const auto text = ::testing::internal::GetCapturedStderr();
    EXPECT_NE(text.find("threw: no paper\n"), std::string::npos) << text;
    EXPECT_NE(text.find("threw: not a std::exception\n"), std::string::npos);
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2) << text;
  }
}

TYPED_TEST_P(executor_suite, AnEarlierStopRunsNothingAndLeavesTheFunction) {
  this->open();
  std::stop_source source;
  source.request_stop();
  submission f = this->job();
  EXPECT_EQ(this->ex().submit(std::move(f), source.get_token()), status::stopped);
  ASSERT_TRUE(f) << "it is still the caller's";
  EXPECT_EQ(this->ran, 0);
  EXPECT_EQ(this->ex().submit(std::move(f)), status::ok);
  this->until_ran(1);
  EXPECT_EQ(this->ran, 1);
}

// ---- many threads

// Several threads submit, post and submit from inside, in every form, concurrently.
TYPED_TEST_P(executor_suite, NothingIsLostOrRunTwiceUnderStress) {
  stress run;
  constexpr int submitters = 4;
  constexpr int each = 1'500;
  this->open({.capacity = 16});
  std::vector<std::vector<std::atomic<int>>> times;
  std::vector<std::deque<posted>> posts(submitters);
  for (int i = 0; i < submitters; ++i) times.emplace_back(each);
  std::array<std::atomic<int>, submitters> last{};
  std::atomic<int> inside{0};
  std::atomic<int> done{0};
  for (auto& l : last) l = -1;

  const auto ran_once = [&](int who, int number) {
    ++times[static_cast<std::size_t>(who)][static_cast<std::size_t>(number)];
    ++done;
  };
  const auto enter = [&] {
    const int others = inside.fetch_add(1);
    if (TypeParam::is_serial) {
      EXPECT_EQ(others, 0);
    }
  };
  std::vector<std::jthread> threads;
  for (int who = 0; who < submitters; ++who) {
    threads.emplace_back([&, who] {
      auto choose = run.generator(static_cast<std::uint64_t>(who));
      for (int n = 0; n < each; ++n) {
        const auto in_order = [&, who, n] {
          enter();
          if (TypeParam::keeps_order) {
            EXPECT_LT(last[static_cast<std::size_t>(who)].exchange(n), n);
          }
          ran_once(who, n);
          --inside;
        };
        switch (choose.below(5)) {
          case 0:
            while (!this->ex().try_submit(this->job(in_order))) std::this_thread::yield();
            break;
          case 1: {
            posted& item = posts[static_cast<std::size_t>(who)].emplace_back([&, who, n] {
              enter();
              ran_once(who, n);
              --inside;
            });
            this->ex().post(item);
            break;
          }
          case 2:  // submits from inside; if it is full, runs the function itself
            EXPECT_EQ(this->ex().submit(this->job([&, who, n] {
              submission f = [&, who, n] { ran_once(who, n); };
              if (!this->ex().try_submit(std::move(f))) f();
            })),
                      status::ok);
            break;
          default:
            EXPECT_EQ(this->ex().submit(this->job(in_order)), status::ok);
        }
      }
      run.did(each);
    });
  }
  this->until([&] { return done == submitters * each; }, "all of them to run");
  threads.clear();
  for (const auto& counts : times) {
    for (const auto& count : counts) EXPECT_EQ(count, 1);
  }
  this->until([&] { return this->live == 0; }, "every function to be destroyed");
  this->kind.reset();  // the posts may be released only now
}

REGISTER_TYPED_TEST_SUITE_P(executor_suite, EverythingSubmittedIsRunExactlyOnce,
                            EveryFormOfSubmitRunsItsFunction, SubmitHappensBeforeTheFunction,
                            PostHappensBeforeTheWork, TakesFunctionsThatCanOnlyBeMovedAndLargeOnes,
                            AFunctionIsDestroyedOnceItHasRun, FunctionsMaySubmit,
                            FunctionsMayPostAndPostsMaySubmit, AChainOfPostsNeedsNoStack,
                            CurrentIsTheExecutorInsideAndNothingOutside, ACoroutineResumesOnIt,
                            RunsAsManyAtOnceAsDocumented,
                            OneSubmittersFunctionsRunInTheirOrderWhereThatIsPromised,
                            AFunctionThatThrowsIsReportedOnceAndOthersRun,
                            AnEarlierStopRunsNothingAndLeavesTheFunction,
                            NothingIsLostOrRunTwiceUnderStress);

// Misuse: each is a broken contract with a message.
template <class Kind>
class executor_suite_DeathTest : public executor_words<Kind> {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TYPED_TEST_SUITE_P(executor_suite_DeathTest);

TYPED_TEST_P(executor_suite_DeathTest, AnEmptyFunctionIsABrokenContract) {
  EXPECT_DEATH(
      {
        this->open();
        (void)this->ex().submit(submission());
      },
      "a function to run");
}

REGISTER_TYPED_TEST_SUITE_P(executor_suite_DeathTest, AnEmptyFunctionIsABrokenContract);

}  // namespace sluice::testing
