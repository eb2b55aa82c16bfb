// The guarantees tested by the JSR-166 tests of CompletableFuture, for futures of this library.
// Differences are noted in the tests: a future here has one consumer and cannot be completed by it,
// and an error is passed on without a wrapper.
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "sluice/base/clock.hpp"
#include "sluice/executor/inline_executor.hpp"
#include "sluice/executor/manual_executor.hpp"
#include "sluice/future/async.hpp"
#include "sluice/future/future.hpp"
#include "sluice/future/promise.hpp"
#include "sluice/future/shared_future.hpp"
#include "sluice/future/testing/tracked.hpp"
#include "sluice/future/when_all.hpp"
#include "sluice/future/when_any.hpp"

namespace sluice::testing::future_scenarios_test {
namespace {

using namespace std::chrono_literals;

struct app_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Every scenario is run with the source completed before and after the function is attached, and
// with functions on the completing thread, on an inline and on another executor.
struct setting {
  bool completed_first;
  enum { plain, inline_one, other_one } where;
};
std::string name_of(const ::testing::TestParamInfo<setting>& info) {
  const char* const where[] = {"Here", "Inline", "Executor"};
  return std::string(info.param.completed_first ? "Completed" : "Pending") +
         where[info.param.where];
}

class future_scenarios : public ::testing::TestWithParam<setting> {
 protected:
  ~future_scenarios() override {
    // The executor ends first, then the remaining objects are counted.
    EXPECT_EQ(later.pending(), 0U);
    EXPECT_EQ(tracked::alive(), 0);
  }

  // `complete` sets the result of a source; `attach` takes its future and returns another.
  template <class Complete, class Attach>
  auto run(Complete complete, Attach attach) {
    promise<int> source;
    auto f = source.get_future();
    if (GetParam().where == setting::inline_one) f = std::move(f).via(here);
    if (GetParam().where == setting::other_one) f = std::move(f).via(later);
    if (GetParam().completed_first) complete(source);
    auto result = attach(std::move(f));
    if (!GetParam().completed_first) {
      EXPECT_FALSE(result.is_ready());
      complete(source);
    }
    later.run_all();
    EXPECT_TRUE(result.is_ready());
    return result;
  }
  static void give_one(promise<int>& p) { p.set_value(1); }
  static void give_error(promise<int>& p) { p.set_exception(app_error("source")); }

  template <class T>
  static std::string error_of(future<T> f) {
    try {
      f.get();
    } catch (const std::exception& e) {
      return e.what();
    }
    return "none";
  }

