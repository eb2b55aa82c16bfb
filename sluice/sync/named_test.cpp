#include "sluice/sync/named.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sluice/sync/barrier.hpp"
#include "sluice/sync/condition.hpp"
#include "sluice/sync/event.hpp"
#include "sluice/sync/fair_mutex.hpp"
#include "sluice/sync/guarded.hpp"
#include "sluice/sync/latch.hpp"
#include "sluice/sync/mutex.hpp"
#include "sluice/sync/semaphore.hpp"
#include "sluice/sync/shared_mutex.hpp"

namespace sluice::testing::named_test {
namespace {

static_assert(sizeof(mutex) == 32 && sizeof(fair_mutex) == 32 && sizeof(semaphore) == 32 &&
              sizeof(event) == 32 && sizeof(latch) == 32 && sizeof(shared_mutex) == 48 &&
              sizeof(condition) == 48);

TEST(named_test, EveryPrimitiveTakesAName) {
  const mutex m(named("m"));
  const fair_mutex f(named("f"));
  const shared_mutex s(named("s"));
  const semaphore p(1, named("p"));
  const event e(named("e"));
  const latch l(1, named("l"));
  const barrier b(1, named("b"));
  const condition c(named("c"));
  EXPECT_EQ(wait_report::name_of(&m), "m");
  EXPECT_EQ(wait_report::name_of(&f), "f");
  EXPECT_EQ(wait_report::name_of(&s), "s");
  EXPECT_EQ(wait_report::name_of(&p), "p");
  EXPECT_EQ(wait_report::name_of(&e), "e");
  EXPECT_EQ(wait_report::name_of(&l), "l");
  EXPECT_EQ(wait_report::name_of(&b), "b");
  EXPECT_EQ(wait_report::name_of(&c), "c");
}

TEST(named_test, AGuardedTakesANameAndAValue) {
  guarded<int> g(named("g"), 7);
  EXPECT_EQ(*g.lock().operator->(), 7);
}

TEST(named_test, ANameEndsWithItsObject) {
  std::optional<mutex> m;
  m.emplace(named("first"));
  const void* const at = &*m;
  EXPECT_EQ(wait_report::name_of(at), "first");
  m.emplace();
  ASSERT_EQ(&*m, at);
  EXPECT_EQ(wait_report::name_of(at), "");
}

TEST(named_test, ASecondNameReplacesTheFirst) {
  const mutex m(named("old"));
  wait_report::set_name(&m, "new");
  EXPECT_EQ(wait_report::name_of(&m), "new");
  wait_report::set_name(&m, "");
  EXPECT_EQ(wait_report::name_of(&m), "");
}

// The destructor of an object without a name checks only this filter, not the table of names.
TEST(named_test, ManyPartiesWithNamesLeaveTheFilterOfObjectsAsItWas) {
  const auto filter = [] {
    std::vector<std::uint32_t> counts;
    for (const auto& c : wait_report::detail::name_filter) counts.push_back(c.load(relaxed));
    return counts;
  };
  const auto before = filter();
  constexpr std::uint64_t many = 10'000;
  const int executor = 0;
  for (std::uint64_t n = 1; n <= many; ++n) {
    wait_report::set_name(wait_report::party::actor(n, 3), "actor " + std::to_string(n), &executor);
  }
  EXPECT_EQ(filter(), before);
  EXPECT_EQ(wait_report::name_of(wait_report::party::actor(7, 3)), "actor 7");
  EXPECT_EQ(wait_report::name_of(wait_report::party::actor(7, 4)), "");
  EXPECT_EQ(wait_report::executor_of(wait_report::party::actor(many, 3)), &executor);
  for (std::uint64_t n = 1; n <= many; ++n) {
    wait_report::set_name(wait_report::party::actor(n, 3), {}, nullptr);
  }
  EXPECT_EQ(filter(), before);
  EXPECT_EQ(wait_report::name_of(wait_report::party::actor(7, 3)), "");
  EXPECT_EQ(wait_report::executor_of(wait_report::party::actor(7, 3)), nullptr);
}

}  // namespace
}  // namespace sluice::testing::named_test
