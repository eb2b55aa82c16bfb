#include "sluice/sync/named.hpp"

#include <gtest/gtest.h>

#include <optional>

#include "sluice/sync/barrier.hpp"
#include "sluice/sync/condition.hpp"
#include "sluice/sync/event.hpp"
#include "sluice/sync/fair_mutex.hpp"
#include "sluice/sync/guarded.hpp"
#include "sluice/sync/latch.hpp"
#include "sluice/sync/mutex.hpp"
#include "sluice/sync/semaphore.hpp"
#include "sluice/sync/shared_mutex.hpp"

namespace sluice::testing {
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
  EXPECT_EQ(watch::name_of(&m), "m");
  EXPECT_EQ(watch::name_of(&f), "f");
  EXPECT_EQ(watch::name_of(&s), "s");
  EXPECT_EQ(watch::name_of(&p), "p");
  EXPECT_EQ(watch::name_of(&e), "e");
  EXPECT_EQ(watch::name_of(&l), "l");
  EXPECT_EQ(watch::name_of(&b), "b");
  EXPECT_EQ(watch::name_of(&c), "c");
}

TEST(named_test, AGuardedIsMadeWithANameAndAValue) {
  guarded<int> g(named("g"), 7);
  EXPECT_EQ(*g.lock().operator->(), 7);
}

TEST(named_test, ANameGoesWithItsObject) {
  std::optional<mutex> m;
  m.emplace(named("first"));
  const void* const at = &*m;
  EXPECT_EQ(watch::name_of(at), "first");
  m.emplace();
  ASSERT_EQ(&*m, at);
  EXPECT_EQ(watch::name_of(at), "");
}

TEST(named_test, ANewNameTakesThePlaceOfTheOld) {
  const mutex m(named("old"));
  watch::set_name(&m, "new");
  EXPECT_EQ(watch::name_of(&m), "new");
  watch::set_name(&m, "");
  EXPECT_EQ(watch::name_of(&m), "");
}

}  // namespace
}  // namespace sluice::testing
