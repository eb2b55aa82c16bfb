// The engine's memory is bounded in bytes too, and one invalid change fails only its caller.
#include <gtest/gtest.h>

#include <algorithm>

#include "jobs/engine/testing/engine_words.hpp"

namespace sluice::jobs::testing::engine_bounds_test {
namespace {

class EngineBounds : public engine_words {
 protected:
  void hold_commits() {
    (void)e();
    settle();
    drive.block();
    first_ = begin_push({.queue = "other"});
    drive.await_blocked();
  }
  void unblock() {
    drive.unblock();
    EXPECT_TRUE(first_.get());
  }
  static payload bytes(std::size_t count) { return {std::string(count, 'x'), content_type::bytes}; }
  static bool says(const error& e, std::string_view part) {
    return e.message.find(part) != std::string::npos;
  }
  // From now on a transaction that moves or drops this job does not match the disk.
  void lose_row(job_id id) {
    drive.fails_when([id](const transaction& b) -> std::optional<error> {
      const auto is_it = [&](const change& c) {
        return c.id == id && (c.type == change::op::move || c.type == change::op::drop);
      };
      if (!std::ranges::any_of(b.changes, is_it)) return std::nullopt;
      return error{error_code::corrupt, "not there", id};
    });
  }

  future<result<push_receipt>> first_;
};

// Evictions from full queues.

TEST_F(EngineBounds, ManyEvictionsNeedFewReads) {
  for (const overflow policy : {overflow::drop_oldest, overflow::latest}) {
    const std::string queue(to_string(policy));
    configure({.capacity_jobs = 20'000, .when_full = policy}, queue);
    const std::vector<job_spec> some(10'000, job_spec{.queue = queue, .kind = "k"});
    (void)e().push_many(some).get();
    (void)e().push_many(some).get();
    ASSERT_EQ(counts(queue).ready, 20'000U);
    const auto [calls_before, looks_before] = drive.victim_calls_and_looks();
    for (const auto& r : e().push_many(some).get()) ASSERT_TRUE(r);
    const auto [calls, looks] = drive.victim_calls_and_looks();
    EXPECT_LE(calls - calls_before, 30U);
    EXPECT_LE(looks - looks_before, 30'000U);
    EXPECT_EQ(counts(queue).ready, 20'000U);
  }
  EXPECT_EQ(e().stats().dropped, 20'000U);
}

TEST_F(EngineBounds, OtherCallsAreServedBetweenRoundsOfEvictions) {
  configure({.capacity_jobs = 5000, .when_full = overflow::drop_oldest});
  const std::vector<job_spec> some(5000, job_spec{.kind = "k"});
  (void)e().push_many(some).get();
  const auto before = drive.adds().size();
  (void)e().push_many(some).get();
  const auto adds = drive.adds();
  EXPECT_GE(adds.size() - before, 5U);
  EXPECT_LE(*std::max_element(adds.begin() + static_cast<std::ptrdiff_t>(before), adds.end()),
            1000U);
}

TEST_F(EngineBounds, EvictingPushesCountAsStaged) {
  options.staged_bytes_max = 1000;
  configure({.capacity_jobs = 2, .when_full = overflow::drop_oldest});
  push_some(2);
  hold_commits();
  std::vector<future<result<push_receipt>>> pushed;
  for (int i = 0; i < 20; ++i) pushed.push_back(begin_push({.args = bytes(300)}));
  EXPECT_GE(e().stats().waiting_pushes, 16U);
  EXPECT_EQ(code_of(try_push({.args = bytes(300)}, at_once())), error_code::overloaded);
  unblock();
  for (auto& f : pushed) EXPECT_TRUE(f.get());
  EXPECT_EQ(counts().ready, 2U);
  EXPECT_EQ(e().stats().dropped, 20U);
  EXPECT_EQ(e().stats().waiting_pushes, 0U);
}

// Waiting calls.

TEST_F(EngineBounds, WaitingPushesAreBoundedInBytes) {
  options.waiting_bytes_max = 10'000;
  configure({.capacity_jobs = 1, .when_full = overflow::block});
  push();
  std::vector<future<result<push_receipt>>> waits;
  for (int i = 0; i < 9; ++i) waits.push_back(begin_push({.args = bytes(1000)}));
  const auto refused = try_push({.args = bytes(1000)});
  EXPECT_EQ(code_of(refused), error_code::overloaded);
  EXPECT_TRUE(says(refused.error(), "of 10000 bytes (waiting_bytes_max)"))
      << refused.error().message;
  const std::vector<job_spec> two(2, job_spec{.kind = "k", .args = bytes(800)});
  configure({.capacity_jobs = 2});
  push({.queue = "other"});
  EXPECT_EQ(code_of(e().push_many(two, bulk::all_or_nothing).get()[0]), error_code::overloaded);
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(ack(take()));
  for (auto& f : waits) EXPECT_TRUE(f.get());
  configure({.capacity_jobs = 1});
  auto again = begin_push({.args = bytes(9000)});
  settle();
  EXPECT_EQ(e().stats().waiting_pushes + counts().ready, 1U) << "ended waits return their bytes";
  drain();
  EXPECT_TRUE(again.get());
}

TEST_F(EngineBounds, APushLargerThanTheLimitWaitsAlone) {
  options.waiting_bytes_max = 100;
  configure({.capacity_jobs = 1, .when_full = overflow::block});
  push();
  auto waits = begin_push({.args = bytes(1000)});
  EXPECT_EQ(code_of(try_push({})), error_code::overloaded);
  EXPECT_EQ(code_of(e().lease({.queues = {"empty"}}).get()), error_code::overloaded);
  drain();
  EXPECT_TRUE(waits.get());
}

// Reports of workers.

TEST_F(EngineBounds, StagedResultsAndFailuresAreBoundedInBytes) {
  options.staged_bytes_max = 5000;
  push_some(12);
  const auto taken = lease(12);
  hold_commits();
  std::vector<future<void_result>> acked;
  for (std::size_t i = 0; i < 5; ++i) acked.push_back(e().ack(taken[i].ref(), bytes(1000)));
  const auto refused = e().ack(taken[5].ref(), bytes(1000)).get();
  EXPECT_EQ(code_of(refused), error_code::overloaded);
  EXPECT_TRUE(says(refused.error(), "5000 of 5000 bytes")) << refused.error().message;
  EXPECT_EQ(code_of(fail(taken[6], {.message = "it"})), error_code::overloaded);
  auto plain = e().ack(taken[7].ref());
  unblock();
  for (auto& f : acked) EXPECT_TRUE(f.get());
  EXPECT_TRUE(plain.get()) << "an ack without a result is always accepted";
  EXPECT_TRUE(ack(taken[5], bytes(1000))) << "the lease was still valid";
  EXPECT_TRUE(fail(taken[6], {.message = "it"}));
  drive.fails(error_code::io_error);
  EXPECT_EQ(code_of(ack(taken[8], bytes(4000))), error_code::io_error);
  EXPECT_EQ(code_of(fail(taken[9], {.message = std::string(4000, 'x')})), error_code::io_error);
  drive.works();
  EXPECT_TRUE(ack(taken[8], bytes(4000)));
}

// A change that does not match the store.

TEST_F(EngineBounds, AJobMissingInTheStoreFailsOnlyItsWorker) {
  const ids all = push_some(3);
  const auto taken = lease(3);
  auto waits = e().wait(all[1]);
  settle();
  hold_commits();
  auto before = e().ack(taken[0].ref());
  auto lost = e().ack(taken[1].ref());
  auto after = e().fail(taken[2].ref(), {});
  auto pushed = begin_push({});
  lose_row(all[1]);
  unblock();
  EXPECT_TRUE(before.get());
  EXPECT_EQ(code_of(lost.get()), error_code::corrupt);
  EXPECT_TRUE(after.get());
  EXPECT_TRUE(pushed.get());
  EXPECT_EQ(code_of(waits.get()), error_code::corrupt);
  EXPECT_TRUE(e().health().takes_pushes);
  EXPECT_EQ(counts().running, 0U);
  EXPECT_EQ(code_of(ack(taken[1])), error_code::lease_lost);
  EXPECT_TRUE(try_push({}));
}

TEST_F(EngineBounds, ALeaseOfAMissingJobExpiresOnce) {
  const job_id id = push({.lease_for = 5s});
  (void)take();
  lose_row(id);
  advance(5s);
  EXPECT_EQ(counts().running, 0U);
  EXPECT_TRUE(e().health().takes_pushes);
  EXPECT_TRUE(try_push({}));
}

TEST_F(EngineBounds, AMissingVictimStillFreesItsCapacity) {
  configure({.capacity_jobs = 2, .when_full = overflow::drop_oldest});
  const ids all = push_some(2);
  lose_row(all[0]);
  EXPECT_TRUE(try_push({}));
  EXPECT_EQ(code_of(e().cancel(all[0]).get()), error_code::corrupt);
  EXPECT_EQ(code_of(e().remove(all[0]).get()), error_code::corrupt);
  EXPECT_TRUE(e().health().takes_pushes);
  EXPECT_EQ(take().job->id, all[1]) << "a missing job is not leased";
}

TEST_F(EngineBounds, RejectedChangesAboveTheLimitFailInLaterCommits) {
  push_some(250);
  const auto taken = lease(250);
  drive.fails_when([](const transaction& b) -> std::optional<error> {
    for (const change& c : b.changes) {
      if (c.type == change::op::drop) return error{error_code::corrupt, "not there", c.id};
    }
    return std::nullopt;
  });
  std::size_t rounds = 0;
  while (counts().running > 0 && ++rounds < 10) {
    std::vector<ack_item> items;
    for (const leased_job& l : taken) items.push_back({l.ref(), {}});
    (void)e().ack_many(std::move(items)).get();
  }
  EXPECT_LE(rounds, 3U);
}

// Waiters for an end.

TEST_F(EngineBounds, AWaiterGetsTheLastErrorOfADeadJobThatIsNotKept) {
  const job_id id = push({.retry = {.attempts_max = 1}, .keep_for = 0ms});
  const leased_job l = take();
  auto waits = e().wait(id);
  settle();
  EXPECT_TRUE(fail(l, {.type = "oops", .message = "no paper"}));
  const auto ended = waits.get();
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->state, job_state::dead);
  ASSERT_EQ(ended->errors.size(), 1U);
  EXPECT_EQ(ended->errors[0].message, "no paper");
  EXPECT_FALSE(has(id));
}

TEST_F(EngineBounds, AWaiterGetsArgsThatAreOnDisk) {
  options.window_bytes_max = 1000;
  const job_id id = push({.args = bytes(5000)});
  const leased_job l = take();
  auto waits = e().wait(id);
  settle();
  EXPECT_TRUE(ack(l));
  const auto ended = waits.get();
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->spec.args.data.size(), 5000U);
}

// Stopping.

TEST_F(EngineBounds, ConcurrentStopsAllReturn) {
  push();
  std::vector<seam::thread> stoppers;
  for (int i = 0; i < 4; ++i) stoppers.emplace_back([this] { e().stop(); });
  for (seam::thread& t : stoppers) t.join();
  EXPECT_EQ(code_of(try_push({})), error_code::shutting_down);
  engine_.reset();
}

}  // namespace
}  // namespace sluice::jobs::testing::engine_bounds_test
