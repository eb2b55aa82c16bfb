#include <gtest/gtest.h>

#include "sluice/executor/thread_pool.hpp"
#include "sluice/executor/work_stealing_pool.hpp"

namespace sluice::pool_options_test {
namespace {

TEST(PoolOptions, NameOptionsThatAPoolRefuses) {
  EXPECT_EQ(thread_pool_options().problem(), nullptr);
  EXPECT_STREQ(thread_pool_options{.core = 0}.problem(), "at least one thread (core)");
  EXPECT_STREQ((thread_pool_options{.core = 2, .max = 1}).problem(), "max not to be below core");
  EXPECT_STREQ((thread_pool_options{.core = 2, .capacity = 0}).problem(),
               "a capacity of at least 1");
  EXPECT_EQ((thread_pool_options{.overflow = overflow::caller_runs}).problem(), nullptr);
  EXPECT_EQ(work_stealing_pool_options().problem(), nullptr);
  EXPECT_STREQ(work_stealing_pool_options{.threads = 0}.problem(), "at least one thread");
  EXPECT_STREQ(work_stealing_pool_options{.capacity = 0}.problem(), "a capacity of at least 1");
  EXPECT_STREQ(work_stealing_pool_options{.deque_capacity = 3}.problem(),
               "a power of two as deque_capacity");
}

TEST(PoolOptionsDeathTest, APoolRefusesThemInTheSameWords) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(thread_pool({.core = 2, .capacity = 0}), "a capacity of at least 1");
  EXPECT_DEATH(thread_pool({.core = 2, .max = 1}), "max not to be below core");
  EXPECT_DEATH(work_stealing_pool({.deque_capacity = 3}), "a power of two as deque_capacity");
}

}  // namespace
}  // namespace sluice::pool_options_test
