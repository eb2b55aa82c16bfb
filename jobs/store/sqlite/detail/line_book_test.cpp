#include "jobs/store/sqlite/detail/line_book.hpp"

#include <gtest/gtest.h>

#include <map>

#include "sluice/sync/testing/stress.hpp"

namespace sluice::jobs::detail::line_book_test {
namespace {

TEST(line_book, AnEmptyLineIsRemoved) {
  line_book book(10);
  EXPECT_EQ(book.find(7), nullptr);
  book.set(7, {1, 2});
  ASSERT_NE(book.find(7), nullptr);
  EXPECT_EQ(book.find(7)->waiting, 2U);
  EXPECT_EQ(book.size(), 1U);
  book.set(7, {0, 0});
  EXPECT_EQ(book.find(7), nullptr);
  EXPECT_EQ(book.size(), 0U);
}

TEST(line_book, IsFullAtItsLimit) {
  line_book book(2);
  book.set(0, {1, 0});
  EXPECT_FALSE(book.is_full());
  book.set(-1, {1, 0});
  EXPECT_TRUE(book.is_full());
  book.set(0, {2, 0});
  EXPECT_EQ(book.find(0)->active, 2U) << "an existing line can still be changed";
}

TEST(line_book, AgreesWithAMapAlsoAfterUndo) {
  sluice::testing::stress run;
  auto random = run.generator(1);
  line_book book(100'000);
  std::map<line_number, line_counts> model;
  std::map<line_number, line_counts> kept;
  for (int n = 0; n < 200'000; ++n) {
    run.did(1);
    // Few different low bits cause collisions. The book grows for a while, then shrinks.
    const bool grows = n / 50'000 % 2 == 0;
    const auto line = static_cast<line_number>(random.below(64)) |
                      static_cast<line_number>(random.below(90)) << 32;
    const line_counts now{random.below(grows ? 5 : 2) == 0 ? 0U : random.below(grows ? 3 : 2),
                          random.below(grows ? 2 : 1)};
    book.set(line, now);
    model[line] = now;
    if (now.active == 0 && now.waiting == 0) model.erase(line);
    if (random.below(50) == 0) {
      book.keep();
      kept = model;
    } else if (random.below(50) == 0) {
      book.undo();
      model = kept;
    }
    ASSERT_EQ(book.size(), model.size());
    if (n % 5000 != 0) continue;
    for (const auto& [each, counts] : model) {
      ASSERT_NE(book.find(each), nullptr);
      ASSERT_EQ(book.find(each)->active, counts.active);
      ASSERT_EQ(book.find(each)->waiting, counts.waiting);
    }
  }
}

}  // namespace
}  // namespace sluice::jobs::detail::line_book_test
