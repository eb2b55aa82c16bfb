#include "sluice/base/this_thread.hpp"

#include <gtest/gtest.h>
#include <pthread.h>

#include <algorithm>
#include <array>
#include <string>
#include <thread>

#include "sluice/base/seam.hpp"

namespace sluice::seam::this_thread_test {
namespace {

using namespace std::chrono_literals;

std::string os_name() {
  std::array<char, 16> name{};
  pthread_getname_np(pthread_self(), name.data(), name.size());
  return name.data();
}

TEST(this_thread, HasItsGivenName) {
  std::jthread([] {
    name_thread("mails-1");
    EXPECT_EQ(os_name(), "mails-1");
    name_thread("123456789012345");
    EXPECT_EQ(os_name(), "123456789012345");
    name_thread("1234567890123456");
    EXPECT_EQ(os_name(), "123456789012345") << "a longer name is truncated";
    name_thread("");
    EXPECT_EQ(os_name(), "");
  }).join();
}

TEST(this_thread, UsableProcessorsAreSortedAndThereIsAtLeastOne) {
  const auto cpus = usable_cpus();
  ASSERT_FALSE(cpus.empty());
  EXPECT_TRUE(std::is_sorted(cpus.begin(), cpus.end()));
  EXPECT_EQ(std::adjacent_find(cpus.begin(), cpus.end()), cpus.end());
}

TEST(this_thread, CanBeBoundToAProcessorAndReleasedAgain) {
  const auto all = usable_cpus();
  std::jthread([&] {
    for (const unsigned cpu : all) {
      EXPECT_TRUE(pin_thread({&cpu, 1}));
      EXPECT_EQ(usable_cpus(), std::vector<unsigned>{cpu});
    }
    EXPECT_TRUE(pin_thread(all));
    EXPECT_EQ(usable_cpus(), all);
  }).join();
  EXPECT_EQ(usable_cpus(), all) << "other threads are not bound";
}

TEST(this_thread, CannotBeBoundToMissingProcessors) {
  std::jthread([] {
    const auto before = usable_cpus();
    for (const unsigned cpu : {8000U, 8192U, ~0U}) EXPECT_FALSE(pin_thread({&cpu, 1}));
    EXPECT_FALSE(pin_thread({}));
    EXPECT_EQ(usable_cpus(), before);
  }).join();
}

TEST(this_thread, ComputingIsTimeOnAProcessor) {
  const auto before = this_thread_times();
  auto after = before;
  while (after.computing < before.computing + 5ms) after = this_thread_times();
  EXPECT_GE(after.wall - before.wall, 5ms - 1ms);
}

TEST(this_thread, WaitingIsNeitherComputingNorRunnable) {
  const auto before = this_thread_times();
  parker& own = this_parker();
  const auto until = now() + 30ms;
  while (own.park_until(until)) {
  }
  const auto after = this_thread_times();
  EXPECT_GE(after.wall - before.wall, 30ms);
  EXPECT_LT(after.computing - before.computing, 15ms);
}

TEST(this_thread, TimesOfAThreadOnlyGrow) {
  auto last = this_thread_times();
  for (int i = 0; i < 1000; ++i) {
    const auto next = this_thread_times();
    EXPECT_GE(next.wall, last.wall);
    EXPECT_GE(next.computing, last.computing);
    EXPECT_GE(next.runnable, last.runnable);
    last = next;
  }
}

}  // namespace
}  // namespace sluice::seam::this_thread_test
