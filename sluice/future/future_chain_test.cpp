#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "sluice/executor/inline_executor.hpp"
#include "sluice/executor/manual_executor.hpp"
#include "sluice/future/async.hpp"
#include "sluice/future/future.hpp"
#include "sluice/future/promise.hpp"
#include "sluice/future/shared_future.hpp"
#include "sluice/future/testing/tracked.hpp"
#include "sluice/future/when_all.hpp"

namespace sluice::testing::future_chain_test {
namespace {

struct io_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};
struct disk_error : io_error {
  using io_error::io_error;
};

class future_chain_test : public leak_checked {};

TEST_F(future_chain_test, ThenRunsWhenTheValueIsSetOrAtOnce) {
  promise<tracked> p;
  bool ran = false;
  auto f = p.get_future().then([&, keep = tracked()](tracked t) {
    ran = true;
    return std::to_string(t.value + keep.value);
  });
  EXPECT_FALSE(ran);
  p.set_value(1);
  EXPECT_TRUE(ran) << "on the thread that completes it";
  EXPECT_EQ(tracked::alive(), 0) << "the function and its argument are destroyed after it has run";
  EXPECT_EQ(f.get(), "1");
  EXPECT_EQ(make_ready_future(1).then([](int n) { return n + 1; }).get(), 2);
}

TEST_F(future_chain_test, ThenTakesFunctionsOfTheValueOrOfNothing) {
  int calls = 0;
  make_ready_future().then([&] { ++calls; }).get();
  make_ready_future(1).then([&] { ++calls; }).get();
  make_ready_future(1).then([&](const int&) { ++calls; }).get();
  make_ready_future(1).then([&](int&&) { ++calls; }).get();
  make_ready_future(std::string("abc")).then(&std::string::size).then([&](std::size_t n) {
    EXPECT_EQ(n, 3U);
    ++calls;
  }).get();
  int here = 0;
  int& there = make_ready_future<int&>(here).then([](int& r) -> int& { return r; }).get();
  EXPECT_EQ(&there, &here);
  auto moved = make_ready_future(std::make_unique<int>(4)).then([](std::unique_ptr<int> p) {
    return p;
  });
  EXPECT_EQ(*moved.get(), 4);
  EXPECT_EQ(calls, 5);
}

TEST_F(future_chain_test, AnErrorSkipsThenAndDestroysItsFunction) {
  promise<int> p;
  auto f = p.get_future().then([keep = tracked()](int n) { return n; }).then([](int n) {
    ADD_FAILURE() << "not for errors";
    return n;
  });
  p.set_exception(io_error("gone"));
  EXPECT_EQ(tracked::alive(), 0);
  EXPECT_THROW(f.get(), io_error);
}

TEST_F(future_chain_test, AnExceptionOfAFunctionIsTheResult) {
  auto f = make_ready_future(1).then([](int) -> int { throw io_error("thrown"); });
  EXPECT_THROW(f.get(), io_error);
}

TEST_F(future_chain_test, AResultWhoseMoveThrowsIsMadeInPlace) {
  throwing_move::armed = true;
  auto f = make_ready_future(1).then([](int n) { return throwing_move(n); });
  throwing_move::armed = false;
  EXPECT_EQ(std::move(f).then([](throwing_move m) { return m.value; }).get(), 1);
}

TEST_F(future_chain_test, AndThenWaitsForTheFutureOfItsFunction) {
  promise<int> p;
  promise<tracked> q;
  auto f = p.get_future().and_then([&](int) { return q.get_future(); });
  p.set_value(1);
  EXPECT_FALSE(f.is_ready());
  q.set_value(2);
  EXPECT_EQ(f.get().value, 2);
  EXPECT_EQ(make_ready_future().and_then([] { return make_ready_future(3); }).get(), 3);
}

TEST_F(future_chain_test, AndThenPassesOnTheErrorsOfBoth) {
  const auto fail = [] { return make_failed_future<int>(io_error("inner")); };
  EXPECT_THROW(make_ready_future().and_then(fail).get(), io_error);
  EXPECT_THROW(make_failed_future<void>(disk_error("outer")).and_then(fail).get(), disk_error);
  EXPECT_THROW(make_ready_future().and_then([]() -> future<int> { throw io_error("f"); }).get(),
               io_error);
  EXPECT_THROW(make_ready_future().and_then([] { return promise<int>().get_future(); }).get(),
               future_error)
      << "the inner promise is gone";
}

TEST_F(future_chain_test, AMoveThatThrowsOnTheWayIsTheResult) {
  promise<throwing_move> inner;
  auto f = make_ready_future().and_then([&] { return inner.get_future(); });
  throwing_move::armed = true;
  inner.set_value(1);
  throwing_move::armed = false;
  EXPECT_THROW(f.get(), std::runtime_error);
}

TEST_F(future_chain_test, RecoverReplacesAnErrorAndPassesAValue) {
  EXPECT_EQ(make_failed_future<int>(io_error("x")).recover([] { return 1; }).get(), 1);
  EXPECT_EQ(make_ready_future(2).recover([] { return 1; }).get(), 2);
  std::string message;
  EXPECT_EQ(make_failed_future<int>(io_error("why"))
                .recover([&](std::exception_ptr e) {
                  try {
                    std::rethrow_exception(e);
                  } catch (const std::exception& why) {
                    message = why.what();
                  }
                  return 3;
                })
                .get(),
            3);
  EXPECT_EQ(message, "why");
  int calls = 0;
  make_failed_future<void>(io_error("x")).recover([&] { ++calls; }).get();
  EXPECT_EQ(calls, 1);
}

TEST_F(future_chain_test, RecoverMayNameTheExceptionItIsFor) {
  const auto recover = [](auto error) {
    return make_failed_future<int>(error)
        .recover([](const io_error&) { return 1; })
        .recover([](std::logic_error e) { return std::string(e.what()) == "l" ? 2 : 0; })
        .get();
  };
  EXPECT_EQ(recover(io_error("x")), 1);
  EXPECT_EQ(recover(disk_error("x")), 1) << "also derived exceptions";
  EXPECT_EQ(recover(std::logic_error("l")), 2);
  EXPECT_THROW(recover(std::runtime_error("x")), std::runtime_error);
  int (*const plain)(const io_error&) = [](const io_error&) { return 4; };
  EXPECT_EQ(make_failed_future<int>(io_error("x")).recover(plain).get(), 4);
}

TEST_F(future_chain_test, RecoverMayReturnAFutureOrThrow) {
  promise<int> second;
  auto f = make_failed_future<int>(io_error("first")).recover([&](const io_error&) {
    return second.get_future();
  });
  EXPECT_FALSE(f.is_ready());
  second.set_value(2);
  EXPECT_EQ(f.get(), 2);
  auto g = make_failed_future<int>(io_error("first")).recover([]() -> int {
    throw std::logic_error("second");
  });
  EXPECT_THROW(g.get(), std::logic_error);
}

TEST_F(future_chain_test, HandleSeesTheValueOrTheError) {
  const auto describe = [](settled<int> s) {
    return s ? std::to_string(s.value()) : std::string(s.error_as<io_error>()->what());
  };
  EXPECT_EQ(make_ready_future(1).handle(describe).get(), "1");
  EXPECT_EQ(make_failed_future<int>(io_error("bad")).handle(describe).get(), "bad");
  auto flat = make_failed_future<void>(io_error("x")).handle([](const settled<void>& s) {
    return make_ready_future(s.has_value());
  });
  EXPECT_FALSE(flat.get());
  auto thrown = make_ready_future(1).handle([](settled<int>) -> int { throw io_error("h"); });
  EXPECT_THROW(thrown.get(), io_error);
}

TEST_F(future_chain_test, FinallyRunsInAnyCaseAndKeepsTheResult) {
  int calls = 0;
  const auto count = [&] { ++calls; };
  EXPECT_EQ(make_ready_future(tracked(1)).finally(count).get().value, 1);
  EXPECT_THROW(make_failed_future<int>(io_error("x")).finally(count).get(), io_error);
  make_ready_future().finally(count).get();
  EXPECT_EQ(calls, 3);
  EXPECT_THROW(make_ready_future(1).finally([] { throw std::logic_error("f"); }).get(),
               std::logic_error);
  EXPECT_THROW(
      make_failed_future<int>(io_error("x")).finally([] { throw std::logic_error("f"); }).get(),
      std::logic_error)
      << "an exception of finally replaces the error";
}

TEST_F(future_chain_test, CombineCallsAFunctionOfBoth) {
  promise<int> a;
  promise<std::string> b;
  auto f = a.get_future().combine(b.get_future(), [](int n, std::string s) {
    return s + std::to_string(n);
  });
  b.set_value("b");
  EXPECT_FALSE(f.is_ready());
  a.set_value(1);
  EXPECT_EQ(f.get(), "b1");
  EXPECT_EQ(make_ready_future().combine(make_ready_future(1), [](int n) { return n; }).get(), 1);
  int here = 5;
  EXPECT_EQ(make_ready_future<int&>(here).combine(make_ready_future(), [](int& r) { return ++r; })
                .get(),
            6);
}

TEST_F(future_chain_test, CombineFailsAtOnceAndCancelsTheOther) {
  promise<int> a;
  promise<int> b;
  const auto asked = a.stop_token();
  auto f = a.get_future().combine(b.get_future(), [](int, int) {
    ADD_FAILURE() << "one of them failed";
  });
  b.set_exception(io_error("b"));
  EXPECT_TRUE(f.is_ready());
  EXPECT_TRUE(asked.stop_requested());
  EXPECT_THROW(f.get(), io_error);
}

TEST_F(future_chain_test, FunctionsRunOnTheExecutorOfVia) {
  manual_executor one({.name = "one"});
  manual_executor two({.name = "two"});
  std::vector<std::string> ran;
  const auto note = [&](int n) {
    const auto* const on = executor::current();
    ran.emplace_back(on == nullptr ? "none" : on->name());
    return n;
  };
  promise<int> p;
  auto f = p.get_future().then(note).via(one).then(note).then(note).via(two).then(note);
  p.set_value(1);
  EXPECT_EQ(ran, (std::vector<std::string>{"none"}));
  EXPECT_EQ(one.run_all(), 1U) << "the second function on it runs directly after the first";
  EXPECT_EQ(ran, (std::vector<std::string>{"none", "one", "one"}));
  EXPECT_EQ(two.run_all(), 1U);
  EXPECT_TRUE(f.is_ready());
  EXPECT_EQ(ran.back(), "two");
}

TEST_F(future_chain_test, AReadyFutureWithAnExecutorPostsToo) {
  manual_executor later;
  auto f = make_ready_future(1).via(later).then([](int n) { return n + 1; });
  EXPECT_FALSE(f.is_ready());
  later.run_all();
  EXPECT_EQ(f.get(), 2);
  inline_executor here;
  EXPECT_EQ(make_ready_future(1).via(here).then([&](int n) {
    EXPECT_EQ(executor::current(), &here);
    return n;
  }).get(), 1);
}

TEST_F(future_chain_test, AFunctionOfAndThenRunsOnTheExecutorAndItsInnerFutureNeedNot) {
  manual_executor later;
  promise<int> inner;
  auto f = make_ready_future().via(later).and_then([&] { return inner.get_future(); })
               .then([&](int n) {
                 EXPECT_EQ(executor::current(), &later);
                 return n;
               });
  later.run_all();
  inner.set_value(1);
  EXPECT_FALSE(f.is_ready()) << "the chain keeps its executor";
  later.run_all();
  EXPECT_EQ(f.get(), 1);
}

// A chain needs no stack, in every order of building and running.
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SLUICE_TEST_MILLION 50'000  // it would take a minute
#endif
#endif
#if !defined(SLUICE_TEST_MILLION)
#define SLUICE_TEST_MILLION 1'000'000
#endif
constexpr int million = SLUICE_TEST_MILLION;

TEST_F(future_chain_test, AMillionContinuationsNeedNoStack) {
  promise<int> p;
  auto f = p.get_future();
  for (int i = 0; i < million; ++i) f = std::move(f).then([](int n) { return n + 1; });
  p.set_value(0);
  EXPECT_EQ(f.get(), million);
}

TEST_F(future_chain_test, AMillionContinuationsPassOnABrokenPromise) {
  future<int> f;
  {
    promise<int> p;
    f = p.get_future();
    for (int i = 0; i < million; ++i) f = std::move(f).then([](int n) { return n + 1; });
  }
  EXPECT_THROW(f.get(), future_error);
}

TEST_F(future_chain_test, AMillionAndThensNeedNoStackAndCanBeCancelledAndDropped) {
  promise<int> p;
  const auto asked = p.stop_token();
  auto f = p.get_future();
  const auto one_more = [](int n) { return make_ready_future(n + 1); };
  for (int i = 0; i < million; ++i) f = std::move(f).and_then(one_more);
  f.cancel();
  EXPECT_TRUE(asked.stop_requested());
  p.set_value(0);
  EXPECT_EQ(f.get(), million);

  promise<int> q;
  auto g = q.get_future();
  for (int i = 0; i < million; ++i) g = std::move(g).and_then(one_more);
  g = future<int>();
  q.set_value(0);
}

TEST_F(future_chain_test, AMillionCombinationsInARowNeedNoStack) {
  promise<int> p;
  const auto asked = p.stop_token();
  auto sum = p.get_future();
  for (int i = 0; i < million; ++i) {
    sum = std::move(sum).combine(make_ready_future(1), std::plus<>());
  }
  auto outer = make_ready_future().and_then([&] { return std::move(sum); });  // checks for a cycle
  outer.cancel();
  EXPECT_TRUE(asked.stop_requested());
  p.set_value(0);
  EXPECT_EQ(outer.get(), million);
}

TEST_F(future_chain_test, AMillionPromisesSetByFunctionsOfEachOtherNeedNoStack) {
  std::vector<promise<int>> promises(million);
  std::vector<future<void>> steps;
  steps.reserve(million);
  for (std::size_t i = 0; i + 1 < million; ++i) {
    steps.push_back(promises[i].get_future().then([&promises, i](int n) {
      promises[i + 1].set_value(n + 1);
    }));
  }
  auto last = promises.back().get_future();
  promises.front().set_value(1);
  EXPECT_EQ(last.get(), million);
}

TEST_F(future_chain_test, AMillionStepsOnAnExecutorNeedNoStack) {
  inline_executor here;
  manual_executor later;
  for (executor* const on : {static_cast<executor*>(&here), static_cast<executor*>(&later)}) {
    promise<int> p;
    auto f = p.get_future().via(*on);
    for (int i = 0; i < million; ++i) f = std::move(f).then([](int n) { return n + 1; });
    p.set_value(0);
    later.run_all();
    EXPECT_EQ(f.get(), million);
  }
}

// A loop written as a function that returns a future of itself.
future<int> count_down(int n, executor* on) {
  if (n == 0) return make_ready_future(0);
  auto step = make_ready_future();
  if (on != nullptr) step = std::move(step).via(*on);
  return std::move(step).and_then([n, on, keep = tracked()] { return count_down(n - 1, on); });
}

TEST_F(future_chain_test, ALoopOfFuturesThatAreReadyNeedsNoStack) {
  EXPECT_EQ(count_down(million, nullptr).get(), 0);
}

// The same, where each round waits for the test to continue.
class stepped_loop {
 public:
  explicit stepped_loop(future<int> last) : last_(std::move(last)) {}
  future<int> run(int rounds) {
    if (rounds == 0) return std::move(last_);
    return step().and_then([this, rounds, keep = tracked()] { return run(rounds - 1); });
  }
  void next_round() {
    promise<void> now = std::move(next_);
    now.set_value();
  }

