// Batches: counts, callbacks, growth, calls on whole batches, and all-or-nothing pushes.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "jobs/engine/testing/engine_words.hpp"

namespace sluice::jobs::testing::engine_batch_test {
namespace {

class EngineBatch : public engine_words {
 protected:
  static job_spec job_in(const std::string& queue, const std::string& kind = "k") {
    job_spec s;
    s.queue = queue;
    s.kind = kind;
    return s;
  }
  // Returns a batch of `jobs` jobs; its three callbacks have a queue of their own.
  static batch_spec with_callbacks(std::size_t jobs) {
    batch_spec b;
    b.jobs.resize(jobs);
    b.on_success = job_in("called", "success");
    b.on_end = job_in("called", "end");
    b.on_failure = job_in("called", "failure");
    return b;
  }
  // Leases all ready callbacks; returns their kinds.
  std::vector<std::string> called() {
    std::vector<std::string> found;
    for (;;) {
      auto leased = try_lease({.queues = {"called"}});
      if (!leased) break;
      found.push_back(leased->front().job->spec.kind);
      EXPECT_TRUE(ack(leased->front()));
    }
    std::ranges::sort(found);
    return found;
  }
  using kinds = std::vector<std::string>;

  std::string error_of(batch_spec spec) {
    const auto pushed = try_push_batch(std::move(spec), at_once());
    EXPECT_FALSE(pushed);
    return pushed ? "" : pushed.error().message;
  }
};

TEST_F(EngineBatch, CountsItsJobs) {
  const batch_receipt b = push_batch({.name = "n", .jobs = std::vector<job_spec>(3)});
  ASSERT_EQ(b.jobs.size(), 3U);
  batch_info now = batch_of(b.id);
  EXPECT_EQ(now.name, "n");
  EXPECT_EQ(now.total, 3U);
  EXPECT_EQ(now.pending, 3U);
  EXPECT_EQ(now.state(), batch_state::running);
  ASSERT_TRUE(ack(take()));
  ASSERT_TRUE(fail(take(), {.for_good = true}));
  now = batch_of(b.id);
  EXPECT_EQ(now.pending, 1U);
  EXPECT_EQ(now.failed, 1U);
  ASSERT_TRUE(ack(take()));
  now = batch_of(b.id);
  EXPECT_EQ(now.state(), batch_state::failed);
  EXPECT_EQ(now.ended_at, time.now());
  EXPECT_EQ(e().batches().get().value().batches.size(), 1U);
}

TEST_F(EngineBatch, SuccessCallsSuccessAndEnd) {
  const batch_receipt b = push_batch(with_callbacks(2));
  EXPECT_EQ(state(b.on_success), job_state::held);
  ASSERT_TRUE(ack(take()));
  EXPECT_EQ(called(), kinds{});
  ASSERT_TRUE(ack(take()));
  EXPECT_EQ(called(), (kinds{"end", "success"}));
  EXPECT_FALSE(has(b.on_failure));
  EXPECT_EQ(batch_of(b.id).state(), batch_state::done);
}

TEST_F(EngineBatch, TheFirstFailureCallsFailureAndTheLastEndCallsEnd) {
  const batch_receipt b = push_batch(with_callbacks(3));
  ASSERT_TRUE(fail(take(), {.for_good = true}));
  EXPECT_EQ(called(), kinds{"failure"});
  ASSERT_TRUE(fail(take(), {.for_good = true}));
  EXPECT_EQ(called(), kinds{});
  ASSERT_TRUE(ack(take()));
  EXPECT_EQ(called(), kinds{"end"});
  EXPECT_EQ(state(b.on_success), job_state::held);
}

TEST_F(EngineBatch, ARetriedJobThatIsDoneInTheEndMakesItASuccess) {
  const batch_receipt b = push_batch(with_callbacks(1));
  ASSERT_TRUE(fail(take(), {.for_good = true}));
  EXPECT_EQ(called(), (kinds{"end", "failure"}));
  ASSERT_TRUE(e().retry(b.jobs[0]).get());
  EXPECT_EQ(batch_of(b.id).state(), batch_state::running);
  EXPECT_EQ(batch_of(b.id).failed, 0U);
  ASSERT_TRUE(ack(take()));
  EXPECT_EQ(called(), kinds{"success"});
  EXPECT_EQ(batch_of(b.id).state(), batch_state::done);
}

TEST_F(EngineBatch, CallbacksRunOnceEvenIfCommitsFail) {
  for (std::size_t failing = 0; failing < 12; ++failing) {
    SCOPED_TRACE("commit " + std::to_string(failing) + " fails, and the process ends");
    contents = make_memory_contents();
    engine_.reset();
    open();
    const bool dies = failing % 2 == 0;
    const batch_receipt b = push_batch(with_callbacks(3));
    std::map<std::string, int> calls;
    std::size_t commits = 0;
    // Runs all jobs; one commit fails, and the process may end after it.
    for (int round = 0; round < 40; ++round) {
      auto leased = try_lease({.queues = {"default", "called"}});
      if (!leased) break;
      const leased_job& l = leased->front();
      const bool ends_here = commits++ == failing;
      if (ends_here) drive.fails(error_code::io_error);
      const bool is_last = l.job->id == b.jobs[2] && failing % 3 == 0;
      const bool acked = is_last ? fail(l, {.for_good = true}).has_value() : ack(l).has_value();
      EXPECT_EQ(acked, !ends_here);
      if (acked && l.job->spec.queue == "called") ++calls[l.job->spec.kind];
      if (!ends_here) continue;
      drive.works();
      if (dies) {
        crash();
      } else {
        advance(1s);
        ASSERT_TRUE(e().release(l.ref()).get());
      }
    }
    const bool is_failure = failing % 3 == 0;
    const std::map<std::string, int> expected =
        is_failure ? std::map<std::string, int>{{"end", 1}, {"failure", 1}}
                   : std::map<std::string, int>{{"end", 1}, {"success", 1}};
    EXPECT_EQ(calls, expected);
    expect_counts_add_up();
  }
}

TEST_F(EngineBatch, ACrashAfterTheLastAckLosesNoCallback) {
  push_batch(with_callbacks(1));
  ASSERT_TRUE(ack(take()));
  crash();
  EXPECT_EQ(called(), (kinds{"end", "success"}));
  crash();
  EXPECT_EQ(called(), kinds{});
}

TEST_F(EngineBatch, ItsJobsCanAddJobs) {
  const batch_receipt b = push_batch(with_callbacks(1));
  const leased_job l = take();
  const job_id more = push({.batch = b.id});
  ASSERT_TRUE(ack(l));
  EXPECT_EQ(called(), kinds{});
  EXPECT_EQ(batch_of(b.id).total, 2U);
  EXPECT_EQ(drain(), ids{more});
  EXPECT_EQ(called(), (kinds{"end", "success"}));
}

TEST_F(EngineBatch, AnOpenBatchEndsWhenItIsClosed) {
  batch_spec spec = with_callbacks(1);
  spec.open = true;
  const batch_receipt b = push_batch(spec);
  EXPECT_EQ(drain().size(), 1U);
  EXPECT_EQ(batch_of(b.id).state(), batch_state::open);
  EXPECT_EQ(called(), kinds{});
  push({.batch = b.id});
  EXPECT_EQ(drain().size(), 1U);
  const auto closed = e().close_batch(b.id).get();
  ASSERT_TRUE(closed);
  EXPECT_EQ(closed->state(), batch_state::done);
  EXPECT_EQ(called(), (kinds{"end", "success"}));
  EXPECT_EQ(code_of(e().close_batch(b.id + 1000).get()), error_code::not_found);
}

TEST_F(EngineBatch, AnEndedBatchAcceptsNoJobs) {
  const batch_receipt b = push_batch({.jobs = std::vector<job_spec>(1)});
  drain();
  const auto late = try_push({.batch = b.id});
  EXPECT_EQ(code_of(late), error_code::wrong_state);
  EXPECT_EQ(late.error().message,
            "batch " + std::to_string(b.id) + " has ended and accepts no further jobs");
  EXPECT_EQ(code_of(try_push({.batch = b.id + 5000})), error_code::not_found);
  EXPECT_EQ(code_of(try_push({.batch = b.jobs[0]})), error_code::not_found);
  const auto group =
      e().push_many({job_in("default"), {.kind = "k", .batch = b.id}}, bulk::all_or_nothing).get();
  EXPECT_FALSE(group[0]);
  EXPECT_EQ(code_of(group[1]), error_code::wrong_state);
  EXPECT_TRUE(is_empty());
}

TEST_F(EngineBatch, AnEmptyBatchEndsAtOnce) {
  const batch_receipt b = push_batch({});
  EXPECT_EQ(batch_of(b.id).state(), batch_state::done);
  const batch_receipt with = push_batch(with_callbacks(0));
  EXPECT_EQ(called(), (kinds{"end", "success"}));
  EXPECT_FALSE(has(with.on_failure));
}

TEST_F(EngineBatch, CallbacksCanBeJobsOfAnotherBatch) {
  batch_spec outer_spec = with_callbacks(0);
  outer_spec.open = true;
  const batch_receipt outer = push_batch(outer_spec);
  batch_spec inner_spec;
  inner_spec.jobs.resize(1);
  inner_spec.on_success = job_spec{.kind = "inner", .batch = outer.id};
  const batch_receipt inner = push_batch(inner_spec);
  ASSERT_TRUE(e().close_batch(outer.id).get());
  EXPECT_EQ(batch_of(outer.id).pending, 1U);
  EXPECT_EQ(batch_of(outer.id).state(), batch_state::running);
  EXPECT_EQ(drain(), (ids{inner.jobs[0], inner.on_success}));
  EXPECT_EQ(called(), (kinds{"end", "success"}));
}

TEST_F(EngineBatch, AJobCanWaitForABatch) {
  const batch_receipt b = push_batch({.jobs = std::vector<job_spec>(2)});
  const job_id after = push({.queue = "second", .after = {{b.id}}});
  EXPECT_EQ(state(after), job_state::held);
  drain();
  EXPECT_EQ(drain("second"), ids{after});
  EXPECT_EQ(state(push({.queue = "third", .after = {{b.id}}})), job_state::ready);
}

// Workflows.

TEST_F(EngineBatch, StepsRunAfterTheirDependencies) {
  batch_spec b;
  b.jobs = {{.kind = "mail", .after = {{.step = "flight"}, {.step = "hotel"}}},
            {.kind = "flight", .step = "flight"},
            {.kind = "hotel", .after = {{.step = "flight"}}, .step = "hotel"}};
  const batch_receipt pushed = push_batch(b);
  EXPECT_EQ(get(pushed.jobs[0]).spec.kind, "mail");
  EXPECT_EQ(drain(), (ids{pushed.jobs[1], pushed.jobs[2], pushed.jobs[0]}));
}

TEST_F(EngineBatch, AFailedStepBlocksOnlyItsDependents) {
  batch_spec b = with_callbacks(0);
  b.jobs = {{.kind = "a", .step = "a"},
            {.kind = "b", .after = {{.step = "a"}}, .step = "b"},
            {.kind = "c", .step = "c"},
            {.kind = "d", .after = {{.step = "c"}}}};
  const batch_receipt pushed = push_batch(b);
  ASSERT_TRUE(fail(take(), {.for_good = true}));
  EXPECT_EQ(drain(), (ids{pushed.jobs[2], pushed.jobs[3]}));
  EXPECT_EQ(batch_of(pushed.id).pending, 1U);
  EXPECT_EQ(e().retry_batch(pushed.id).get().value(), 1U);
  EXPECT_EQ(drain(), (ids{pushed.jobs[0], pushed.jobs[1]}));
  EXPECT_EQ(called(), (kinds{"end", "failure", "success"}));
}

TEST_F(EngineBatch, InvalidStepsAreRejectedByName) {
  const auto message_of = [&](std::vector<job_spec> jobs) {
    batch_spec b;
    b.jobs = std::move(jobs);
    return error_of(std::move(b));
  };
  EXPECT_EQ(message_of({{.step = "a"}, {.step = "a"}}),
            "step 'a' is defined twice: give each step its own name");
  EXPECT_EQ(message_of({{.step = "a"}, {.after = {{.step = "b"}}}}),
            "job 2: after: there is no step 'b' in this push");
  EXPECT_EQ(message_of(
                {{.after = {{.step = "b"}}, .step = "a"}, {.after = {{.step = "a"}}, .step = "b"}}),
            "the steps form a cycle: 'a' after 'b' after 'a'");
  EXPECT_TRUE(e().batches().get().value().batches.empty());
}

// All or nothing.

TEST_F(EngineBatch, ATakenUniqueKeyRejectsTheWholeBatch) {
  const job_id holder = push({.unique = {.key = "u"}});
  batch_spec b = with_callbacks(2);
  b.jobs[1].unique.key = "u";
  const auto refused = try_push_batch(b);
  EXPECT_EQ(code_of(refused), error_code::duplicate);
  EXPECT_EQ(refused.error().job, holder);
  EXPECT_TRUE(e().batches().get().value().batches.empty());
  EXPECT_EQ(drain(), ids{holder});
  EXPECT_TRUE(try_push_batch(b));
}

TEST_F(EngineBatch, AFullQueueRejectsTheWholeBatch) {
  configure({.capacity_jobs = 2});
  push();
  EXPECT_EQ(code_of(try_push_batch(with_callbacks(2))), error_code::queue_full);
  EXPECT_EQ(code_of(try_push_batch(with_callbacks(3))), error_code::too_large);
  EXPECT_EQ(drain().size(), 1U);
  EXPECT_TRUE(e().batches().get().value().batches.empty());
}

TEST_F(EngineBatch, WaitsForCapacityAsAGroup) {
  configure({.capacity_jobs = 3, .when_full = overflow::block});
  push_some(3);
  batch_spec spec = with_callbacks(2);
  for (job_spec& s : spec.jobs) name_kind(s);
  auto waits = e().push_batch(spec);
  ASSERT_TRUE(ack(take()));
  settle();
  EXPECT_FALSE(waits.is_ready());
  ASSERT_TRUE(ack(take()));
  const auto pushed = waits.get();
  ASSERT_TRUE(pushed);
  EXPECT_EQ(drain().size(), 3U);
  EXPECT_EQ(called(), (kinds{"end", "success"}));
}

TEST_F(EngineBatch, AFullDiskRejectsABatchButStoresAcksAndAnEmptyBatch) {
  push();
  const leased_job l = take();
  drive.is_full();
  drive.block();
  auto pushed = begin_push({.queue = "elsewhere"});
  drive.await_blocked();
  batch_spec spec = with_callbacks(1);
  name_kind(spec.jobs[0]);
  auto acked = e().ack(l.ref());
  drive.unblock();
  EXPECT_FALSE(pushed.get());
  EXPECT_TRUE(acked.get());
  EXPECT_FALSE(e().push_batch(spec).get());
  drive.works();
  advance(1s);
  EXPECT_TRUE(e().batches().get().value().batches.empty());
  EXPECT_TRUE(try_push_batch(spec));
}

TEST_F(EngineBatch, AnEmptyBatchIsNotConfusedWithARejectedOne) {
  settle();
  drive.block();
  auto before = begin_push({.queue = "elsewhere"});
  drive.await_blocked();
  drive.fails_when([](const transaction& b) -> std::optional<error> {
    const bool adds = std::ranges::any_of(
        b.changes, [](const change& c) { return c.type == change::op::add && c.id > 1; });
    if (adds) return error{error_code::disk_full, "made to be full"};
    return std::nullopt;
  });
  auto refused = begin_push({});
  auto empty = e().push_batch({});
  drive.unblock();
  EXPECT_TRUE(before.get());
  EXPECT_EQ(code_of(refused.get()), error_code::disk_full);
  const auto kept = empty.get();
  ASSERT_TRUE(kept);
  EXPECT_EQ(batch_of(kept->id).state(), batch_state::done);
}

// Calls on whole batches.

TEST_F(EngineBatch, CancellingItCancelsAllUnfinishedJobs) {
  batch_spec spec = with_callbacks(4);
  spec.jobs[0].step = "first";
  spec.jobs[3].after = {{.step = "first"}};
  spec.jobs[2].run_at = time.now() + 1h;
  const batch_receipt b = push_batch(spec);
  const leased_job running = take();
  ASSERT_TRUE(ack(take()));
  EXPECT_EQ(e().cancel_batch(b.id).get().value(), 3U);
  for (const std::size_t i : {0U, 2U, 3U}) EXPECT_EQ(state(b.jobs[i]), job_state::cancelled) << i;
  EXPECT_TRUE(e().extend(running.ref())->cancelled);
  EXPECT_EQ(called(), (kinds{"end", "failure"}));
  EXPECT_EQ(batch_of(b.id).state(), batch_state::failed);
  // One job is still leased by its worker and cannot be retried yet.
  EXPECT_EQ(e().retry_batch(b.id).get().value(), 2U);
  ASSERT_TRUE(ack(running));
  EXPECT_EQ(e().retry_batch(b.id).get().value(), 1U);
  EXPECT_EQ(state(b.jobs[3]), job_state::held);
  EXPECT_EQ(drain().size(), 3U);
  EXPECT_EQ(called(), kinds{"success"});
  EXPECT_EQ(code_of(e().cancel_batch(b.id + 5000).get()), error_code::not_found);
}

TEST_F(EngineBatch, CancellingItClosesIt) {
  batch_spec spec = with_callbacks(1);
  spec.open = true;
  const batch_receipt b = push_batch(spec);
  EXPECT_EQ(e().cancel_batch(b.id).get().value(), 1U);
  EXPECT_FALSE(batch_of(b.id).open);
  EXPECT_EQ(called(), (kinds{"end", "failure"}));
}

TEST_F(EngineBatch, AListFailsWithTheErrorOfItsRejectedJob) {
  const batch_receipt ended = push_batch({.jobs = std::vector<job_spec>(1)});
  drain();
  const auto late = e().push_many({{.kind = "k"}, {.kind = "k", .batch = ended.id}, {.kind = "k"}},
                                  bulk::all_or_nothing)
                        .get();
  for (const auto& r : late) EXPECT_EQ(code_of(r), error_code::wrong_state);
  EXPECT_EQ(late[0].error().message, "another job of the list was rejected; nothing was pushed");
  EXPECT_EQ(late[1].error().job, ended.id);
  const auto nowhere =
      e().push_many({{.kind = "k"}, {.kind = "k", .batch = 99}}, bulk::all_or_nothing).get();
  for (const auto& r : nowhere) EXPECT_EQ(code_of(r), error_code::not_found);
  EXPECT_TRUE(is_empty());
}

TEST_F(EngineBatch, ManyPagesAreCancelledAndRetried) {
  configure({.keep_done = 1h});
  batch_spec spec = with_callbacks(1200);
  // Chains released by any end: no job of them runs while the batch is cancelled.
  for (std::size_t i = 0; i < spec.jobs.size(); ++i) {
    spec.jobs[i].step = std::to_string(i);
    if (i % 3 != 0) {
      spec.jobs[i].after = {{.step = std::to_string(i - 1), .when = after_when::end}};
    }
  }
  const batch_receipt b = push_batch(spec);
  EXPECT_EQ(e().cancel_batch(b.id).get().value(), 1200U);
  EXPECT_TRUE(is_empty());
  EXPECT_EQ(counts().cancelled, 1200U);
  EXPECT_EQ(called(), (kinds{"end", "failure"}));
  EXPECT_EQ(e().stats().released, 2U);  // these two, even if a chain spans two pages
  EXPECT_EQ(e().retry_batch(b.id).get().value(), 1200U);
  EXPECT_EQ(drain("default", 100).size(), 1200U);
  EXPECT_EQ(called(), kinds{"success"});
  EXPECT_EQ(e().retry_batch(b.id).get().value(), 0U);
}

TEST_F(EngineBatch, ACancelAndEndsInOneCommitCountEachJobOnce) {
  const batch_receipt b = push_batch(with_callbacks(3));
  const leased_job l = take();
  in_one_commit([&] {
    auto acked = e().ack(l.ref());
    auto one = e().cancel(b.jobs[1]);
    auto all = e().cancel_batch(b.id);
    drive.unblock();
    EXPECT_TRUE(acked.get());
    EXPECT_TRUE(one.get());
    EXPECT_EQ(all.get().value(), 1U);
  });
  const batch_info now = batch_of(b.id);
  EXPECT_EQ(now.pending, 0U);
  EXPECT_EQ(now.failed, 2U);
  EXPECT_EQ(called(), (kinds{"end", "failure"}));
}

TEST_F(EngineBatch, CancellingAWholeChainInOneCommitReleasesNoJob) {
  batch_spec spec = with_callbacks(4);
  for (std::size_t i = 0; i < 4; ++i) {
    spec.jobs[i].step = std::to_string(i);
    if (i > 0) spec.jobs[i].after = {{.step = std::to_string(i - 1), .when = after_when::end}};
  }
  const batch_receipt b = push_batch(spec);
  const leased_job l = take();
  in_one_commit([&] {
    auto acked = e().ack(l.ref());  // releases the second job
    auto second = e().cancel(b.jobs[1]);
    auto rest = e().cancel_batch(b.id);
    drive.unblock();
    EXPECT_TRUE(acked.get());
    EXPECT_TRUE(second.get());
    EXPECT_EQ(rest.get().value(), 2U);
  });
  EXPECT_TRUE(is_empty());
  EXPECT_EQ(batch_of(b.id).failed, 3U);
  EXPECT_EQ(called(), (kinds{"end", "failure"}));
}

TEST_F(EngineBatch, IsDeletedAfterItsRetention) {
  batch_spec spec = with_callbacks(1);
  spec.keep_done = 10s;
  spec.keep_failed = 60s;
  const batch_receipt good = push_batch(spec);
  drain();
  const batch_receipt bad = push_batch(spec);
  ASSERT_TRUE(fail(take(), {.for_good = true}));
  advance(9s);
  EXPECT_TRUE(e().get_batch(good.id).get());
  advance(1s);
  EXPECT_EQ(code_of(e().get_batch(good.id).get()), error_code::not_found);
  EXPECT_EQ(state(bad.on_success), job_state::held);
  advance(50s);
  EXPECT_FALSE(e().get_batch(bad.id).get());
  EXPECT_FALSE(has(bad.on_success));  // its dependency can no longer be met
  EXPECT_TRUE(has(bad.jobs[0]));
  ASSERT_TRUE(e().retry(bad.jobs[0]).get());
  EXPECT_EQ(drain(), ids{bad.jobs[0]});
}

TEST_F(EngineBatch, ABatchThatCouldNotBeDeletedIsDeletedLater) {
  const batch_receipt b = push_batch({.jobs = std::vector<job_spec>(1), .keep_done = 10s});
  drain();
  drive.fails(error_code::io_error);
  advance(10s);
  EXPECT_TRUE(e().get_batch(b.id).get());
  drive.works();
  advance(2s);
  EXPECT_FALSE(e().get_batch(b.id).get());
}

TEST_F(EngineBatch, ListsItsJobs) {
  const batch_receipt b = push_batch({.jobs = std::vector<job_spec>(3)});
  push_some(2);
  ids listed;
  for (const job& j : list_all({.batch = b.id})) listed.push_back(j.id);
  EXPECT_EQ(listed, b.jobs);
}

}  // namespace
}  // namespace sluice::jobs::testing::engine_batch_test
