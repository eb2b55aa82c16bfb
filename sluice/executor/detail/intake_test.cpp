#include "sluice/executor/detail/intake.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "sluice/base/clock.hpp"
#include "sluice/base/testing/eventually.hpp"

namespace sluice::detail::intake_test {
namespace {

using testing::eventually;

class intake_test : public ::testing::Test {
 protected:
  // Writes its letter when it runs.
  class letter final : public work {
   public:
    letter(intake_test& test, char c) : test_(test), c_(c) {}
    void run() noexcept override { test_.ran += c_; }

   private:
    intake_test& test_;
    const char c_;
  };

  void submit(char c, std::int32_t priority = 0) {
    ASSERT_EQ(in.try_push({priority, [this, c] { ran += c; }}), status::ok);
  }
  void post(char c) {
    letters.push_back(std::make_unique<letter>(*this, c));
    ASSERT_TRUE(in.post(*letters.back()));
  }
  std::string run_all() {
    ran.clear();
    while (auto next = in.try_pop()) (*next)();
    return ran;
  }

  std::string ran;
  std::vector<std::unique_ptr<letter>> letters;
  intake in{"test::intake", {.capacity = 8}};
};

TEST_F(intake_test, TheTwoLanesTakeTurnsWhileBothHaveSomething) {
  for (const char c : {'1', '2', '3', '4'}) submit(c);
  for (const char c : {'a', 'b', 'c'}) post(c);
  EXPECT_EQ(run_all(), "a1b2c34");
}

TEST_F(intake_test, PostsThatKeepComingDoNotStarveASubmission) {
  submit('s');
  post('p');
  ran.clear();
  for (int i = 0; i < 4; ++i) {
    auto next = in.try_pop();
    ASSERT_TRUE(next);
    (*next)();
    post('p');
  }
  EXPECT_EQ(ran.find('s'), 1u) << ran;
  run_all();
}

TEST_F(intake_test, SubmissionsThatKeepComingDoNotStarveAPost) {
  submit('s');
  submit('s');
  ran.clear();
  (*in.try_pop())();
  post('p');
  for (int i = 0; i < 3; ++i) {
    submit('s');
    (*in.try_pop())();
  }
  EXPECT_LE(ran.find('p'), 2u) << ran;
  run_all();
}

TEST_F(intake_test, PostsDoNotCountAgainstTheCapacity) {
  for (const char c : {'1', '2', '3', '4', '5', '6', '7', '8'}) submit(c);
  for (int i = 0; i < 20; ++i) post('p');
  EXPECT_EQ(in.size(), 8u);
  EXPECT_EQ(in.pending(), 28u);
  EXPECT_EQ(in.try_push(submission([] {})), status::full);
  (*in.try_pop())();
  (*in.try_pop())();
  EXPECT_EQ(in.pending(), 26u);
  EXPECT_EQ(in.size(), 7u);
  EXPECT_EQ(run_all().size(), 26u);
  EXPECT_EQ(in.pending(), 0u);
}

TEST_F(intake_test, APostWakesAWaitingConsumer) {
  std::jthread taker([&] { (*in.pop())(); });
  eventually([&] { return in.waiting_to_pop() == 1; });
  post('p');
  taker.join();
  EXPECT_EQ(ran, "p");
}

TEST_F(intake_test, TakeBackGivesTheSubmissionsInTheirOrderAndLeavesThePosts) {
  post('a');
  for (const char c : {'1', '2', '3'}) submit(c);
  post('b');
  in.close();
  auto back = in.take_back();
  ASSERT_EQ(back.size(), 3u);
  for (auto& f : back) f();
  EXPECT_EQ(ran, "123");
  EXPECT_EQ(in.size(), 0u);
  EXPECT_EQ(run_all(), "ab");
}

TEST_F(intake_test, TakeBackOfNothingIsEmpty) {
  post('a');
  EXPECT_TRUE(in.take_back().empty());
  EXPECT_EQ(run_all(), "a");
}

TEST_F(intake_test, WithPrioritiesTheMostUrgentComesFirstAlsoWhenTakenBack) {
  manual_clock clock;
  intake urgent("test::intake", {.capacity = 8},
                intake_store::by_priority::order{.ageing = {}, .time = &clock,
                                                 .evicts_least = false});
  const auto fill = [&] {
    for (const int p : {1, 9, 5}) {
      ASSERT_TRUE(urgent.try_push({p, [this, p] { ran += std::to_string(p); }}));
    }
  };
  fill();
  letter a(*this, 'a');
  ASSERT_TRUE(urgent.post(a));
  while (auto next = urgent.try_pop()) (*next)();
  EXPECT_EQ(ran, "a951");
  ran.clear();
  fill();
  for (auto& f : urgent.take_back()) f();
  EXPECT_EQ(ran, "951");
}

TEST_F(intake_test, RetiresOnlyWhenClosedAndEmpty) {
  EXPECT_FALSE(in.retire()) << "it is open";
  post('a');
  in.close();
  EXPECT_FALSE(in.retire()) << "a post is inside";
  EXPECT_EQ(run_all(), "a");
  post('b');  // closed, but not retired
  EXPECT_EQ(run_all(), "b");
  EXPECT_TRUE(in.retire());
  letter late(*this, 'c');
  EXPECT_FALSE(in.post(late)) << "no consumer is left";
  EXPECT_FALSE(late.linked());
}

// Every post is run by exactly one of two: the consumer or, if refused, the posting thread.
TEST_F(intake_test, APostThatRacesWithRetiringIsNeverLost) {
  for (int round = 0; round < 200; ++round) {
    intake raced("test::intake", {.capacity = 1});
    std::atomic<int> taken{0};
    std::atomic<int> refused{0};
    struct counted final : work {
      explicit counted(std::atomic<int>& c) : count(c) {}
      void run() noexcept override { ++count; }
      std::atomic<int>& count;
    };
    std::vector<std::unique_ptr<counted>> items;
    for (int i = 0; i < 20; ++i) items.push_back(std::make_unique<counted>(taken));
    std::jthread poster([&] {
      for (auto& item : items) {
        if (!raced.post(*item)) ++refused;
      }
    });
    raced.close();
    do {
      while (auto next = raced.try_pop()) (*next)();
    } while (!raced.retire());
    poster.join();
    EXPECT_EQ(taken + refused, 20);
  }
}

}  // namespace
}  // namespace sluice::detail::intake_test
