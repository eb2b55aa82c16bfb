#include "jobs/store/memory/memory_store.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <thread>

#include "jobs/store/testing/store_gates_suite.hpp"
#include "jobs/store/testing/store_suite.hpp"
#include "sluice/sync/event.hpp"

namespace sluice::jobs::testing::memory_store_test {
namespace {

struct memory_kind {
  std::unique_ptr<store> open() { return make_memory_store({.contents = contents}); }
  std::shared_ptr<memory_contents> contents = make_memory_contents();
};

INSTANTIATE_TYPED_TEST_SUITE_P(memory, store_suite, memory_kind);
INSTANTIATE_TYPED_TEST_SUITE_P(memory, store_order_suite, memory_kind);
INSTANTIATE_TYPED_TEST_SUITE_P(memory, store_random_suite, memory_kind);
INSTANTIATE_TYPED_TEST_SUITE_P(memory, store_gates_suite, memory_kind);

TEST(memory_store, StoresWithoutCommonContentsAreIndependent) {
  auto one = make_memory_store();
  auto two = make_memory_store();
  must(one->apply(a_transaction(start, setting(1, "default"), adding(a_job(1)))));
  EXPECT_TRUE(must(one->get(1)).has_value());
  EXPECT_FALSE(must(two->get(1)).has_value());
}

TEST(memory_store, ATransactionThatTheHookFailsChangesNothing) {
  bool fails = false;
  auto db = make_memory_store({.before_apply = [&](const transaction& b) -> std::optional<error> {
    if (!fails) return std::nullopt;
    return error{error_code::disk_full, "no room for " + std::to_string(b.changes.size())};
  }});
  must(db->apply(a_transaction(start, setting(1, "default"))));
  fails = true;
  const auto refused = db->apply(a_transaction(start, adding(a_job(1)), adding(a_job(2))));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, error_code::disk_full);
  EXPECT_EQ(refused.error().message, "no room for 2");
  EXPECT_FALSE(must(db->get(1)).has_value());
  EXPECT_EQ(must(db->load()).queues.at(0).counts, queue_counts{});
  fails = false;
  must(db->apply(a_transaction(start, adding(a_job(1)))));
  EXPECT_TRUE(must(db->get(1)).has_value());
}

TEST(memory_store, FlushAndFreeBytesReturnTheResultsOfTheirHooks) {
  auto db = make_memory_store({.before_flush =
                                   [] {
                                     return error{error_code::io_error, "no"};
                                   },
                               .free_bytes = [] { return 7U; }});
  EXPECT_EQ(db->flush().error().code, error_code::io_error);
  EXPECT_EQ(db->free_bytes(), 7U);
  auto plain = make_memory_store();
  EXPECT_TRUE(plain->flush());
  EXPECT_FALSE(plain->free_bytes());
}

TEST(memory_store, ReadersWorkWhileTheHookBlocksAnApply) {
  event began;
  event go_on;
  bool holds = false;
  auto db = make_memory_store({.before_apply = [&](const transaction&) -> std::optional<error> {
    if (holds) {
      began.set();
      go_on.wait();
    }
    return std::nullopt;
  }});
  must(db->apply(a_transaction(start, setting(1, "default"), adding(a_job(1)))));
  auto reader = db->reader();
  holds = true;
  std::thread applying([&] { must(db->apply(a_transaction(start, dropping(a_job(1))))); });
  began.wait();
  EXPECT_TRUE(must(reader->get(1)).has_value());
  go_on.set();
  applying.join();
  EXPECT_FALSE(must(reader->get(1)).has_value());
}

TEST(memory_store_death_test, AChangeOfAMissingJobIsABrokenContract) {
  auto db = make_memory_store();
  must(db->apply(a_transaction(start, setting(1, "default"), adding(a_job(1)))));
  EXPECT_DEATH((void)db->apply(a_transaction(start, dropping(a_job(2)))), "a job that is there");
  job other = a_job(1);
  other.state = job_state::dead;
  EXPECT_DEATH((void)db->apply(a_transaction(start, dropping(other))), "a job that is there");
  EXPECT_DEATH((void)db->apply(a_transaction(start, adding(a_job(3, "mail")))),
               "a queue that was set");
  EXPECT_DEATH((void)db->apply(a_transaction(start, adding(a_job(1)))),
               "an id that was never used");
}

}  // namespace
}  // namespace sluice::jobs::testing::memory_store_test
