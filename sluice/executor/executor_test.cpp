#include "sluice/executor/executor.hpp"

#include <gtest/gtest.h>

#include <stdexcept>
#include <stop_token>
#include <string>

#include "sluice/base/work.hpp"

namespace sluice::executor_test {
namespace {

// A minimal executor: it overrides only `post`. Runs work when the test calls it.
class least final : public executor {
 public:
  void post(work& item) noexcept override { ready_.push_back(item); }
  std::string_view name() const noexcept override { return "least"; }
  std::size_t run_all() {
    std::size_t ran = 0;
    const running here(*this);
    for (; !ready_.empty(); ++ran) ready_.pop_front().run();
    return ran;
  }

 private:
  intrusive_list<work> ready_;
};

TEST(executor_test, AnExecutorThatOnlyOverridesPostTakesSubmissionsToo) {
  least ex;
  int ran = 0;
  EXPECT_EQ(ex.submit([&] { ++ran; }), status::ok);
  EXPECT_EQ(ex.try_submit([&] { ran += 10; }), status::ok);
  EXPECT_EQ(ran, 0);
  EXPECT_EQ(ex.run_all(), 2u);
  EXPECT_EQ(ran, 11);
}

TEST(executor_test, ByDefaultAnEarlierStopLeavesTheFunctionWithTheCaller) {
  least ex;
  std::stop_source source;
  source.request_stop();
  submission f = [] {};
  EXPECT_EQ(ex.submit(std::move(f), source.get_token()), status::stopped);
  EXPECT_TRUE(f);
  EXPECT_EQ(ex.run_all(), 0u);
}

TEST(executor_test, ByDefaultAnExceptionIsWrittenToStandardError) {
  least ex;
  ASSERT_TRUE(ex.submit([] { throw std::runtime_error("no ink"); }));
  ::testing::internal::CaptureStderr();
  ex.run_all();
  EXPECT_EQ(::testing::internal::GetCapturedStderr(),
            "sluice: a function submitted to executor 'least' threw: no ink\n");
}

TEST(executor_test, CurrentIsTheInnermostThatRuns) {
  least outer;
  least inner;
  executor* seen[3] = {};
  ASSERT_TRUE(inner.submit([&] { seen[1] = executor::current(); }));
  ASSERT_TRUE(outer.submit([&] {
    seen[0] = executor::current();
    inner.run_all();
    seen[2] = executor::current();
  }));
  outer.run_all();
  EXPECT_EQ(seen[0], &outer);
  EXPECT_EQ(seen[1], &inner);
  EXPECT_EQ(seen[2], &outer);
  EXPECT_EQ(executor::current(), nullptr);
}

TEST(executor_DeathTest, ByDefaultAnEmptyFunctionIsABrokenContract) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        least ex;
        (void)ex.try_submit(submission());
      },
      "sluice::executor: expected a function to run");
}

}  // namespace
}  // namespace sluice::executor_test