  inline_executor here;
  manual_executor later;
};

INSTANTIATE_TEST_SUITE_P(settings, future_scenarios,
                         ::testing::Values(setting{false, setting::plain},
                                           setting{true, setting::plain},
                                           setting{false, setting::inline_one},
                                           setting{true, setting::inline_one},
                                           setting{false, setting::other_one},
                                           setting{true, setting::other_one}),
                         name_of);

TEST_P(future_scenarios, AFunctionOfTheValueIsCalledOnceWithIt) {
  int calls = 0;
  auto f = run(give_one, [&](future<int> s) {
    return std::move(s).then([&, keep = tracked()](int n) {
      ++calls;
      return n + 1;
    });
  });
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(f.get(), 2);
}

TEST_P(future_scenarios, AFunctionOfTheValueIsNotCalledForAnError) {
  int calls = 0;
  auto f = run(give_error, [&](future<int> s) {
    return std::move(s).then([&, keep = tracked()](int) { ++calls; });
  });
  EXPECT_EQ(calls, 0);
  EXPECT_EQ(error_of(std::move(f)), "source") << "without a wrapper";
}

TEST_P(future_scenarios, AFunctionThatThrowsFailsItsFuture) {
  auto f = run(give_one, [](future<int> s) {
    return std::move(s).then([](int) -> int { throw app_error("action"); });
  });
  EXPECT_EQ(error_of(std::move(f)), "action");
}

TEST_P(future_scenarios, AnErrorHandlerIsForErrorsOnly) {
  int calls = 0;
  const auto handler = [&](std::exception_ptr) {
    ++calls;
    return -1;
  };
  EXPECT_EQ(run(give_one, [&](future<int> s) { return std::move(s).recover(handler); }).get(), 1);
  EXPECT_EQ(calls, 0);
  EXPECT_EQ(run(give_error, [&](future<int> s) { return std::move(s).recover(handler); }).get(),
            -1);
  EXPECT_EQ(calls, 1);
}

TEST_P(future_scenarios, AnErrorHandlerThatThrowsReplacesTheError) {
  auto f = run(give_error, [](future<int> s) {
    return std::move(s).recover([]() -> int { throw app_error("handler"); });
  });
  EXPECT_EQ(error_of(std::move(f)), "handler");
}

TEST_P(future_scenarios, AnErrorHandlerMayContinueWithAnotherStage) {
  auto f = run(give_error, [](future<int> s) {
    return std::move(s).recover([] { return make_ready_future(5); });
  });
  EXPECT_EQ(f.get(), 5);
  auto g = run(give_error, [](future<int> s) {
    return std::move(s).recover([] { return make_failed_future<int>(app_error("second")); });
  });
  EXPECT_EQ(error_of(std::move(g)), "second");
}

TEST_P(future_scenarios, AnActionInAnyCaseKeepsTheResultItSaw) {
  int calls = 0;
  const auto action = [&] { ++calls; };
  EXPECT_EQ(run(give_one, [&](future<int> s) { return std::move(s).finally(action); }).get(), 1);
  EXPECT_EQ(error_of(run(give_error, [&](future<int> s) { return std::move(s).finally(action); })),
            "source");
  EXPECT_EQ(calls, 2);
}

TEST_P(future_scenarios, AnActionInAnyCaseThatThrowsAlwaysReplacesTheResult) {
  // CompletableFuture.whenComplete keeps the first of two errors; here the last one counts.
  const auto action = [] { throw app_error("action"); };
  EXPECT_EQ(error_of(run(give_one, [&](future<int> s) { return std::move(s).finally(action); })),
            "action");
  EXPECT_EQ(error_of(run(give_error, [&](future<int> s) { return std::move(s).finally(action); })),
            "action");
}

TEST_P(future_scenarios, AHandlerOfBothSeesExactlyOneAndItsResultIsTheResult) {
  const auto handler = [](const settled<int>& s) {
    EXPECT_NE(s.has_value(), s.error() != nullptr);
    return s ? s.value() + 1 : -1;
  };
  EXPECT_EQ(run(give_one, [&](future<int> s) { return std::move(s).handle(handler); }).get(), 2);
  EXPECT_EQ(run(give_error, [&](future<int> s) { return std::move(s).handle(handler); }).get(), -1);
  auto f = run(give_error, [](future<int> s) {
    return std::move(s).handle([](const settled<int>&) -> int { throw app_error("handler"); });
  });
  EXPECT_EQ(error_of(std::move(f)), "handler");
}

TEST_P(future_scenarios, ACompositionTakesTheResultOfTheInnerStage) {
  EXPECT_EQ(run(give_one, [](future<int> s) {
              return std::move(s).and_then([](int n) { return make_ready_future(n * 10); });
            }).get(),
            10);
  EXPECT_EQ(error_of(run(give_one, [](future<int> s) {
              return std::move(s).and_then(
                  [](int) { return make_failed_future<int>(app_error("inner")); });
            })),
            "inner");
  EXPECT_EQ(error_of(run(give_one, [](future<int> s) {
              return std::move(s).and_then([](int) -> future<int> { throw app_error("action"); });
            })),
            "action");
  int calls = 0;
  EXPECT_EQ(error_of(run(give_error, [&](future<int> s) {
              return std::move(s).and_then([&](int) {
                ++calls;
                return make_ready_future(1);
              });
            })),
            "source");
  EXPECT_EQ(calls, 0);
}

TEST_P(future_scenarios, ACombinationWaitsForBothAndFailsWithEither) {
  promise<int> second;
  auto f = run(
      [&](promise<int>& source) {
        source.set_value(1);
        second.set_value(2);
      },
      [&](future<int> s) {
        return std::move(s).combine(second.get_future(), [](int a, int b) { return a * 10 + b; });
      });
  EXPECT_EQ(f.get(), 12);
  EXPECT_EQ(error_of(run(give_error, [](future<int> s) {
              return std::move(s).combine(make_ready_future(2), [](int, int) { return 0; });
            })),
            "source");
  promise<int> other;
  auto failed_by_other = run(
      [&](promise<int>& source) {
        source.set_value(1);
        other.set_exception(app_error("other"));
      },
      [&](future<int> s) {
        return std::move(s).combine(other.get_future(), [](int, int) { return 0; });
      });
  EXPECT_EQ(error_of(std::move(failed_by_other)), "other");
  EXPECT_EQ(error_of(run(give_one, [](future<int> s) {
              return std::move(s).combine(make_ready_future(2), [](int, int) -> int {
                throw app_error("action");
              });
            })),
            "action");
}

TEST_P(future_scenarios, TheFirstOfTwoIsTaken) {
  promise<int> never;
  auto f = run(give_one, [&](future<int> s) {
    return when_any(std::move(s).then([](int n) { return n; }), never.get_future());
  });
  auto winner = f.get();
  EXPECT_EQ(winner.index, 0U);
  EXPECT_EQ(winner.result.value(), 1);
  promise<int> never_either;
  auto g = run(give_error, [&](future<int> s) {
    return when_any(never_either.get_future(), std::move(s).then([](int n) { return n; }));
  });
  EXPECT_EQ(g.get().index, 1U) << "an error is an end, too";
}

TEST_P(future_scenarios, AnErrorPassesAlongAChainUntilItIsHandled) {
  int skipped = 0;
  auto f = run(give_error, [&](future<int> s) {
    return std::move(s).then([&](int n) { return n + ++skipped; })
        .then([&](int n) { return n + ++skipped; })
        .recover([](const app_error&) { return 100; })
        .then([](int n) { return n + 1; });
  });
  EXPECT_EQ(skipped, 0);
  EXPECT_EQ(f.get(), 101);
}

class future_scenarios_test : public leak_checked {};

TEST_F(future_scenarios_test, ACompleteFutureCannotBeCompletedAgain) {
  promise<int> p;
  auto f = p.get_future();
  EXPECT_TRUE(p.try_set_value(1));
  EXPECT_FALSE(p.try_set_value(2));
  EXPECT_FALSE(p.try_set_exception(std::make_exception_ptr(app_error("x"))));
  EXPECT_EQ(f.get(), 1);
}

TEST_F(future_scenarios_test, ACancelIsARequestAndTheProducerAnswersIt) {
  // CompletableFuture.cancel completes the future itself. Here the producer decides.
  promise<int> p;
  auto f = p.get_future();
  const std::stop_callback answer(p.stop_token(), [&] {
    p.set_exception(future_error(future_error::cancelled));
  });
  auto dependent = std::move(f).then([](int n) { return n; });
  dependent.cancel();
  try {
    dependent.get();
    FAIL();
  } catch (const future_error& e) {
    EXPECT_EQ(e.why(), future_error::cancelled);
  }
}

TEST_F(future_scenarios_test, AllOfManyCompleteInAnyOrder) {
  for (const std::size_t size : {1U, 2U, 20U}) {
    for (const bool backwards : {false, true}) {
      std::vector<promise<int>> promises(size);
      std::vector<future<int>> futures;
      for (auto& p : promises) futures.push_back(p.get_future());
      auto all = when_all(std::move(futures));
      for (std::size_t i = 0; i < size; ++i) {
        EXPECT_FALSE(all.is_ready());
        promises[backwards ? size - 1 - i : i].set_value(static_cast<int>(i));
      }
      EXPECT_EQ(all.get().size(), size);
    }
  }
}

TEST_F(future_scenarios_test, AllOfManyWithOneFailureFailsWhereverItStands) {
  for (std::size_t bad = 0; bad < 6; ++bad) {
    std::vector<promise<int>> promises(6);
    std::vector<future<int>> futures;
    for (auto& p : promises) futures.push_back(p.get_future());
    auto all = when_all(std::move(futures));
    for (std::size_t i = 0; i < 6; ++i) {
      if (i == bad) {
        promises[i].set_exception(app_error("bad"));
      } else {
        promises[i].set_value(0);
      }
      EXPECT_EQ(all.is_ready(), i >= bad) << "allOf waits for the rest; here it fails at once";
    }
    EXPECT_THROW(all.get(), app_error);
  }
}

TEST_F(future_scenarios_test, AnyOfManyTakesEachWhenItIsFirst) {
  for (std::size_t first = 0; first < 6; ++first) {
    std::vector<promise<int>> promises(6);
    std::vector<future<int>> futures;
    for (auto& p : promises) futures.push_back(p.get_future());
    auto any = when_any(std::move(futures));
    EXPECT_FALSE(any.is_ready());
    promises[first].set_value(7);
    for (auto& p : promises) (void)p.try_set_value(8);
    auto winner = any.get();
    EXPECT_EQ(winner.index, first);
    EXPECT_EQ(winner.result.value(), 7);
  }
}

TEST_F(future_scenarios_test, NoneAreAllAndNoneIsNotAny) {
  EXPECT_TRUE(when_all(std::vector<future<int>>()).is_ready());
  EXPECT_THROW(when_any(std::vector<future<int>>()).get(), future_error)
      << "anyOf of nothing never completes; here it fails";
}

TEST_F(future_scenarios_test, ATimeoutFailsOnlyAnIncompleteFuture) {
  manual_clock clock;
  promise<int> late;
  promise<int> soon;
  auto a = late.get_future().with_timeout(75ms, clock);
  auto b = soon.get_future().with_timeout(75ms, clock);
  auto c = make_ready_future(1).with_timeout(75ms, clock);
  soon.set_value(2);
  clock.advance(75ms);
  EXPECT_THROW(a.get(), future_error);
  EXPECT_EQ(b.get(), 2);
  EXPECT_EQ(c.get(), 1);
}

TEST_F(future_scenarios_test, ADefaultCanReplaceALateValue) {
  manual_clock clock;
  promise<int> late;
  auto f = late.get_future().with_timeout(1s, clock).recover([](const future_error& e) {
    return e.why() == future_error::timed_out ? 42 : 0;
  });
  clock.advance(1s);
  EXPECT_EQ(f.get(), 42);
}

TEST_F(future_scenarios_test, AnExecutorThatRefusesFailsAsyncAndIsNeverAskedForReadyChains) {
  manual_executor refuses;
  refuses.close();
  auto f = async(refuses, [keep = tracked()] { return 1; });
  EXPECT_THROW(f.get(), future_error);
  // A continuation is a step of accepted work: it is posted, and a post is never refused.
  manual_executor closed;
  auto g = make_ready_future(1).via(closed).then([](int n) { return n; });
  closed.close();
  closed.run_all();
  EXPECT_EQ(g.get(), 1);
}

TEST_F(future_scenarios_test, ManyDependentsOfOneAllRun) {
  promise<int> p;
  const shared_future<int> shared(p.get_future());
  int ran = 0;
  std::vector<future<void>> all;
  for (int i = 0; i < 10'000; ++i) all.push_back(shared.then([&](int n) { ran += n; }));
  p.set_value(1);
  EXPECT_EQ(ran, 10'000);
  when_all(std::move(all)).get();
}

TEST_F(future_scenarios_test, DependentsOfDependentsAddedWhileTheyRunAreRun) {
  promise<int> p;
  const shared_future<int> shared(p.get_future());
  int ran = 0;
  auto f = shared.then([&](int) {
    // Complete by now: attached from inside, it runs at once.
    shared.then([&](int) { ++ran; }).get();
  });
  p.set_value(1);
  f.get();
  EXPECT_EQ(ran, 1);
}

TEST_F(future_scenarios_test, APromiseSetInsideAFunctionRunsItsContinuationsBeforeItReturns) {
  promise<int> outer;
  promise<int> inner;
  std::vector<std::string> order;
  auto g = inner.get_future().then([&](int) { order.emplace_back("inner"); });
  auto f = outer.get_future().then([&](int) {
    inner.set_value(1);
    EXPECT_TRUE(g.is_ready());
    g.get();  // so this wait is no deadlock
    order.emplace_back("outer");
  });
  outer.set_value(1);
  EXPECT_EQ(order, (std::vector<std::string>{"inner", "outer"}));
}

}  // namespace
}  // namespace sluice::testing::future_scenarios_test
