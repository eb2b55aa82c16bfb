#include "sluice/future/settled.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "sluice/future/testing/tracked.hpp"

namespace sluice::testing::settled_test {
namespace {

class settled_test : public leak_checked {};

TEST_F(settled_test, HoldsAValueOrAnError) {
  const settled<std::string> good(std::in_place, "x");
  EXPECT_TRUE(good);
  EXPECT_EQ(good.value(), "x");
  EXPECT_EQ(good.error(), nullptr);
  EXPECT_EQ(good.error_as<std::exception>(), nullptr);
  const settled<std::string> bad(std::make_exception_ptr(std::runtime_error("why")));
  EXPECT_FALSE(bad.has_value());
  EXPECT_THROW(bad.value(), std::runtime_error);
  EXPECT_NE(bad.error(), nullptr);
  EXPECT_STREQ(bad.error_as<std::runtime_error>()->what(), "why");
  EXPECT_STREQ(bad.error_as<std::exception>()->what(), "why");
  EXPECT_EQ(bad.error_as<std::logic_error>(), nullptr);
}

TEST_F(settled_test, CopiesAndMovesAsItsValueDoes) {
  settled<tracked> a(std::in_place, 1);
  settled<tracked> b = a;
  EXPECT_EQ(a.value().value, 1);
  settled<tracked> c = std::move(b);
  EXPECT_EQ(c.value().value, 1);
  EXPECT_EQ(b.value().value, tracked::moved_from);
  c = settled<tracked>(std::make_exception_ptr(1));
  EXPECT_FALSE(c);
  a = c;
  EXPECT_THROW(a.value(), int);
  c = settled<tracked>(std::in_place, 2);
  EXPECT_EQ(std::move(c).value().value, 2);
  static_assert(!std::is_copy_constructible_v<settled<std::unique_ptr<int>>>);
  static_assert(std::is_nothrow_move_constructible_v<settled<std::unique_ptr<int>>>);
  static_assert(!std::is_nothrow_move_constructible_v<settled<throwing_move>>);
  static_assert(std::is_copy_constructible_v<settled<void>>);
}

TEST_F(settled_test, HoldsVoidAndReferences) {
  settled<void>(std::in_place).value();
  EXPECT_THROW(settled<void>(std::make_exception_ptr(1)).value(), int);
  int here = 1;
  settled<int&> reference(std::in_place, here);
  EXPECT_EQ(&reference.value(), &here);
  const auto copy = reference;
  copy.value() = 2;
  EXPECT_EQ(here, 2);
}

TEST(settled_DeathTest, ANullErrorIsABrokenContract) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH((void)settled<int>{std::exception_ptr{}}, "sluice::settled.*an exception");
}

}  // namespace
}  // namespace sluice::testing::settled_test
