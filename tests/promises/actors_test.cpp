// What is promised of many actors in figures: on real threads, as a program has them.

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

struct are_you_there {
  latch* answers;
};
class idler : public actor<idler, are_you_there> {
 public:
  void on(are_you_there m) { m.answers->count_down(); }
};

nanoseconds cpu_time() {
  timespec used{};
  EXPECT_EQ(::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used), 0);
  return std::chrono::seconds(used.tv_sec) + nanoseconds(used.tv_nsec);
}

void expect_all_there(const std::vector<ref<idler>>& all) {
  latch answers(static_cast<std::ptrdiff_t>(all.size()));
  for (const auto& each : all) ASSERT_TRUE(each.send(are_you_there{&answers}));
  answers.wait();
}

TEST(actors_test, AnIdleMillionCostsNoCpu) {
  work_stealing_pool pool({.threads = 2});
  actor_system system(pool);
  std::vector<ref<idler>> all;
  all.reserve(a_million);
  for (std::size_t i = 0; i < a_million; ++i) all.push_back(system.spawn<idler>());
  expect_all_there(all);

  // Threads that have just had work look for more before they sleep: that is not of the idle time.
  event nobody_sets;
  (void)nobody_sets.wait_within({deadline::after(500ms), {}});
  const nanoseconds before = cpu_time();
  (void)nobody_sets.wait_within({deadline::after(idle_for), {}});
  const nanoseconds used = cpu_time() - before;
  std::printf("[          ] CPU in 5 s with a million idle actors: %.3f ms\n",
              std::chrono::duration<double, std::milli>(used).count());
  EXPECT_LT(used, idle_cpu_max);
  expect_all_there(all);
}

}  // namespace
}  // namespace sluice::promises::actors_test
