// The promised figures for many actors, on real threads.

#include <gtest/gtest.h>
#include <time.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <vector>

#include "sluice/actor/actor_system.hpp"
#include "sluice/executor/work_stealing_pool.hpp"
#include "sluice/sync/event.hpp"
#include "sluice/sync/latch.hpp"

namespace sluice::promises::actors_test {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

constexpr std::size_t a_million = 1'000'000;
constexpr auto idle_for = 5s;
constexpr auto idle_cpu_max = 10ms;

struct ping {
  latch* answers;
};
class idler : public actor<idler, ping> {
 public:
  void on(ping m) { m.answers->count_down(); }
};

nanoseconds cpu_time() {
  timespec used{};
  EXPECT_EQ(::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used), 0);
  return std::chrono::seconds(used.tv_sec) + nanoseconds(used.tv_nsec);
}

void expect_all_reply(const std::vector<ref<idler>>& all) {
  latch answers(static_cast<std::ptrdiff_t>(all.size()));
  for (const auto& each : all) ASSERT_TRUE(each.send(ping{&answers}));
  answers.wait();
}

TEST(actors_test, AnIdleMillionCostsNoCpu) {
  work_stealing_pool pool({.threads = 2});
  actor_system system(pool);
  std::vector<ref<idler>> all;
  all.reserve(a_million);
  for (std::size_t i = 0; i < a_million; ++i) all.push_back(system.spawn<idler>());
  expect_all_reply(all);

  // Threads search for more work before they sleep; that is not part of the idle time.
  event never_set;
  (void)never_set.wait(500ms);
  const nanoseconds before = cpu_time();
  (void)never_set.wait(idle_for);
  const nanoseconds used = cpu_time() - before;
  std::printf("[          ] CPU in 5 s with a million idle actors: %.3f ms\n",
              std::chrono::duration<double, std::milli>(used).count());
  EXPECT_LT(used, idle_cpu_max);
  expect_all_reply(all);
}

}  // namespace
}  // namespace sluice::promises::actors_test
