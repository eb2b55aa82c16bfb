// The hooks of queued_executor for derived classes, and errors of its callbacks. The suite of every
// executor tests its behaviour for users.

#include "sluice/executor/queued_executor.hpp"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <utility>

#include "sluice/executor/manual_executor.hpp"
#include "sluice/sync/testing/coroutine.hpp"

namespace sluice::queued_executor_test {
namespace {

class counting final : public queued_executor {
 public:
  explicit counting(std::size_t capacity, overflow when_full = overflow::reject,
                    std::function<void(std::exception_ptr)> on_error = {})
      : queued_executor("test::counting", {.capacity = capacity,
                                           .overflow = when_full,
                                           .name = "counting",
                                           .on_error = std::move(on_error)}) {}
  void post(work& item) noexcept override { ASSERT_TRUE(intake_.post(item)); }
  bool run_one() {
    auto next = intake_.try_pop();
    return next && run_submission(*next);
  }

  int arrivals = 0;
  int by_caller = 0;

 private:
  void arrived() noexcept override { ++arrivals; }
  void ran_by_caller() noexcept override { ++by_caller; }
};

testing::detached submit_async(counting* on, submission f, status& result) {
  result = co_await on->async_submit(std::move(f));
}

TEST(queued_executor_test, ArrivedIsCalledForAcceptedSubmissionsOnly) {
  counting ex(2);
  EXPECT_EQ(ex.submit([] {}), status::ok);
  EXPECT_EQ(ex.arrivals, 1);
  status result = status::empty;
  submit_async(&ex, [] {}, result);
  EXPECT_EQ(result, status::ok);
  EXPECT_EQ(ex.arrivals, 2);
  EXPECT_EQ(ex.submit([] {}), status::full);
  submit_async(&ex, [] {}, result);
  EXPECT_EQ(result, status::full);
  ex.close();
  EXPECT_EQ(ex.submit([] {}), status::closed);
  submit_async(&ex, [] {}, result);
  EXPECT_EQ(result, status::closed);
  EXPECT_EQ(ex.arrivals, 2);
  while (ex.run_one()) {
  }
}

TEST(queued_executor_test, RanByCallerIsCalledWhenTheCallerRunsIt) {
  counting ex(1, overflow::caller_runs);
  ASSERT_TRUE(ex.submit([] {}));
  ASSERT_TRUE(ex.submit([] {}));
  status result = status::empty;
  submit_async(&ex, [] {}, result);
  EXPECT_EQ(result, status::ok);
  EXPECT_EQ(ex.arrivals, 1);
  EXPECT_EQ(ex.by_caller, 2);
  EXPECT_TRUE(ex.run_one());
}

TEST(queued_executor_test, RunSubmissionReturnsWhetherAFunctionThrew) {
  int errors = 0;
  counting ex(2, overflow::reject, [&](const std::exception_ptr&) { ++errors; });
  ASSERT_TRUE(ex.submit([] { throw 1; }));
  ASSERT_TRUE(ex.submit([] {}));
  EXPECT_FALSE(ex.run_one());
  EXPECT_EQ(errors, 1);
  EXPECT_TRUE(ex.run_one());
  EXPECT_EQ(errors, 1);
}

TEST(queued_executor_test, AnErrorHandlerThatThrowsIsReportedInItsTurn) {
  counting ex(1, overflow::reject,
              [](const std::exception_ptr&) { throw std::runtime_error("log is full"); });
  ASSERT_TRUE(ex.submit([] { throw std::runtime_error("no ink"); }));
  ::testing::internal::CaptureStderr();
  EXPECT_FALSE(ex.run_one());
  EXPECT_EQ(::testing::internal::GetCapturedStderr(),
            "sluice: a function submitted to executor 'counting' threw: no ink\n"
            "sluice: on_error of 'counting' threw: log is full\n");
}

TEST(queued_executor_test, AnExceptionOfOnDropGoesToOnErrorAndTheSubmissionIsTaken) {
  int drops = 0;
  int errors = 0;
  {
    manual_executor ex({.capacity = 1,
                        .overflow = overflow::drop_oldest,
                        .on_drop = [&](submission&&) {
                          ++drops;
                          throw 1;
                        },
                        .on_error = [&](const std::exception_ptr&) { ++errors; }});
    EXPECT_EQ(ex.submit([] {}), status::ok);
    EXPECT_EQ(ex.submit([] {}), status::ok);
    EXPECT_EQ(ex.run_all(), 1U);
  }
  EXPECT_EQ(drops, 1);
  EXPECT_EQ(errors, 1);
}

TEST(queued_executor_DeathTest, AwaitingTheSubmissionOfNothingIsABrokenContract) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        counting ex(1);
        auto pending = ex.async_submit(submission());
      },
      "a function to run");
}

}  // namespace
}  // namespace sluice::queued_executor_test
