#include "sluice/base/work.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <string>
#include <thread>
#include <utility>

namespace {

using sluice::run_here;

// Work that does what the test says.
class job final : public sluice::work {
 public:
  explicit job(std::function<void()> what) : what_(std::move(what)) {}
  void run() noexcept override { what_(); }

 private:
  std::function<void()> what_;
};

TEST(RunHere, RunsOnTheCallingThreadBeforeItReturns) {
  std::thread::id where;
  job one([&] { where = std::this_thread::get_id(); });
  run_here(one);
  EXPECT_EQ(where, std::this_thread::get_id());
}

TEST(RunHere, WorkThatBecomesReadyInsideRunsAfterwardsInOrder) {
  std::string order;
  job third([&] { order += "3 "; });
  job second([&] {
    order += "2 ";
    run_here(third);
    order += "2end ";
  });
  job other([&] { order += "other "; });
  job first([&] {
    order += "1 ";
    run_here(second);
    run_here(other);
    order += "1end ";
  });
  run_here(first);
  EXPECT_EQ(order, "1 1end 2 2end other 3 ");
}

TEST(RunHere, TheSameWorkCanRunAgainAlsoFromInsideItself) {
  int left = 3;
  job* self = nullptr;
  job again([&] {
    if (--left > 0) run_here(*self);
  });
  self = &again;
  run_here(again);
  EXPECT_EQ(left, 0);
  left = 2;
  run_here(again);
  EXPECT_EQ(left, 0);
}

TEST(RunHere, WorkMayEndItselfWhileItRuns) {
  class once final : public sluice::work {
   public:
    explicit once(bool& ran) : ran_(ran) {}
    void run() noexcept override {
      ran_ = true;
      delete this;
    }

   private:
    bool& ran_;
  };
  bool ran = false;
  run_here(*new once(ran));
  EXPECT_TRUE(ran);
}

TEST(RunHere, AChainOfAHundredThousandNeedsNoStack) {
  constexpr int length = 100'000;
  int depth = 0;
  int deepest = 0;
  int ran = 0;
  job* self = nullptr;
  job link([&] {
    ++depth;
    deepest = std::max(deepest, depth);
    if (++ran < length) run_here(*self);
    --depth;
  });
  self = &link;
  run_here(link);
  EXPECT_EQ(ran, length);
  EXPECT_EQ(deepest, 1);
  std::printf("%d links, no seed: nothing random\n", length);
}

TEST(RunHere, ThreadsDoNotRunEachOthersWork) {
  job outer([&] {
    bool ran = false;
    job inner([&] { ran = true; });
    std::jthread([&] { run_here(inner); }).join();  // not put behind what runs on this thread
    EXPECT_TRUE(ran);
  });
  run_here(outer);
}

}  // namespace
