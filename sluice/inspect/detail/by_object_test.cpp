#include "sluice/inspect/detail/by_object.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <vector>

namespace sluice::testing::by_object_test {
namespace {

struct entry {
  const void* object = nullptr;
  int number = 0;
};

TEST(by_object_test, ReturnsOnlyTheEntriesOfTheObject) {
  std::array<int, 100> objects{};
  std::vector<entry> all;
  for (int number = 0; number < 1000; ++number) {
    all.push_back({&objects[static_cast<std::size_t>(number) % objects.size()], number});
  }
  const inspect::detail::by_object<entry> seen(std::move(all));
  std::size_t count = 0;
  for (std::size_t i = 0; i < objects.size(); ++i) {
    const auto found = seen.of(&objects[i]);
    count += found.size();
    int before = -1;
    for (const auto& e : found) {
      EXPECT_EQ(e.object, &objects[i]);
      EXPECT_GT(e.number, before);  // in insertion order
      before = e.number;
    }
  }
  EXPECT_EQ(count, 1000U);
}

TEST(by_object_test, ReturnsNothingForAnUnknownObject) {
  const int one = 0;
  const int other = 0;
  const inspect::detail::by_object<entry> none{{}};
  EXPECT_TRUE(none.of(&one).empty());
  EXPECT_TRUE(none.of(nullptr).empty());
  const inspect::detail::by_object<entry> some({{&one, 1}});
  EXPECT_TRUE(some.of(&other).empty());
  EXPECT_EQ(some.of(&one).size(), 1U);
}

}  // namespace
}  // namespace sluice::testing::by_object_test
