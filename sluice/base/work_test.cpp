#include "sluice/base/work.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <string>
#include <thread>
#include <utility>

namespace work_test {
namespace {

using sluice::run_here;

// Work that runs a function of the test.
class job final : public sluice::work {
 public:
  explicit job(std::function<void()> body) : body_(std::move(body)) {}
  void run() noexcept override { body_(); }

 private:
  std::function<void()> body_;
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

TEST(RunHere, WorkMayDestroyItselfWhileItRuns) {
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
    std::jthread([&] { run_here(inner); }).join();  // runs at once, on that thread
    EXPECT_TRUE(ran);
  });
  run_here(outer);
}

class list_sink final : public sluice::work_sink {
 public:
  void post(sluice::work& item) noexcept override { posted.push_back(item); }
  sluice::intrusive_list<sluice::work> posted;
};

TEST(RunElsewhere, PostsWorkThatBecomesReadyDuringItsLife) {
  list_sink sink;
  bool ran = false;
  job one([&] { ran = true; });
  {
    const sluice::run_elsewhere diverted(sink);
    run_here(one);
    EXPECT_FALSE(ran);
    list_sink inner;
    {
      const sluice::run_elsewhere further(inner);
      job two([] {});
      run_here(two);
      EXPECT_EQ(&inner.posted.pop_front(), &two);
    }
    job three([] {});
    run_here(three);
    EXPECT_EQ(sink.posted.size(), 2U);
    EXPECT_EQ(&sink.posted.pop_front(), &one);
    EXPECT_EQ(&sink.posted.pop_front(), &three);
  }
  run_here(one);
  EXPECT_TRUE(ran);
}

TEST(RunElsewhere, ASinkMayCallRunHere) {
  class here final : public sluice::work_sink {
   public:
    void post(sluice::work& item) noexcept override { run_here(item); }
  } sink;
  int ran = 0;
  job one([&] { ++ran; });
  const sluice::run_elsewhere diverted(sink);
  run_here(one);
  run_here(one);
  EXPECT_EQ(ran, 2);
}

}  // namespace
}  // namespace work_test
