#include "jobs/net/loop.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <string>
#include <utility>

#include "sluice/base/seam.hpp"
#include "sluice/sync/event.hpp"

namespace sluice::jobs::net::loop_test {
namespace {

using namespace std::chrono_literals;

// A loop whose next turn ends with the function that a test sets.
class loop_test : public ::testing::Test {
 protected:
  loop_test() {
    loop_.at_turn_end([this](const std::function<void()>& run_posted) {
      run_posted_ = run_posted;
      if (auto act = std::exchange(at_end_, nullptr)) act();
      return false;
    });
    loop_.start();
  }
  ~loop_test() override {
    loop_.begin_stop();
    EXPECT_TRUE(loop_.has_ended({}));
  }

  void end_next_turn_with(std::function<void()> act) {
    loop_.run_soon([this, act = std::move(act)]() mutable { at_end_ = std::move(act); });
  }
  void post(std::function<void()> f) { ASSERT_TRUE(loop_.submit(std::move(f))); }
  static void expect_soon(event& e) { EXPECT_TRUE(e.wait(20s)); }

  event done_;
  loop loop_{"test"};
  // Used on the loop's thread only.
  std::function<void()> at_end_;
  std::function<void()> run_posted_;
};

TEST_F(loop_test, WorkPostedByTheEndOfATurnRunsFirst) {
  std::string order;
  end_next_turn_with([&] {
    loop_.run_soon([&] {
      order += "later";
      done_.set();
    });
    post([&] { order += "posted "; });
  });
  expect_soon(done_);
  EXPECT_EQ(order, "posted later");
}

TEST_F(loop_test, TheEndOfATurnCanRunWorkThatItPosted) {
  std::string order;
  end_next_turn_with([&] {
    post([&] {
      order += "first ";
      post([&] { order += "then"; });
    });
    run_posted_();
    order += "between ";
    post([&] { done_.set(); });
  });
  expect_soon(done_);
  EXPECT_EQ(order, "first between then");
}

// Posted work may call the engine again; the end of a turn commits those changes.
TEST_F(loop_test, ATurnEndsAgainAfterWorkThatItsEndPosted) {
  end_next_turn_with([&] { post([&] { at_end_ = [&] { done_.set(); }; }); });
  expect_soon(done_);
}

TEST_F(loop_test, OtherThreadsMayPostWhileATurnEnds) {
  end_next_turn_with([&] {
    post([] {});
    seam::thread other([&] { post([&] { done_.set(); }); });
    other.join();
  });
  expect_soon(done_);
}

}  // namespace
}  // namespace sluice::jobs::net::loop_test
