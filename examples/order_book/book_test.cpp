#include "examples/order_book/book.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <tuple>
#include <vector>

#include "sluice/base/random.hpp"

namespace order_book::book_test {
namespace {

using fills = std::vector<fill>;

TEST(book_test, AnUnmatchedOrderWaits) {
  book b;
  EXPECT_TRUE(b.place({1, side::buy, 99, 10}).empty());
  EXPECT_TRUE(b.place({2, side::sell, 101, 5}).empty());
  EXPECT_EQ(b.best(side::buy), 99);
  EXPECT_EQ(b.best(side::sell), 101);
}

TEST(book_test, TheBestPriceComesFirstThenTheEarliestOrder) {
  book b;
  (void)b.place({1, side::sell, 101, 5});
  (void)b.place({2, side::sell, 100, 5});
  (void)b.place({3, side::sell, 100, 5});
  EXPECT_EQ(b.place({4, side::buy, 101, 12}),
            (fills{{2, 4, 100, 5}, {3, 4, 100, 5}, {1, 4, 101, 2}}));
  EXPECT_EQ(b.open(side::sell), 3);
}

TEST(book_test, TheRestOfAPartialFillKeepsItsPlace) {
  book b;
  (void)b.place({1, side::buy, 100, 10});
  (void)b.place({2, side::buy, 100, 10});
  EXPECT_EQ(b.place({3, side::sell, 100, 4}), (fills{{1, 3, 100, 4}}));
  EXPECT_EQ(b.place({4, side::sell, 90, 8}), (fills{{1, 4, 100, 6}, {2, 4, 100, 2}}));
}

TEST(book_test, ACancelledOrderIsNotTraded) {
  book b;
  (void)b.place({1, side::buy, 100, 10});
  (void)b.place({2, side::sell, 100, 4});
  const auto was = b.cancel(1);
  ASSERT_TRUE(was);
  EXPECT_EQ(was->open, 6);
  EXPECT_FALSE(b.cancel(1));
  EXPECT_FALSE(b.cancel(2)) << "it was traded";
  EXPECT_TRUE(b.place({3, side::sell, 1, 1}).empty());
  EXPECT_EQ(b.best(side::buy), std::nullopt);
}

// The same rules, in the slowest and simplest form.
class plain_book {
 public:
  fills place(order o) {
    fills made;
    while (o.open > 0) {
      const auto best = std::ranges::min_element(
          all_, [&](const order& a, const order& b) { return rank(a, o) < rank(b, o); });
      if (best == all_.end() || !meets(*best, o)) break;
      const quantity amount = std::min(best->open, o.open);
      made.push_back({best->id, o.id, best->limit, amount});
      o.open -= amount;
      best->open -= amount;
      if (best->open == 0) all_.erase(best);
    }
    if (o.open > 0) all_.push_back(o);
    return made;
  }
  quantity cancel(order_id id) {
    const auto found = std::ranges::find(all_, id, &order::id);
    if (found == all_.end()) return 0;
    const quantity open = found->open;
    all_.erase(found);
    return open;
  }

 private:
  static bool meets(const order& waiting, const order& o) {
    if (waiting.order_side == o.order_side) return false;
    return o.order_side == side::buy ? waiting.limit <= o.limit : waiting.limit >= o.limit;
  }
  // Smallest first: the other side before the own side, then by price, then by arrival.
  static std::tuple<bool, price, order_id> rank(const order& waiting, const order& o) {
    return {waiting.order_side == o.order_side,
            o.order_side == side::buy ? waiting.limit : -waiting.limit, waiting.id};
  }

  std::vector<order> all_;
};

TEST(book_test, TradesAsAPlainOneDoes) {
  const std::uint64_t seed = 7;
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  sluice::random dice(seed);
  book fast;
  plain_book plain;
  std::size_t trades = 0;
  for (order_id id = 1; id <= 20'000; ++id) {
    if (dice.below(4) == 0) {
      const order_id which = 1 + dice.below(static_cast<std::uint32_t>(id));
      const auto was = fast.cancel(which);
      ASSERT_EQ(was ? was->open : 0, plain.cancel(which)) << id;
      continue;
    }
    const order o{id, dice.below(2) == 0 ? side::buy : side::sell,
                  100 + static_cast<price>(dice.below(20)),
                  1 + static_cast<quantity>(dice.below(50))};
    const fills made = fast.place(o);
    ASSERT_EQ(made, plain.place(o)) << id;
    trades += made.size();
  }
  EXPECT_GT(trades, 1'000U);
}

}  // namespace
}  // namespace order_book::book_test
