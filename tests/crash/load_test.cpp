// Tests of the load itself, without failures: it makes every kind of call, and the verdict is ok.

#include "tests/crash/load.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <memory>
#include <stop_token>

#include "jobs/engine/engine.hpp"
#include "jobs/store/memory/memory_store.hpp"
#include "tests/crash/engine_client.hpp"

namespace sluice::crash::load_test {
namespace {

TEST(load_test, KeepsAServerBusyInEveryWayAndDrainsIt) {
  auto opened = jobs::engine::open(jobs::make_memory_store());
  ASSERT_TRUE(opened);
  auto& engine = **opened;
  ledger book;
  std::stop_source enough;
  const auto connect_to = [&] {
    return std::make_unique<engine_client>(engine, [] { return false; });
  };
  {
    const seam::thread watcher([&] {
      const auto all_pushed = [&] { return book.judge().attempted >= 3000; };
      while (!all_pushed() || engine_client(engine, {}).unfinished() != 0) seam::yield();
      enough.request_stop();
    });
    const load all_that_ends{
        .seed = 1, .pushes_max = 1000, .held_percent = 0, .called_off_percent = 0};
    EXPECT_EQ(keep_busy(book, connect_to, all_that_ends, enough.get_token()), 0);
  }
  ASSERT_TRUE(drain(book, *connect_to()));
  const auto found = book.judge();
  std::printf("[          ] %s\n", found.to_string().c_str());
  EXPECT_TRUE(found.ok());
  EXPECT_GT(found.done, 0U);
  EXPECT_GT(found.failed, 0U);
  EXPECT_GT(found.dead, 0U);
  EXPECT_EQ(found.redelivered, 0U);
  EXPECT_EQ(found.unanswered, 0U);
  EXPECT_EQ(found.done + found.dead, found.acknowledged);
  EXPECT_GT(found.results, 0U);
  EXPECT_GT(engine.stats().duplicates, 0U);
}

TEST(load_test, LeasesExpireAndJobsAreCancelledDeletedAndRetried) {
  auto opened = jobs::engine::open(jobs::make_memory_store());
  ASSERT_TRUE(opened);
  auto& engine = **opened;
  ledger book;
  const auto connect_to = [&] {
    return std::make_unique<engine_client>(engine, [] { return false; });
  };
  for (std::uint64_t seed = 1; seed <= 2; ++seed) {
    std::stop_source enough;
    const seam::thread watcher([&] {
      while (book.judge().expired < 20 * seed || book.judge().dead < 5) seam::yield();
      enough.request_stop();
    });
    const load everything{.seed = seed, .held_percent = 5};
    EXPECT_EQ(keep_busy(book, connect_to, everything, enough.get_token()), 0);
  }
  ASSERT_TRUE(drain(book, *connect_to()));
  const auto found = book.judge();
  std::printf("[          ] %s\n", found.to_string().c_str());
  EXPECT_TRUE(found.ok());
  EXPECT_GT(found.extended, 0U);
  EXPECT_GT(found.called_off, 0U);
  EXPECT_GT(found.retried, 0U);
  EXPECT_EQ(found.redelivered, 0U);
}

}  // namespace
}  // namespace sluice::crash::load_test
