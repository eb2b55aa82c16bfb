#include "jobs/protocol/faktory/detail/tracked_jobs.hpp"

#include <gtest/gtest.h>

namespace sluice::jobs::faktory::tracked_jobs_test {
namespace {

constexpr unix_time now{1000};
constexpr unix_time later{2000};

// Two threads of the server serve the producer and the worker.
TEST(TrackedJobs, ALateReplyToAPushDoesNotUndoTheEndOfItsJob) {
  tracked_jobs all(10);
  all.note_start("jid", 7, now);
  all.note_end("jid", job_state::done, later);
  all.note_push("jid", 7, later);
  EXPECT_EQ(all.find("jid")->ended, job_state::done);
  EXPECT_EQ(all.find("jid")->changed_at, later);
}

TEST(TrackedJobs, AnotherPushWithTheSameJidIsAnotherJob) {
  tracked_jobs all(10);
  all.note_push("jid", 7, now);
  all.note_end("jid", job_state::done, now);
  all.note_push("jid", 8, later);
  EXPECT_EQ(all.find("jid")->id, 8U);
  EXPECT_FALSE(all.find("jid")->ended);
}

TEST(TrackedJobs, ARetriedJobHasNotEnded) {
  tracked_jobs all(10);
  all.note_push("jid", 7, now);
  all.note_end("jid", job_state::dead, now);
  all.note_start("jid", 7, later);
  EXPECT_FALSE(all.find("jid")->ended);
}

}  // namespace
}  // namespace sluice::jobs::faktory::tracked_jobs_test
