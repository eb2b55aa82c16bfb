#include "sluice/actor/memory_actor_store.hpp"

#include "sluice/actor/testing/actor_store_suite.hpp"

namespace sluice::memory_actor_store_test {
namespace {

struct in_memory {
  std::unique_ptr<actor_store> open() { return std::make_unique<memory_actor_store>(); }
  static constexpr bool keeps = false;
};
}  // namespace
}  // namespace sluice::memory_actor_store_test

namespace sluice::testing {
using memory_actor_store_test::in_memory;
INSTANTIATE_TYPED_TEST_SUITE_P(memory, actor_store_suite, in_memory);
}  // namespace sluice::testing

namespace sluice::memory_actor_store_test {
namespace {

TEST(memory_actor_store_test, HoldsCallsUntilRelease) {
  memory_actor_store store;
  store.hold();
  auto saved = store.save("t", "k", "1");
  auto loaded = store.load("t", "k");
  EXPECT_EQ(store.held(), 2U);
  EXPECT_FALSE(saved.is_ready());
  store.release();
  EXPECT_TRUE(saved.is_ready());
  EXPECT_EQ(loaded.get(), "1");
}

TEST(memory_actor_store_test, FailsCallsAfterFailWith) {
  memory_actor_store store;
  store.fail_with(std::make_exception_ptr(actor_store_error("no")));
  EXPECT_THROW(store.save("t", "k", "1").get(), actor_store_error);
  EXPECT_THROW((void)store.load("t", "k").get(), actor_store_error);
  store.fail_with(nullptr);
  EXPECT_EQ(store.load("t", "k").get(), std::nullopt);
}

}  // namespace
}  // namespace sluice::memory_actor_store_test