 private:
  future<void> step() {
    next_ = promise<void>();
    return next_.get_future();
  }

  promise<void> next_;
  future<int> last_;
};

TEST_F(future_chain_test, ALoopOfFuturesDoesNotGrow) {
  constexpr int rounds = 20'000;
  stepped_loop loop(make_ready_future(7));
  auto f = loop.run(rounds);
  for (int i = 0; i < rounds / 2; ++i) loop.next_round();
  const auto before = ::mallinfo2().uordblks;
  for (int i = rounds / 2; i < rounds; ++i) {
    EXPECT_LE(tracked::alive(), 1) << "each round ends before the next";
    loop.next_round();
  }
  // A state kept for each round would be more than a megabyte.
  EXPECT_LT(::mallinfo2().uordblks, before + 100'000);
  EXPECT_EQ(f.get(), 7);
}

TEST_F(future_chain_test, ALoopOfFuturesCanBeCancelledInAnyRound) {
  for (const int cancelled_in : {0, 1, 5, 9}) {
    promise<int> last;
    const auto asked = last.stop_token();
    stepped_loop loop(last.get_future());
    auto f = loop.run(10);
    for (int i = 0; i < 10; ++i) {
      if (i == cancelled_in) f.cancel();
      EXPECT_FALSE(asked.stop_requested()) << "it is not waited for yet";
      loop.next_round();
    }
    EXPECT_TRUE(asked.stop_requested()) << "an earlier cancel is passed on";
    last.set_value(1);
    EXPECT_EQ(f.get(), 1);
  }
}

// Cycles are detected when they are closed.
class future_cycle_test : public leak_checked {
 protected:
  // Records its result, and holds an object that must not leak.
  auto note() {
    return [this, keep = tracked()](settled<int> s) {
      const auto* const e = s.error_as<future_error>();
      ended.push_back(e != nullptr && e->why() == future_error::cycle ? "cycle" : "other");
      return s.has_value() ? s.value() : 0;
    };
  }
  std::vector<std::string> ended;
};

TEST_F(future_cycle_test, AFunctionThatReturnsTheFutureThatWaitsForItFails) {
  promise<int> p;
  future<int> f;
  f = p.get_future().and_then([&](int) { return std::move(f); }).handle(note());
  p.set_value(1);
  EXPECT_EQ(ended, std::vector<std::string>{"cycle"});
}

TEST_F(future_cycle_test, AFutureThatIsReturnedToItselfIsFreed) {
  const auto close_one = [] {
    promise<int> p;
    future<int> f;
    f = p.get_future().and_then([&](int) { return std::move(f); });
    p.set_value(1);
  };
  close_one();
  const auto before = ::mallinfo2().uordblks;
  for (int i = 0; i < 10'000; ++i) close_one();
  // No consumer sees its error; a future that waited for itself would leak 90 bytes or more.
  EXPECT_LT(::mallinfo2().uordblks, before + 100'000);
}

TEST_F(future_cycle_test, ACycleThroughRecoverHandleOrAsyncIsFound) {
  promise<int> p;
  future<int> f;
  f = p.get_future().recover([&](std::exception_ptr) { return std::move(f); }).handle(note());
  p.set_exception(std::make_exception_ptr(std::runtime_error("then")));
  EXPECT_EQ(ended, std::vector<std::string>{"cycle"});

  promise<int> q;
  future<int> g;
  g = q.get_future().handle([&](settled<int>) { return std::move(g); }).handle(note());
  q.set_value(1);
  EXPECT_EQ(ended, (std::vector<std::string>{"cycle", "cycle"}));

  manual_executor later;
  future<int> h;
  h = async(later, [&] { return std::move(h); }).handle(note());
  later.run_all();
  EXPECT_EQ(ended, (std::vector<std::string>{"cycle", "cycle", "cycle"}));
}

TEST_F(future_cycle_test, ACycleThroughSeveralFuturesFailsWhenItIsClosed) {
  promise<int> pa;
  promise<int> pb;
  promise<int> pc;
  future<int> a;
  future<int> b;
  future<int> c;
  a = pa.get_future().and_then([&](int) { return std::move(b); }).handle(note());
  b = pb.get_future().and_then([&](int) { return std::move(c); });
  c = pc.get_future().and_then([&](int) { return std::move(a); });
  pa.set_value(1);
  pb.set_value(1);
  EXPECT_TRUE(ended.empty());
  pc.set_value(1);
  EXPECT_EQ(ended, std::vector<std::string>{"cycle"});
}

TEST_F(future_cycle_test, ACycleThroughAFanInOrASharedFutureIsFound) {
  promise<int> p;
  promise<int> other;
  future<int> whole;
  auto part = p.get_future().and_then([&](int) { return std::move(whole); }).handle(note());
  whole = std::move(part).combine(other.get_future(), [](int x, int y) { return x + y; });
  p.set_value(1);
  EXPECT_EQ(ended, std::vector<std::string>{"cycle"});

  promise<int> q;
  shared_future<int> shared;
  shared = shared_future<int>(
      q.get_future().and_then([&](int) { return shared.fork(); }).handle(note()));
  q.set_value(1);
  EXPECT_EQ(ended, (std::vector<std::string>{"cycle", "cycle"}));
  shared.get();
}

TEST_F(future_cycle_test, AFutureThatIsOnlyUsedTwiceOverIsNoCycle) {
  promise<int> p;
  shared_future<int> shared(p.get_future());
  // A lattice: two paths a level, twenty levels, all of them upstream of the inner future.
  for (int level = 0; level < 20; ++level) {
    shared = shared_future<int>(
        shared.fork().combine(shared.fork(), [](int x, int y) { return std::max(x, y); }));
  }
  auto f = make_ready_future().and_then([&] { return shared.fork(); });
  p.set_value(3);
  EXPECT_EQ(f.get(), 3);
}

TEST(future_chain_DeathTest, ReturningAnInvalidFutureIsABrokenContract) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH((void)make_ready_future().and_then([] { return future<int>(); }),
               "a valid future from the function");
}

}  // namespace
}  // namespace sluice::testing::future_chain_test
