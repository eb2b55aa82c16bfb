#include "jobs/store/count_deltas.hpp"

#include <gtest/gtest.h>

#include "jobs/store/testing/store_words.hpp"

namespace sluice::jobs::testing::count_deltas_test {
namespace {

TEST(count_deltas, SumsUpEachQueueOnce) {
  count_deltas deltas;
  for (job_id id = 1; id <= 9; ++id)
    deltas.add(adding(a_job(id, id % 2 == 0 ? "mail" : "default")));
  deltas.add(dropping(a_job(1)));
  deltas.add(moving(a_job(3), job_state::dead));
  ASSERT_EQ(deltas.touched().size(), 2U);
  const auto& first = deltas.touched()[0];
  EXPECT_EQ(first.queue, 1U);
  EXPECT_EQ(first.jobs_of(job_state::ready), 3);
  EXPECT_EQ(first.jobs_of(job_state::dead), 1);
  EXPECT_EQ(first.bytes, static_cast<std::int64_t>(3 * weight_of(a_job(1).spec)));
  EXPECT_EQ(deltas.touched()[1].jobs_of(job_state::ready), 4);
  deltas.clear();
  EXPECT_TRUE(deltas.touched().empty());
}

TEST(count_deltas, IgnoresOtherChanges) {
  count_deltas deltas;
  deltas.add(freeing_key(with_key(a_job(1), "k")));
  deltas.add(setting(1, "default"));
  deltas.add(saving_lease(a_job(1), {}));
  deltas.add(dropping_leases());
  EXPECT_TRUE(deltas.touched().empty());
}

TEST(count_deltas, ManyQueuesAreSeparate) {
  count_deltas deltas;
  for (queue_number q = 1000; q > 0; --q) {
    change c = adding(a_job(q));
    c.queue = q;
    deltas.add(c);
    deltas.add(c);
  }
  ASSERT_EQ(deltas.touched().size(), 1000U);
  for (const auto& d : deltas.touched()) EXPECT_EQ(d.jobs_of(job_state::ready), 2);
}

TEST(count_deltas, ApplyingThemGivesTheNewCounts) {
  queue_counts counts{.ready = 5, .bytes = 1000};
  count_deltas deltas;
  deltas.add(moving(a_job(1), job_state::done));
  apply(deltas.touched()[0], counts);
  EXPECT_EQ(counts,
            (queue_counts{.ready = 4, .done = 1, .bytes = 1000 - weight_of(a_job(1).spec)}));
}

TEST(count_deltas_death_test, RunningIsNotAStoredState) {
  job j = a_job(1);
  j.state = job_state::running;
  count_deltas deltas;
  EXPECT_DEATH(deltas.add(adding(j)), "a stored state, not running");
  queue_counts none;
  deltas.add(dropping(a_job(1)));
  EXPECT_DEATH(apply(deltas.touched()[0], none), "a count of at least zero");
}

}  // namespace
}  // namespace sluice::jobs::testing::count_deltas_test
