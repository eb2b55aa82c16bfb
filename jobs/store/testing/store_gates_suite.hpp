#pragma once

// The conformance suite for waiting jobs: keys, dependencies, batches.
//
//   INSTANTIATE_TYPED_TEST_SUITE_P(memory, store_gates_suite, memory_kind);
//
// Every step is checked twice: the effects that the store returned, as text ("2 held", "3 ready",
// "4 skipped", "9 done"), and, after the store was reopened, that its counts match its jobs.

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "jobs/store/testing/store_words.hpp"

namespace sluice::jobs::testing {

using words = std::vector<std::string>;

inline std::string in_words(const effect& e) {
  std::string text = std::to_string(e.id);
  switch (e.type) {
    case effect::kind::held:
      text += " " + std::string(to_string(e.new_state));
      if (e.blockers > 0) text += " for " + std::to_string(e.blockers);
      break;
    case effect::kind::released:
      text += " " + std::string(to_string(e.new_state));
      break;
    case effect::kind::skipped:
      text += " skipped";
      break;
    case effect::kind::batch_ended:
      text += " " + std::string(to_string(e.batch->state()));
      break;
  }
  return text;
}

inline words in_words(const std::vector<effect>& effects) {
  words text;
  for (const effect& e : effects) text.push_back(in_words(e));
  return text;
}

template <class Kind>
class store_gates_suite : public store_words<Kind> {
 protected:
  static job keyed(job_id id, std::string key = "k", std::string queue = "default") {
    job j = a_job(id, std::move(queue));
    j.spec.key = std::move(key);
    return j;
  }
  static job after(job_id id, std::vector<dependency> on) {
    job j = a_job(id);
    j.spec.after = std::move(on);
    return j;
  }
  static job after(job_id id, job_id on, after_when when = after_when::success) {
    return after(id, std::vector<dependency>{{on, "", when}});
  }
  static job of(job_id batch, job j) {
    j.spec.batch = batch;
    return j;
  }
  static job at(unix_time when, job j) {
    j.state = job_state::scheduled;
    j.due_at = when;
    j.spec.run_at = when;
    return j;
  }

  // Applies these changes and returns the effects as text.
  template <class... Changes>
  words does(Changes... changes) {
    last = must(this->db->apply(a_transaction(this->now, std::move(changes)...)));
    counts_are_right();
    return in_words(last.effects);
  }
  change moved_to(job_id id, job_state state, change::moved fields = {}) {
    const job j = this->get(id);
    if (fields.due_at == unix_time{} && has_ended(state))
      fields.due_at = this->now + milliseconds(9000);
    return moving(j, state, std::move(fields));
  }
  change done(job_id id) { return moved_to(id, job_state::done); }
  change dead(job_id id) { return moved_to(id, job_state::dead); }
  change cancelled(job_id id) { return moved_to(id, job_state::cancelled); }
  change ready_again(job_id id) { return moved_to(id, job_state::ready, {.turn = 1000 + id}); }
  change gone(job_id id, job_state as = job_state::cancelled) {
    return dropping(this->get(id), as);
  }

  job_state state(job_id id) { return this->get(id).state; }
  std::vector<conflict::reason> reasons() const {
    std::vector<conflict::reason> all;
    for (const conflict& c : last.conflicts) all.push_back(c.cause);
    return all;
  }
  batch_info batch_of(job_id id) {
    auto found = must(this->db->get_batch(id));
    EXPECT_TRUE(found.has_value()) << "no batch " << id;
    return found.value_or(batch_info{});
  }
  // total, pending, failed
  std::vector<std::uint64_t> numbers(job_id id) {
    const batch_info b = batch_of(id);
    return {b.total, b.pending, b.failed};
  }

  void counts_are_right() {
    std::map<std::string, queue_counts> expected{{"default", {}}, {"mail", {}}};
    const auto all = this->reopen();
    for (const job& j : must(this->db->list({}, 0, 1000)).jobs) {
      ++expected[j.spec.queue].of(j.state);
      if (!has_ended(j.state)) expected[j.spec.queue].bytes += weight_of(j.spec);
    }
    for (const auto& q : all.queues) EXPECT_EQ(q.counts, expected[q.name]) << q.name;
  }

