#include "sluice/executor/submission.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <type_traits>
#include <utility>

namespace sluice::submission_test {
namespace {

static_assert(sizeof(submission) == 64);
static_assert(std::is_nothrow_move_constructible_v<submission>);
static_assert(std::is_nothrow_move_assignable_v<submission>);
static_assert(!std::is_copy_constructible_v<submission>);
static_assert(!std::is_convertible_v<int, submission>);

TEST(submission_test, RunsItsFunction) {
  int ran = 0;
  submission f = [&, p = std::make_unique<int>(3)] { ran += *p; };
  EXPECT_TRUE(f);
  EXPECT_EQ(f.priority, 0);
  f();
  EXPECT_EQ(ran, 3);
}

TEST(submission_test, CarriesItsPriorityAlong) {
  int ran = 0;
  submission f{9, [&] { ++ran; }};
  EXPECT_EQ(f.priority, 9);
  submission g = std::move(f);
  EXPECT_FALSE(f);
  EXPECT_EQ(g.priority, 9);
  g();
  EXPECT_EQ(ran, 1);
}

TEST(submission_test, AnEmptySubmissionIsFalse) {
  EXPECT_FALSE(submission());
  void (*none)() = nullptr;
  EXPECT_FALSE(submission(none));
  EXPECT_FALSE(submission(3, none));
}

}  // namespace
}  // namespace sluice::submission_test
