#include "jobs/model/queue.hpp"

#include <gtest/gtest.h>

#include "jobs/model/requests.hpp"

namespace sluice::jobs::queue_test {
namespace {

using namespace std::chrono_literals;

std::string message_of(const queue_options& o) {
  const auto valid = validate(o);
  if (valid) return "";
  EXPECT_EQ(valid.error().code, error_code::invalid);
  return valid.error().message;
}

TEST(QueueOptions, AreValidByDefault) {
  EXPECT_EQ(message_of({}), "");
  EXPECT_EQ(message_of({.capacity_jobs = 1,
                        .capacity_bytes = 1,
                        .lease_for = 1ms,
                        .keep_results = 0ms,
                        .keep_dead = 0ms}),
            "");
}

TEST(QueueOptions, NameTheFieldThatIsOutOfRange) {
  EXPECT_EQ(message_of({.capacity_jobs = 0}), "capacity_jobs must be at least 1");
  EXPECT_EQ(message_of({.capacity_bytes = 0}), "capacity_bytes must be at least 1");
  EXPECT_NE(message_of({.lease_for = 0ms}), "");
  EXPECT_NE(message_of({.lease_for = 24h * 366 * 11}), "");
  EXPECT_NE(message_of({.keep_done = -1ms}), "");
  EXPECT_NE(message_of({.keep_results = -1ms}), "");
  EXPECT_NE(message_of({.keep_dead = 24h * 366 * 11}), "");
}

TEST(QueueOptions, HaveEveryPolicyExceptCallerRuns) {
  for (const overflow policy : {overflow::block, overflow::reject, overflow::drop_newest,
                                overflow::drop_oldest, overflow::latest}) {
    EXPECT_EQ(message_of({.when_full = policy}), "");
  }
  EXPECT_NE(message_of({.when_full = overflow::caller_runs}), "");
}

TEST(QueueCounts, HaveOneForEachState) {
  queue_counts counts;
  std::uint64_t n = 0;
  for (const job_state s :
       {job_state::scheduled, job_state::held, job_state::ready, job_state::running,
        job_state::retrying, job_state::done, job_state::dead, job_state::cancelled}) {
    counts.of(s) = ++n;
  }
  EXPECT_EQ(counts, (queue_counts{1, 2, 3, 4, 5, 6, 7, 8, 0}));
  EXPECT_EQ(std::as_const(counts).of(job_state::dead), 7U);
  EXPECT_EQ(counts.unfinished(), 15U);
  EXPECT_DEATH(counts.of(static_cast<job_state>(99)), "a state that exists");
}

TEST(PushReceipt, HasAWordForEveryOutcome) {
  EXPECT_EQ(to_string(push_receipt::fate::accepted), "accepted");
  EXPECT_EQ(to_string(push_receipt::fate::duplicate), "duplicate");
  EXPECT_EQ(to_string(push_receipt::fate::dropped), "dropped");
  EXPECT_EQ(to_string(static_cast<push_receipt::fate>(99)), "unknown");
}

}  // namespace
}  // namespace sluice::jobs::queue_test