  applied last;
};

using numbers_of_batch = std::vector<std::uint64_t>;
using reason = conflict::reason;

TYPED_TEST_SUITE_P(store_gates_suite);

// ---- keys

TYPED_TEST_P(store_gates_suite, JobsOfAKeyAreReadyOneAtATimeInOrder) {
  EXPECT_EQ(this->does(adding(this->keyed(1)), adding(this->keyed(2)), adding(a_job(3)),
                       adding(this->keyed(4)), adding(this->keyed(5, "other")),
                       adding(this->keyed(6, "k", "mail"))),
            (words{"2 held", "4 held"}));
  EXPECT_EQ(this->last.effects[0].cause, 1U);
  EXPECT_EQ(this->last.effects[0].queue, 1U);
  EXPECT_EQ(this->last.effects[0].weight, weight_of(this->keyed(2).spec));
  EXPECT_EQ(this->last.effects[1].cause, 3U);
  EXPECT_EQ(this->ready(), (ids{1, 3, 5})) << "other keys and jobs without a key are not blocked";
  EXPECT_EQ(this->ready(2), ids{6}) << "a key belongs to one queue";
  EXPECT_EQ(this->state(2), job_state::held);
  EXPECT_EQ(this->counts().held, 2U);

  EXPECT_EQ(this->does(this->done(3), this->done(1)), (words{"2 ready"}));
  EXPECT_EQ(this->last.effects[0].cause, 1U);
  ASSERT_NE(this->last.effects[0].job, nullptr);
  EXPECT_EQ(*this->last.effects[0].job, this->get(2)) << "its new value";
  EXPECT_EQ(this->does(this->gone(2, job_state::done)), (words{"4 ready"}));
  EXPECT_EQ(this->does(this->done(4)), words{});
  EXPECT_EQ(this->does(adding(this->keyed(7))), words{}) << "the key is free again";
  EXPECT_EQ(this->state(7), job_state::ready);
}

TYPED_TEST_P(store_gates_suite, KeyConcurrencyLimitsTheReadyJobsOfAKey) {
  EXPECT_EQ(this->does(setting(1, "default", {.key_concurrency = 2}), adding(this->keyed(1)),
                       adding(this->keyed(2)), adding(this->keyed(3)), adding(this->keyed(4))),
            (words{"3 held", "4 held"}))
      << "within the same transaction";
  EXPECT_EQ(this->does(this->done(2)), (words{"3 ready"}));
  EXPECT_EQ(this->does(this->done(1), this->done(3)), (words{"4 ready"}));
  EXPECT_EQ(this->does(adding(this->keyed(5)), adding(this->keyed(6))), (words{"6 held"}));
}

TYPED_TEST_P(store_gates_suite, MoreSlotsAreFilledInOrderWhenOneLeaves) {
  this->does(adding(this->keyed(1)), adding(this->keyed(2)), adding(this->keyed(3)),
             adding(this->keyed(4)));
  EXPECT_EQ(this->does(setting(1, "default", {.key_concurrency = 3}), adding(this->keyed(5))),
            (words{"5 held"}))
      << "it does not overtake waiting jobs";
  EXPECT_EQ(this->does(this->done(1)), (words{"2 ready", "3 ready", "4 ready"}));
  EXPECT_EQ(this->does(setting(1, "default"), this->done(2)), words{}) << "two are over the bound";
  EXPECT_EQ(this->does(this->done(3)), words{});
  EXPECT_EQ(this->does(this->done(4)), (words{"5 ready"}));
}

TYPED_TEST_P(store_gates_suite, ARetryKeepsThePlaceOfItsKey) {
  this->does(adding(this->keyed(1)), adding(this->keyed(2)));
  const unix_time later = start + milliseconds(50);
  EXPECT_EQ(this->does(this->moved_to(1, job_state::retrying, {.due_at = later, .attempts = 1})),
            words{});
  EXPECT_EQ(this->state(2), job_state::held);
  EXPECT_EQ(this->does(this->moved_to(1, job_state::ready, {.turn = 90})), words{});
  EXPECT_EQ(this->ready(), ids{1});
  EXPECT_EQ(this->does(this->dead(1)), (words{"2 ready"}));
  EXPECT_EQ(this->does(this->ready_again(1)), (words{"1 held"})) << "revived, it waits";
  EXPECT_EQ(this->does(this->done(2)), (words{"1 ready"}));
}

TYPED_TEST_P(store_gates_suite, AReleasedJobWithADelayKeepsItsPlace) {
  this->does(adding(this->keyed(1)), adding(this->keyed(2)));
  const unix_time later = start + milliseconds(50);
  EXPECT_EQ(this->does(this->moved_to(1, job_state::scheduled, {.due_at = later})), words{});
  EXPECT_TRUE(this->get(1).has_place);
  EXPECT_EQ(this->does(this->moved_to(1, job_state::ready)), words{});
  EXPECT_FALSE(this->get(1).has_place);
  EXPECT_EQ(this->ready(), ids{1});
  this->does(this->moved_to(1, job_state::scheduled, {.due_at = later}));
  EXPECT_EQ(this->does(this->cancelled(1)), (words{"2 ready"})) << "also if it is cancelled then";
  EXPECT_FALSE(this->get(1).has_place);
}

TYPED_TEST_P(store_gates_suite, AScheduledJobJoinsItsLineWhenItIsDue) {
  const unix_time later = start + milliseconds(50);
  EXPECT_EQ(this->does(adding(this->at(later, this->keyed(1))), adding(this->keyed(2)),
                       adding(this->keyed(3))),
            (words{"3 held"}));
  EXPECT_EQ(this->state(1), job_state::scheduled);
  EXPECT_EQ(this->does(this->moved_to(1, job_state::ready, {.turn = 4})), (words{"1 held"}));
  EXPECT_EQ(this->get(1).due_at, unix_time{});
  EXPECT_EQ(this->does(this->done(2)), (words{"3 ready"})) << "3 was there before";
  EXPECT_EQ(this->does(this->done(3)), (words{"1 ready"}));
  this->does(adding(this->at(later, this->keyed(5))));
  EXPECT_EQ(this->does(this->gone(5)), words{}) << "it had no place to leave";
  EXPECT_EQ(this->does(this->done(1)), words{});
}

TYPED_TEST_P(store_gates_suite, AJobCancelledWhileWaitingLeavesTheLine) {
  this->does(adding(this->keyed(1)), adding(this->keyed(2)), adding(this->keyed(3)),
             adding(this->keyed(4)), adding(this->keyed(5)));
  EXPECT_EQ(this->does(this->cancelled(2)), words{});
  EXPECT_EQ(this->does(this->gone(3)), words{});
  EXPECT_EQ(this->does(this->gone(1)), (words{"4 ready"})) << "the head, deleted";
  EXPECT_EQ(this->does(this->cancelled(4)), (words{"5 ready"})) << "the head, cancelled";
  EXPECT_EQ(this->does(this->ready_again(2)), (words{"2 held"}));
  EXPECT_EQ(this->does(this->done(5)), (words{"2 ready"}));
}

TYPED_TEST_P(store_gates_suite, PriorityIsIgnoredWithinAKey) {
  job urgent = this->keyed(3);
  urgent.spec.priority = 100;
  this->does(adding(this->keyed(1)), adding(this->keyed(2)), adding(urgent));
  EXPECT_EQ(this->does(this->done(1)), (words{"2 ready"}));
  EXPECT_EQ(this->does(this->done(2)), (words{"3 ready"}));
}

TYPED_TEST_P(store_gates_suite, AWholeLifeOfAKeyFitsIntoOneTransaction) {
  const job one = this->keyed(1);
  job dead = one;
  dead.state = job_state::dead;
  EXPECT_EQ(
      this->does(adding(one), adding(this->keyed(2)), moving(one, job_state::dead),
                 adding(this->keyed(3)), dropping(dead), adding(this->keyed(4, "free")),
                 dropping(this->keyed(4, "free"), job_state::done), adding(this->keyed(5, "free"))),
      (words{"2 held", "2 ready", "3 held"}));
  EXPECT_EQ(this->ready(), (ids{2, 5}));
  EXPECT_EQ(this->does(this->done(2)), (words{"3 ready"}));
}

TYPED_TEST_P(store_gates_suite, ManyKeysAreAddedAndRemovedInBulk) {
  for (int round = 0; round < 3; ++round) {
    transaction adds;
    transaction drops;
    adds.now = drops.now = start;
    for (job_id id = 1; id <= 200; ++id) {
      const job j = this->keyed(id, "key" + std::to_string(id % 150));
      adds.changes.push_back(adding(j));
      if (id <= 150) drops.changes.push_back(dropping(j, job_state::done));
    }
    EXPECT_EQ(must(this->db->apply(adds)).effects.size(), 50U);
    this->counts_are_right();
    EXPECT_EQ(must(this->db->apply(drops)).effects.size(), 50U);
    EXPECT_EQ(this->ready().size(), 50U);
    transaction rest;
    rest.now = start;
    for (job_id id = 151; id <= 200; ++id) rest.changes.push_back(this->gone(id));
    EXPECT_TRUE(must(this->db->apply(rest)).effects.empty());
    this->counts_are_right();
  }
}

// ---- dependencies

TYPED_TEST_P(store_gates_suite, AJobIsHeldUntilItsDependencyIsDone) {
  EXPECT_EQ(this->does(adding(a_job(1)), adding(a_job(2)),
                       adding(this->after(3, std::vector<dependency>{{1, "", {}}, {2, "", {}}})),
                       adding(this->after(4, 3))),
            (words{"3 held for 2", "4 held for 1"}));
  EXPECT_EQ(this->get(3).blockers, 2U);
  EXPECT_EQ(this->does(this->done(1)), words{});
  EXPECT_EQ(this->get(3).blockers, 1U);
  EXPECT_EQ(this->does(this->gone(2, job_state::done)), (words{"3 ready"}));
  EXPECT_EQ(this->get(3).blockers, 0U);
  EXPECT_EQ(this->does(this->done(3)), (words{"4 ready"}));
}

TYPED_TEST_P(store_gates_suite, AnEndedDependencyDoesNotBlock) {
  this->does(adding(a_job(1)), adding(a_job(2)));
  this->does(this->done(1), this->dead(2));
  EXPECT_EQ(this->does(adding(this->after(3, 1)), adding(this->after(4, 2, after_when::end)),
                       adding(this->after(5, 2, after_when::failure)), adding(this->after(6, 77)),
                       adding(this->after(7, 78, after_when::end)), adding(this->after(8, 2))),
            (words{"8 held for 1"}))
      << "unknown and deleted jobs count as done";
  EXPECT_EQ(this->ready(), (ids{3, 4, 5, 6, 7}));
}

TYPED_TEST_P(store_gates_suite, AnAddThatCouldNeverRunIsRejected) {
  this->does(adding(a_job(1)));
  this->does(this->done(1));
  this->does(adding(this->after(2, 1, after_when::failure)),
             adding(this->after(3, 1000, after_when::failure)), adding(a_job(4)));
  EXPECT_EQ(this->reasons(), (std::vector{reason::skipped, reason::skipped}));
  EXPECT_FALSE(this->has(2));
  EXPECT_FALSE(this->has(3)) << "an id that is not yet assigned does not exist either";
  this->does(adding(a_job(5), 1), adding(this->after(6, 1, after_when::failure), 1));
  EXPECT_EQ(this->reasons(), (std::vector{reason::other_of_group, reason::skipped}));
  EXPECT_EQ(this->ready(), ids{4});
}

TYPED_TEST_P(store_gates_suite, EachConditionIsMetByItsOwnEnd) {
  const auto three = [&](job_id first) {
    this->does(adding(a_job(first)), adding(this->after(first + 1, first, after_when::success)),
               adding(this->after(first + 2, first, after_when::end)),
               adding(this->after(first + 3, first, after_when::failure)));
  };
  three(10);
  EXPECT_EQ(this->does(this->done(10)), (words{"11 ready", "12 ready", "13 skipped"}));
  EXPECT_FALSE(this->has(13));
  three(20);
  EXPECT_EQ(this->does(this->dead(20)), (words{"22 ready", "23 ready"}));
  three(30);
  EXPECT_EQ(this->does(this->cancelled(30)), (words{"32 ready", "33 ready"}));
  three(40);
  EXPECT_EQ(this->does(this->gone(40)), (words{"42 ready", "43 ready", "41 skipped"}));
  three(50);
  EXPECT_EQ(this->does(this->gone(50, job_state::done)),
            (words{"51 ready", "52 ready", "53 skipped"}));
  three(60);
  EXPECT_EQ(this->does(this->gone(60, job_state::ready)),
            (words{"62 ready", "63 ready", "61 skipped"}))
      << "without an effect it was cancelled";
}

TYPED_TEST_P(store_gates_suite, AFailedStepBlocksItsDependentsUntilItIsDone) {
  this->does(adding(a_job(1)), adding(this->after(2, 1)), adding(a_job(3)),
             adding(this->after(4, 3)));
  EXPECT_EQ(this->does(this->dead(1)), words{});
  EXPECT_EQ(this->state(2), job_state::held);
  EXPECT_EQ(this->does(this->done(3)), (words{"4 ready"})) << "other jobs are not blocked";
  EXPECT_EQ(this->does(this->ready_again(1)), words{});
  EXPECT_EQ(this->does(this->done(1)), (words{"2 ready"}));
}

TYPED_TEST_P(store_gates_suite, AChainIsSkippedWhenItsDependencyCannotBeMet) {
  this->does(adding(a_job(1)), adding(this->after(2, 1)), adding(this->after(3, 2)),
             adding(this->after(4, 3, after_when::end)), adding(this->after(5, 4)),
             adding(with_key(this->after(6, 3), "once")));
  this->does(this->dead(1));
  EXPECT_EQ(this->does(this->gone(1)), (words{"2 skipped", "3 skipped", "4 ready", "6 skipped"}));
  EXPECT_EQ(this->last.effects[0].job->spec.after.size(), 1U);
  EXPECT_EQ(this->last.effects[0].from, job_state::held);
  EXPECT_EQ(this->state(5), job_state::held);
  EXPECT_TRUE(this->apply(adding(with_key(a_job(7), "once"))).empty()) << "its unique key is free";
  EXPECT_EQ(this->does(this->done(4)), (words{"5 ready"}));
}

TYPED_TEST_P(store_gates_suite, ADiamondIsSkippedOnce) {
  this->does(adding(a_job(1)), adding(this->after(2, 1)), adding(this->after(3, 1)),
             adding(this->after(4, std::vector<dependency>{{2, "", {}}, {3, "", {}}})));
  EXPECT_EQ(this->does(this->gone(1)), (words{"2 skipped", "3 skipped", "4 skipped"}));
  EXPECT_EQ(this->counts(), queue_counts{});
}

TYPED_TEST_P(store_gates_suite, ADiamondIsReleasedOnce) {
  this->does(adding(a_job(1)), adding(this->after(2, 1)), adding(this->after(3, 1)),
             adding(this->after(4, std::vector<dependency>{{2, "", {}}, {3, "", {}}})));
  EXPECT_EQ(this->does(this->done(1)), (words{"2 ready", "3 ready"}));
  EXPECT_EQ(this->does(this->done(3), this->done(2)), (words{"4 ready"}));
}

TYPED_TEST_P(store_gates_suite, ARepeatedDependencyCountsOnce) {
  this->does(adding(a_job(1)),
             adding(this->after(
                 2, std::vector<dependency>{{1, "", {}}, {1, "", {}}, {1, "", after_when::end}})));
  EXPECT_EQ(this->get(2).blockers, 2U);
  EXPECT_EQ(this->does(this->done(1)), (words{"2 ready"}));
}

TYPED_TEST_P(store_gates_suite, ALongChainIsFollowedToItsEnd) {
  transaction b;
  b.now = start;
  b.changes.push_back(adding(a_job(1)));
  for (job_id id = 2; id <= 900; ++id) b.changes.push_back(adding(this->after(id, id - 1)));
  must(this->db->apply(b));
  EXPECT_EQ(this->does(this->gone(1)).size(), 899U);
  EXPECT_EQ(this->counts(), queue_counts{});
}

TYPED_TEST_P(store_gates_suite, AReleasedJobIsScheduledIfItsTimeIsInTheFuture) {
  const unix_time later = start + milliseconds(50);
  EXPECT_EQ(this->does(adding(a_job(1)), adding(this->at(later, this->after(2, 1)))),
            (words{"2 held for 1"}));
  EXPECT_EQ(this->get(2).due_at, unix_time{});
  EXPECT_EQ(this->does(this->done(1)), (words{"2 scheduled"}));
  EXPECT_EQ(this->last.effects[0].due_at, later);
  EXPECT_EQ(this->get(2).due_at, later);

  this->does(adding(a_job(3)), adding(this->at(later, this->after(4, 3))));
  this->now = later;
  EXPECT_EQ(this->does(this->done(3)), (words{"4 ready"}));
}

TYPED_TEST_P(store_gates_suite, AReleasedJobJoinsTheLineOfItsKey) {
  job waits = this->after(3, 1);
  waits.spec.key = "k";
  this->does(adding(a_job(1)), adding(this->keyed(2)), adding(waits), adding(this->keyed(4)));
  EXPECT_EQ(this->does(this->done(1)), words{}) << "still held, now for its key";
  EXPECT_EQ(this->get(3).blockers, 0U);
  EXPECT_EQ(this->does(this->done(2)), (words{"3 ready"})) << "its turn is before that of 4";
  EXPECT_EQ(this->does(this->done(3)), (words{"4 ready"}));
}

TYPED_TEST_P(store_gates_suite, AJobCancelledWhileHeldIsHeldAgainWhenRevived) {
  this->does(adding(a_job(1)), adding(this->after(2, 1)), adding(a_job(3)),
             adding(this->after(4, 3)), adding(a_job(5)), adding(this->after(6, 5)));
  this->does(this->cancelled(2), this->cancelled(4), this->cancelled(6));
  EXPECT_EQ(this->does(this->ready_again(2)), (words{"2 held for 1"}));
  EXPECT_EQ(this->does(this->done(1)), (words{"2 ready"}));

  EXPECT_EQ(this->does(this->done(3)), words{}) << "a cancelled job is not released";
  EXPECT_EQ(this->get(4).blockers, 0U);
  EXPECT_EQ(this->does(this->ready_again(4)), words{});
  EXPECT_EQ(this->state(4), job_state::ready);

  EXPECT_EQ(this->does(this->gone(5)), words{}) << "nor skipped";
  EXPECT_EQ(this->does(this->ready_again(6)), words{}) << "nor blocked by a deleted dependency";
  EXPECT_EQ(this->state(6), job_state::ready);
}

TYPED_TEST_P(store_gates_suite, AJobDeletedWhileHeldIsRemovedFromItsDependencies) {
  this->does(adding(a_job(1)), adding(this->after(2, 1)), adding(this->after(3, 2)));
  EXPECT_EQ(this->does(this->gone(2)), (words{"3 skipped"}));
  EXPECT_EQ(this->does(this->done(1)), words{});
}

// ---- batches

TYPED_TEST_P(store_gates_suite, ABatchCountsItsJobsAndEndsWithTheLast) {
  EXPECT_EQ(this->does(adding_batch(10, 1), adding(this->of(10, a_job(11)), 1),
                       adding(this->of(10, a_job(12)), 1), closing_batch(10)),
            words{});
  EXPECT_EQ(this->numbers(10), (numbers_of_batch{2, 2, 0}));
  EXPECT_EQ(this->batch_of(10).name, "batch 10");
  EXPECT_FALSE(this->batch_of(10).open);
  EXPECT_EQ(this->does(this->done(11)), words{});
  this->now = start + milliseconds(5);
  EXPECT_EQ(this->does(this->gone(12, job_state::done)), (words{"10 done"}));
  EXPECT_EQ(this->numbers(10), (numbers_of_batch{2, 0, 0}));
  EXPECT_EQ(this->batch_of(10).ended_at, this->now);
  EXPECT_EQ(this->batch_of(10).due_at, this->now + milliseconds(1000));
  EXPECT_EQ(*this->last.effects[0].batch, this->batch_of(10));
}

TYPED_TEST_P(store_gates_suite, CallbacksOfABatchAreReleasedOnceEach) {
  this->does(adding_batch(10, 1), adding(this->of(10, a_job(11)), 1),
             adding(this->of(10, a_job(12)), 1), adding(this->of(10, a_job(13)), 1),
             adding(this->after(14, 10, after_when::success), 1),
             adding(this->after(15, 10, after_when::end), 1),
             adding(this->after(16, 10, after_when::failure), 1), closing_batch(10));
  EXPECT_EQ(this->does(this->dead(11)), (words{"16 ready"})) << "at the first failure";
  EXPECT_EQ(this->does(this->cancelled(12)), words{}) << "and only then";
  EXPECT_EQ(this->does(this->done(13)), (words{"10 failed", "15 ready"}));
  EXPECT_EQ(this->batch_of(10).due_at, this->now + milliseconds(5000));
  EXPECT_EQ(this->state(14), job_state::held);

  EXPECT_EQ(this->does(this->ready_again(11), this->ready_again(12)), words{});
  EXPECT_EQ(this->numbers(10), (numbers_of_batch{3, 2, 0}));
  EXPECT_EQ(this->batch_of(10).due_at, unix_time{}) << "it is unfinished again";
  EXPECT_EQ(this->does(this->done(11)), words{});
  EXPECT_EQ(this->does(this->done(12)), (words{"10 done", "14 ready"}));
}

TYPED_TEST_P(store_gates_suite, ASuccessSkipsTheCallbackOfFailure) {
  this->does(adding_batch(10, 1), adding(this->of(10, a_job(11)), 1),
             adding(this->after(12, 10, after_when::failure), 1), closing_batch(10));
  EXPECT_EQ(this->does(this->done(11)), (words{"10 done", "12 skipped"}));
}

TYPED_TEST_P(store_gates_suite, ABatchAcceptsJobsUntilItHasEnded) {
  this->does(adding_batch(10, 1), adding(this->of(10, a_job(11)), 1), closing_batch(10));
  EXPECT_EQ(this->does(adding(this->of(10, a_job(12))), this->done(11)), words{});
  EXPECT_EQ(this->numbers(10), (numbers_of_batch{2, 1, 0}));
  EXPECT_EQ(this->does(this->done(12)), (words{"10 done"}));
  this->does(adding(this->of(10, a_job(13))), adding(this->of(99, a_job(14))));
  EXPECT_EQ(this->reasons(), (std::vector{reason::batch_ended, reason::no_such_batch}));
  EXPECT_FALSE(this->has(13));
}

TYPED_TEST_P(store_gates_suite, AnOpenBatchEndsWhenItIsClosed) {
  this->does(adding_batch(10), adding(this->of(10, a_job(11))));
  EXPECT_EQ(this->does(this->done(11)), words{});
  EXPECT_EQ(this->batch_of(10).state(), batch_state::open);
  EXPECT_EQ(this->does(adding(this->of(10, a_job(12)))), words{});
  EXPECT_EQ(this->does(this->dead(12)), words{});
  EXPECT_EQ(this->does(closing_batch(10)), (words{"10 failed"}));
  EXPECT_EQ(this->does(closing_batch(10)), words{}) << "once";
  EXPECT_EQ(this->does(closing_batch(77)), words{}) << "a missing batch";
}

TYPED_TEST_P(store_gates_suite, AnEmptyBatchEndsWhenItIsClosed) {
  EXPECT_EQ(this->does(adding_batch(10, 1), adding(this->after(11, 10), 1), closing_batch(10)),
            (words{"11 held for 1", "10 done", "11 ready"}));
}

TYPED_TEST_P(store_gates_suite, ABatchWaitsForABatchThroughItsCallback) {
  this->does(adding_batch(10), adding_batch(20), adding(this->of(10, a_job(11))),
             adding(this->of(20, this->after(12, 10))), adding(this->after(13, 20)),
             closing_batch(10), closing_batch(20));
  EXPECT_EQ(this->does(this->done(11)), (words{"10 done", "12 ready"}));
  EXPECT_EQ(this->does(this->done(12)), (words{"20 done", "13 ready"}));
}

TYPED_TEST_P(store_gates_suite, SkippedJobsLeaveTheirBatchWithoutFailingIt) {
  this->does(adding_batch(10, 1), adding(this->of(10, a_job(11)), 1),
             adding(this->of(10, this->after(12, 11, after_when::failure)), 1), closing_batch(10));
  EXPECT_EQ(this->does(this->done(11)), (words{"12 skipped", "10 done"}));
  EXPECT_EQ(this->numbers(10), (numbers_of_batch{2, 0, 0}));
}

TYPED_TEST_P(store_gates_suite, AGroupWithABatchIsAddedCompletelyOrNotAtAll) {
  this->does(adding(with_key(a_job(1), "taken")));
  EXPECT_EQ(this->does(adding_batch(10, 1), adding(this->of(10, a_job(11)), 1),
                       adding(this->of(10, with_key(a_job(12), "taken")), 1),
                       adding(this->after(13, 10), 1), closing_batch(10)),
            words{});
  EXPECT_EQ(this->reasons(), (std::vector{reason::other_of_group, reason::other_of_group,
                                          reason::duplicate, reason::other_of_group}));
  EXPECT_EQ(this->last.conflicts[2].holder, 1U);
  EXPECT_FALSE(must(this->db->get_batch(10)));
  EXPECT_EQ(this->ready(), ids{1});
}

TYPED_TEST_P(store_gates_suite, ADroppedBatchSkipsJobsThatWaitForItsSuccess) {
  this->does(adding_batch(10), adding(this->of(10, a_job(11))), adding(this->after(12, 10)),
             adding(this->after(13, 10, after_when::end)), closing_batch(10));
  this->does(this->dead(11));
  EXPECT_EQ(this->state(12), job_state::held);
  EXPECT_EQ(this->state(13), job_state::ready);
  EXPECT_EQ(this->does(dropping_batch(10)), (words{"12 skipped"}));
  EXPECT_FALSE(must(this->db->get_batch(10)));
  EXPECT_EQ(this->does(this->ready_again(11)), words{}) << "its jobs may outlive it";
  EXPECT_EQ(this->does(this->done(11)), words{});
}

TYPED_TEST_P(store_gates_suite, BatchesAreDueAfterTheirRetention) {
  this->does(adding_batch(10), adding_batch(20), closing_batch(10));
  this->now = start + milliseconds(400);
  this->does(closing_batch(20));
  const auto due = [&](int ms, std::size_t limit = 10) {
    return must(this->db->due(start + milliseconds(ms), limit));
  };
  EXPECT_EQ(due(999).batches, ids{});
  EXPECT_EQ(due(999).next, start + milliseconds(1000));
  EXPECT_EQ(due(1000).batches, ids{10});
  EXPECT_EQ(due(1000).next, start + milliseconds(1400));
  EXPECT_EQ(due(9000).batches, (ids{10, 20}));
  EXPECT_EQ(due(9000, 1).batches, ids{10});
  EXPECT_EQ(due(9000, 1).next, start + milliseconds(1400));
  EXPECT_FALSE(due(9000).next);
  job soon = a_job(30);
  soon.state = job_state::scheduled;
  soon.due_at = start + milliseconds(1100);
  this->does(adding(soon), dropping_batch(10));
  EXPECT_EQ(due(999).next, soon.due_at);
}

TYPED_TEST_P(store_gates_suite, BatchesAndTheirJobsAreListed) {
  for (job_id id = 10; id <= 50; id += 10) {
    this->does(adding_batch(id), adding(this->of(id, a_job(id + 1))),
               adding(this->of(id, a_job(id + 2))), adding(a_job(id + 3)));
  }
  this->does(this->dead(21));
  ids seen;
  std::optional<job_id> after = 0;
  for (int pages = 0; after && pages < 9; ++pages) {
    const batch_page page = must(this->db->list_batches(*after, 2));
    EXPECT_LE(page.batches.size(), 2U);
    for (const batch_info& b : page.batches) {
      seen.push_back(b.id);
      EXPECT_EQ(b, this->batch_of(b.id));
    }
    after = page.cursor;
  }
  EXPECT_EQ(seen, (ids{10, 20, 30, 40, 50}));
  const auto of = [&](job_filter f, job_id from = 0) {
    return ids_of(must(this->db->list(f, from, 10)).jobs);
  };
  EXPECT_EQ(of({.batch = 20}), (ids{21, 22}));
  EXPECT_EQ(of({.batch = 20}, 21), ids{22});
  EXPECT_EQ(of({.state = job_state::dead, .batch = 20}), ids{21});
  EXPECT_EQ(of({.state = job_state::ready, .batch = 20}), ids{22});
  EXPECT_EQ(of({.batch = 60}), ids{});
  EXPECT_TRUE(must(this->db->list({.batch = 20}, 0, 1)).cursor);
  EXPECT_EQ(must(this->db->reader()->get_batch(30)), this->batch_of(30));
  EXPECT_EQ(must(this->db->reader()->list_batches(40, 5)).batches.size(), 1U);
}

REGISTER_TYPED_TEST_SUITE_P(
    store_gates_suite, JobsOfAKeyAreReadyOneAtATimeInOrder, KeyConcurrencyLimitsTheReadyJobsOfAKey,
    MoreSlotsAreFilledInOrderWhenOneLeaves, ARetryKeepsThePlaceOfItsKey,
    AReleasedJobWithADelayKeepsItsPlace, AScheduledJobJoinsItsLineWhenItIsDue,
    AJobCancelledWhileWaitingLeavesTheLine, PriorityIsIgnoredWithinAKey,
    AWholeLifeOfAKeyFitsIntoOneTransaction, ManyKeysAreAddedAndRemovedInBulk,
    AJobIsHeldUntilItsDependencyIsDone, AnEndedDependencyDoesNotBlock,
    AnAddThatCouldNeverRunIsRejected, EachConditionIsMetByItsOwnEnd,
    AFailedStepBlocksItsDependentsUntilItIsDone, AChainIsSkippedWhenItsDependencyCannotBeMet,
    ADiamondIsSkippedOnce, ADiamondIsReleasedOnce, ARepeatedDependencyCountsOnce,
    ALongChainIsFollowedToItsEnd, AReleasedJobIsScheduledIfItsTimeIsInTheFuture,
    AReleasedJobJoinsTheLineOfItsKey, AJobCancelledWhileHeldIsHeldAgainWhenRevived,
    AJobDeletedWhileHeldIsRemovedFromItsDependencies, ABatchCountsItsJobsAndEndsWithTheLast,
    CallbacksOfABatchAreReleasedOnceEach, ASuccessSkipsTheCallbackOfFailure,
    ABatchAcceptsJobsUntilItHasEnded, AnOpenBatchEndsWhenItIsClosed, AnEmptyBatchEndsWhenItIsClosed,
    ABatchWaitsForABatchThroughItsCallback, SkippedJobsLeaveTheirBatchWithoutFailingIt,
    AGroupWithABatchIsAddedCompletelyOrNotAtAll, ADroppedBatchSkipsJobsThatWaitForItsSuccess,
    BatchesAreDueAfterTheirRetention, BatchesAndTheirJobsAreListed);

}  // namespace sluice::jobs::testing
