#include "sluice/base/intrusive_list.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <deque>
#include <memory>
#include <vector>

#include "sluice/base/random.hpp"
#include "sluice/base/testing/effort.hpp"
#include "sluice/base/testing/test_name.hpp"

namespace intrusive_list_test {
namespace {

using sluice::intrusive_list;
using sluice::list_hook;

struct item : list_hook {
  explicit item(int n = 0) : number(n) {}
  int number;
};

std::vector<int> numbers_in(intrusive_list<item>& list) {
  std::vector<int> seen;
  list.for_each([&](item& one) { seen.push_back(one.number); });
  return seen;
}

TEST(IntrusiveList, BeginsEmpty) {
  intrusive_list<item> list;
  EXPECT_TRUE(list.empty());
  EXPECT_EQ(list.size(), 0U);
  EXPECT_EQ(numbers_in(list), std::vector<int>{});
}

TEST(IntrusiveList, KeepsTheOrderOfBothEnds) {
  item a(1), b(2), c(3);
  intrusive_list<item> list;
  list.push_back(b);
  list.push_back(c);
  list.push_front(a);
  EXPECT_EQ(numbers_in(list), (std::vector{1, 2, 3}));
  EXPECT_EQ(list.size(), 3U);
  EXPECT_EQ(&list.front(), &a);
  EXPECT_EQ(&list.pop_front(), &a);
  EXPECT_EQ(&list.pop_front(), &b);
  EXPECT_EQ(&list.pop_front(), &c);
  EXPECT_TRUE(list.empty());
}

TEST(IntrusiveList, UnlinksFromAnywhereWithoutTheList) {
  item a(1), b(2), c(3);
  intrusive_list<item> list;
  for (item* one : {&a, &b, &c}) list.push_back(*one);
  EXPECT_TRUE(b.linked());
  b.unlink();
  EXPECT_FALSE(b.linked());
  EXPECT_EQ(numbers_in(list), (std::vector{1, 3}));
  a.unlink();
  c.unlink();
  EXPECT_TRUE(list.empty());
}

TEST(IntrusiveList, AnElementCanBeLinkedAgainAndChangeLists) {
  item a(1);
  intrusive_list<item> first;
  intrusive_list<item> second;
  first.push_back(a);
  first.pop_front();
  second.push_back(a);
  EXPECT_TRUE(first.empty());
  EXPECT_EQ(second.size(), 1U);
  a.unlink();
  first.push_front(a);
  EXPECT_TRUE(second.empty());
  a.unlink();
}

TEST(IntrusiveList, AVisitorMayUnlinkTheElement) {
  std::vector<std::unique_ptr<item>> items;
  intrusive_list<item> list;
  for (int n = 0; n < 10; ++n) {
    items.push_back(std::make_unique<item>(n));
    list.push_back(*items.back());
  }
  list.for_each([](item& one) {
    if (one.number % 2 == 0) one.unlink();
  });
  EXPECT_EQ(numbers_in(list), (std::vector{1, 3, 5, 7, 9}));
  while (!list.empty()) list.pop_front();
}

TEST(IntrusiveList, AVisitorMayStopTheVisit) {
  item a(1), b(2), c(3);
  intrusive_list<item> list;
  for (item* one : {&a, &b, &c}) list.push_back(*one);
  std::vector<int> seen;
  list.for_each_while([&](const item& one) {
    seen.push_back(one.number);
    return seen.size() < 2;
  });
  EXPECT_EQ(seen, (std::vector{1, 2}));
  seen.clear();
  list.for_each_while([&](const item& one) {
    seen.push_back(one.number);
    return true;
  });
  EXPECT_EQ(seen, (std::vector{1, 2, 3}));
  for (item* one : {&a, &b, &c}) one->unlink();
}

TEST(IntrusiveListStress, AgreesWithADeque) {
  const std::uint64_t seed = sluice::testing::seed(sluice::testing::test_name(), 8080);
  constexpr int steps = 100'000;
  sluice::random random(seed);
  std::vector<item> items(50);
  for (std::size_t n = 0; n < items.size(); ++n) items[n].number = static_cast<int>(n);
  intrusive_list<item> list;
  std::deque<int> model;
  for (int step = 0; step < steps; ++step) {
    item& one = items[random.below(50)];
    if (one.linked()) {
      if (random.below(3) == 0) {
        ASSERT_EQ(list.pop_front().number, model.front());
        model.pop_front();
      } else {
        one.unlink();
        model.erase(std::ranges::find(model, one.number));
      }
    } else if (random.below(2) == 0) {
      list.push_back(one);
      model.push_back(one.number);
    } else {
      list.push_front(one);
      model.push_front(one.number);
    }
    ASSERT_EQ(list.empty(), model.empty());
    if (step % 100 == 0) {
      ASSERT_EQ(numbers_in(list), std::vector<int>(model.begin(), model.end()));
    }
  }
  while (!list.empty()) list.pop_front();
  std::printf("%d steps, seed %llu\n", steps, static_cast<unsigned long long>(seed));
}

TEST(IntrusiveListDeathTest, LinkingTwiceIsABrokenContract) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        item a;
        intrusive_list<item> list;
        list.push_back(a);
        list.push_front(a);
      },
      "expected an element that is in no list");
  EXPECT_DEATH(
      {
        item a;
        intrusive_list<item> list;
        intrusive_list<item> other;
        list.push_back(a);
        other.push_back(a);
      },
      "expected an element that is in no list");
}

TEST(IntrusiveListDeathTest, UnlinkingAnUnlinkedElementIsABrokenContract) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        item a;
        a.unlink();
      },
      "expected to be in a list when it is unlinked");
}

TEST(IntrusiveListDeathTest, PoppingFromAnEmptyListIsABrokenContract) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        intrusive_list<item> list;
        list.pop_front();
      },
      "expected an element to pop");
}

TEST(IntrusiveListDeathTest, DestroyingALinkedElementIsABrokenContract) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        intrusive_list<item> list;
        item a;
        list.push_back(a);
      },
      "expected to be unlinked before destruction");
}

TEST(IntrusiveListDeathTest, DestroyingANonEmptyListIsABrokenContract) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        item a;
        intrusive_list<item> list;
        list.push_back(a);
      },
      "sluice::intrusive_list: expected to be empty at its destruction");
}

}  // namespace
}  // namespace intrusive_list_test
