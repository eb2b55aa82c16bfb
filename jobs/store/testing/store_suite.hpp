#pragma once

// The first of the four conformance suites for stores. See store_words.hpp for Kind.
//
//   INSTANTIATE_TYPED_TEST_SUITE_P(memory, store_suite, memory_kind);
//   INSTANTIATE_TYPED_TEST_SUITE_P(memory, store_order_suite, memory_kind);
//   INSTANTIATE_TYPED_TEST_SUITE_P(memory, store_random_suite, memory_kind);
//   INSTANTIATE_TYPED_TEST_SUITE_P(memory, store_gates_suite, memory_kind);
//
// `store_order_suite` is about the order in which jobs are read, `store_random_suite` compares with
// a simple model; both have headers of their own, included here. `store_gates_suite` is about keys,
// dependencies and batches; include store_gates_suite.hpp for it.

#include <array>
#include <atomic>
#include <functional>
#include <set>
#include <string>
#include <thread>

#include "jobs/store/testing/store_order_suite.hpp"
#include "jobs/store/testing/store_random_suite.hpp"
#include "jobs/store/testing/store_words.hpp"

namespace sluice::jobs::testing {

template <class Kind>
class store_suite : public store_words<Kind> {};

TYPED_TEST_SUITE_P(store_suite);

// ---- adding

TYPED_TEST_P(store_suite, AStoreIsEmptyAtFirst) {
  const auto all = this->reopen();
  EXPECT_EQ(all.ids_up_to, 0U);
  EXPECT_EQ(all.queues.size(), 2U);
  EXPECT_TRUE(all.leases.empty());
  EXPECT_FALSE(this->has(1));
  EXPECT_EQ(this->ready(), ids{});
  EXPECT_EQ(this->ready(77), ids{}) << "an unknown queue has no jobs";
  const auto due = must(this->db->due(start, 10));
  EXPECT_TRUE(due.jobs.empty());
  EXPECT_FALSE(due.next);
}

TYPED_TEST_P(store_suite, AJobIsReadAsItWasAdded) {
  job all = a_job(7, "mail");
  all.state = job_state::scheduled;
  all.attempts = 3;
  all.created_at = start + milliseconds(1);
  all.due_at = start + milliseconds(5000);
  all.ended_at = start + milliseconds(9);
  all.turn = 99;
  all.spec.kind = "mail.send";
  all.spec.args = {std::string("\0\xff\x80 bytes", 9), content_type::bytes};
  all.spec.priority = -5;
  all.spec.run_at = start + milliseconds(5000);
  all.spec.retry = {.attempts_max = 7,
                    .first = milliseconds(1),
                    .factor = 1.1,
                    .longest = milliseconds(77),
                    .jitter = 1.0 / 3.0};
  all.spec.lease_for = milliseconds(11);
  all.spec.time_limit = milliseconds(12);
  all.spec.unique = {"k", unique_until::elapsed, milliseconds(13)};
  all.spec.metadata = R"({"trace":"ä"})";
  all.spec.keep_for = milliseconds(0);
  all.errors = {{1, start, "t", "m", "b"}, {2, start + milliseconds(1), "", "", ""}};
  all.result = payload{"[1,2]", content_type::json};
  all.spec.step = "second";
  all.spec.webhook = "https://example.com/ended";
  all.progress = progress{0.1, "a line"};
  this->apply(adding(all), adding(a_job(8)));
  EXPECT_EQ(this->get(7), all);
  EXPECT_EQ(this->get(8), a_job(8));
  this->reopen();
  EXPECT_EQ(this->get(7), all);
  EXPECT_EQ(this->get(8), a_job(8));
}

TYPED_TEST_P(store_suite, EachOptionAloneIsStored) {
  const std::vector<std::function<void(job&)>> options = {
      [](job& j) { j.spec.retry.attempts_max = 1; },
      [](job& j) { j.spec.retry.first = milliseconds(0); },
      [](job& j) { j.spec.retry.factor = 1e-3 + 1.0; },
      [](job& j) { j.spec.retry.longest = milliseconds(3); },
      [](job& j) { j.spec.retry.jitter = 0.1; },
      [](job& j) { j.spec.lease_for = milliseconds(1); },
      [](job& j) { j.spec.time_limit = milliseconds(1); },
      [](job& j) { j.spec.metadata = "{}"; },
      [](job& j) { j.spec.keep_for = milliseconds(1); },
      [](job& j) { j.spec.run_at = start; },
      [](job& j) { j.spec.unique.lasts = milliseconds(4); },
      [](job& j) { j.spec.unique.until = unique_until::started; },
      [](job& j) { j.spec.unique.key = "only"; },
      [](job& j) { j.spec.priority = limits::priority_max; },
      [](job& j) { j.spec.priority = -limits::priority_max; },
      [](job& j) { j.due_at = start; },
      [](job& j) {
        j.result = payload{"", content_type::bytes};
      },
      [](job& j) {
        j.result = payload{"null", content_type::json};
      },
      [](job& j) { j.attempts = 4'000'000'000U; },
      [](job& j) { j.created_at = {}; },
      [](job& j) { j.spec.step = "s\xff"; },
      [](job& j) { j.spec.webhook = "http://localhost/"; },
      [](job& j) {
        j.progress = progress{100, ""};
      },
      [](job& j) {
        j.progress = progress{0, "at the start"};
      },
      [](job& j) { j.spec.key = "serial \xff"; },
      [](job& j) {
        // These do not exist, so they count as done and the job is ready.
        j.spec.after = {{7000, "a \"step\"", after_when::end}, {7001, "\xff", after_when::success}};
      },
  };
  std::vector<job> jobs;
  for (const auto& set : options) {
    jobs.push_back(a_job(jobs.size() + 1));
    set(jobs.back());
    this->apply(adding(jobs.back()));
  }
  this->reopen();
  for (const job& j : jobs) EXPECT_EQ(this->get(j.id), j) << "option " << j.id;
}

TYPED_TEST_P(store_suite, ArbitraryBytesAreStored) {
  std::string every_byte;
  for (int c = 0; c < 256; ++c) every_byte.push_back(static_cast<char>(c));
  const std::array<std::string, 6> odd = {"",
                                          std::string(1, '\0'),
                                          std::string("a\0b", 3),
                                          "\xff\xfe\xc0\x80",
                                          every_byte,
                                          "\"\\\n\t'; DROP TABLE jobs; --"};
  job_id id = 0;
  std::vector<job> jobs;
  for (const std::string& bytes : odd) {
    for (const content_type type : {content_type::json, content_type::bytes}) {
      job j = a_job(++id);
      j.spec.args = {bytes, type};
      j.spec.kind = "k" + bytes;
      j.spec.metadata = bytes;
      j.spec.unique.key = "key" + bytes + (type == content_type::json ? "j" : "b");
      j.result = payload{bytes, type};
      j.errors = {{1, start, bytes, bytes, bytes}};
      this->apply(adding(j));
      jobs.push_back(j);
    }
  }
  this->reopen();
  for (const job& j : jobs) {
    EXPECT_EQ(this->get(j.id), j);
    const auto twice = this->apply(adding(with_key(a_job(1000 + j.id), j.spec.unique.key)));
    ASSERT_EQ(twice.size(), 1U);
    EXPECT_EQ(twice[0].holder, j.id);
  }
  const job_filter odd_kind{.kind = "k" + every_byte};
  EXPECT_EQ(ids_of(must(this->db->list(odd_kind, 0, 10)).jobs), (ids{9, 10}));
}

TYPED_TEST_P(store_suite, TheLargestArgsAndResultFit) {
  job j = a_job(1);
  j.spec.args = {std::string(limits::args_bytes_max, '\xee'), content_type::bytes};
  this->apply(adding(j));
  change::moved end{.due_at = start + milliseconds(5)};
  end.result = payload{std::string(limits::result_bytes_max, '7'), content_type::json};
  j.result = end.result;
  this->apply(moving(j, job_state::done, std::move(end)));
  j.state = job_state::done;
  j.due_at = start + milliseconds(5);
  this->reopen();
  EXPECT_EQ(this->get(1), j);
}

// ---- counts

TYPED_TEST_P(store_suite, CountsFollowEveryChange) {
  job a = a_job(1);
  job b = a_job(2);
  b.state = job_state::scheduled;
  b.due_at = start + milliseconds(10);
  const auto wa = weight_of(a.spec);
  const auto wb = weight_of(b.spec);
  this->apply(adding(a), adding(b));
  EXPECT_EQ(this->counts(), (queue_counts{.scheduled = 1, .ready = 1, .bytes = wa + wb}));

  const auto move = [this](job& j, job_state next) {
    this->apply(moving(j, next));
    j.state = next;
    return this->counts();
  };
  EXPECT_EQ(move(b, job_state::ready), (queue_counts{.ready = 2, .bytes = wa + wb}));
  EXPECT_EQ(move(b, job_state::retrying),
            (queue_counts{.ready = 1, .retrying = 1, .bytes = wa + wb}));
  EXPECT_EQ(move(b, job_state::dead), (queue_counts{.ready = 1, .dead = 1, .bytes = wa}));
  EXPECT_EQ(move(b, job_state::ready), (queue_counts{.ready = 2, .bytes = wa + wb}));
  EXPECT_EQ(move(b, job_state::cancelled), (queue_counts{.ready = 1, .cancelled = 1, .bytes = wa}));
  EXPECT_EQ(move(a, job_state::done), (queue_counts{.done = 1, .cancelled = 1}));
  this->apply(dropping(a));
  EXPECT_EQ(this->counts(), (queue_counts{.cancelled = 1}));
  this->apply(dropping(b));
  EXPECT_EQ(this->counts(), queue_counts{});
  EXPECT_EQ(this->counts(2), queue_counts{}) << "another queue is not touched";
}

TYPED_TEST_P(store_suite, CountsAreKeptForEachQueue) {
  this->apply(adding(a_job(1)), adding(a_job(2, "mail")), adding(a_job(3)), adding(a_job(4)),
              dropping(a_job(3)));
  EXPECT_EQ(this->counts(1), (queue_counts{.ready = 2, .bytes = 2 * weight_of(a_job(1).spec)}));
  EXPECT_EQ(this->counts(2), (queue_counts{.ready = 1, .bytes = weight_of(a_job(2).spec)}));
}

// ---- moving and dropping

TYPED_TEST_P(store_suite, AMoveStoresItsFieldsAndKeepsTheRest) {
  job j = a_job(1);
  j.spec.run_at = start;
  j.spec.metadata = "{}";
  this->apply(adding(j));
  this->apply(moving(j, job_state::retrying,
                     {.due_at = start + milliseconds(7),
                      .attempts = 1,
                      .error = attempt_error{1, start, "timeout", "late", "at f"}}));
  j.state = job_state::retrying;
  j.due_at = start + milliseconds(7);
  j.attempts = 1;
  j.errors.push_back({1, start, "timeout", "late", "at f"});
  EXPECT_EQ(this->get(1), j);

  this->apply(moving(j, job_state::ready, {.turn = 50, .priority = 3}));
  j.state = job_state::ready;
  j.due_at = {};
  j.turn = 50;
  j.spec.priority = 3;
  EXPECT_EQ(this->get(1), j);
  EXPECT_EQ(this->ready(), ids{1});

  this->apply(moving(j, job_state::done,
                     {.due_at = start + milliseconds(99),
                      .attempts = 2,
                      .ended_at = start + milliseconds(9),
                      .result = payload{"{}", content_type::json}}));
  j.state = job_state::done;
  j.due_at = start + milliseconds(99);
  j.attempts = 2;
  j.ended_at = start + milliseconds(9);
  j.result = payload{"{}", content_type::json};
  EXPECT_EQ(this->get(1), j);
  EXPECT_EQ(this->ready(), ids{});

  this->apply(moving(j, job_state::ready, {.attempts = 0, .ended_at = unix_time{}}));
  j.state = job_state::ready;
  j.due_at = {};
  j.attempts = 0;
  j.ended_at = {};
  EXPECT_EQ(this->get(1), j);
  this->reopen();
  EXPECT_EQ(this->get(1), j);
}

TYPED_TEST_P(store_suite, OneTransactionMayAddMoveAndDropTheSameJob) {
  job j = a_job(1);
  job dead = j;
  dead.state = job_state::dead;
  this->apply(adding(j), moving(j, job_state::dead), adding(a_job(2)), dropping(dead));
  EXPECT_FALSE(this->has(1));
  EXPECT_EQ(this->counts(), (queue_counts{.ready = 1, .bytes = weight_of(a_job(2).spec)}));
}

TYPED_TEST_P(store_suite, OnlyTheNewestErrorsAreKept) {
  job j = a_job(1);
  this->apply(adding(j));
  for (std::uint32_t n = 1; n <= limits::errors_max + 3; ++n) {
    const attempt_error e{n, start + milliseconds(n), "t", "m" + std::to_string(n), ""};
    this->apply(moving(j, job_state::ready, {.attempts = n, .error = e}));
    j.errors.push_back(e);
    j.attempts = n;
    if (j.errors.size() > limits::errors_max) j.errors.erase(j.errors.begin());
    ASSERT_EQ(this->get(1), j);
  }
  EXPECT_EQ(j.errors.size(), limits::errors_max);
  EXPECT_EQ(j.errors.front().attempt, 4U);
}

TYPED_TEST_P(store_suite, ADroppedJobIsGone) {
  this->apply(adding(a_job(1)), adding(a_job(2)));
  this->apply(dropping(a_job(1)));
  EXPECT_FALSE(this->has(1));
  EXPECT_EQ(this->ready(), ids{2});
  this->reopen();
  EXPECT_FALSE(this->has(1));
}

// ---- unique keys

TYPED_TEST_P(store_suite, ASecondJobOfAKeyIsRejectedAndTheHolderNamed) {
  this->apply(adding(with_key(a_job(1), "k")));
  const auto conflicts = this->apply(adding(a_job(2)), adding(with_key(a_job(3), "k")),
                                     adding(with_key(a_job(4), "other")));
  ASSERT_EQ(conflicts.size(), 1U);
  EXPECT_EQ(conflicts[0].index, 1U);
  EXPECT_EQ(conflicts[0].holder, 1U);
  EXPECT_FALSE(this->has(3));
  EXPECT_EQ(this->ready(), (ids{1, 2, 4}));
  EXPECT_EQ(this->counts().ready, 3U);
}

TYPED_TEST_P(store_suite, AKeyBelongsToOneQueue) {
  EXPECT_TRUE(this->apply(adding(with_key(a_job(1), "k")), adding(with_key(a_job(2, "mail"), "k")))
                  .empty());
}

TYPED_TEST_P(store_suite, AKeyIsTakenWithinATransactionInOrder) {
  const job first = with_key(a_job(1), "k");
  const auto conflicts = this->apply(adding(first), adding(with_key(a_job(2), "k")),
                                     dropping(first), adding(with_key(a_job(3), "k")));
  ASSERT_EQ(conflicts.size(), 1U);
  EXPECT_EQ(conflicts[0].index, 1U);
  EXPECT_EQ(conflicts[0].holder, 1U);
  EXPECT_EQ(this->ready(), ids{3});
}

TYPED_TEST_P(store_suite, AFreedKeyCanBeTaken) {
  for (const unique_until until : {unique_until::started, unique_until::done}) {
    const auto n = static_cast<job_id>(until) * 10;
    const std::string key = "k" + std::to_string(n);
    const job first = with_key(a_job(n + 1), key, until);
    this->apply(adding(first));
    this->apply(freeing_key(first));
    EXPECT_TRUE(this->apply(adding(with_key(a_job(n + 2), key, until))).empty());
    this->apply(freeing_key(first));
    const auto third = this->apply(adding(with_key(a_job(n + 3), key, until)));
    ASSERT_EQ(third.size(), 1U) << "only the holder frees a key";
    EXPECT_EQ(third[0].holder, n + 2);
  }
}

TYPED_TEST_P(store_suite, AMoveAndADropFreeTheKeyOfTheJob) {
  job one = with_key(a_job(1), "one");
  const job two = with_key(a_job(2), "two");
  const job three = with_key(a_job(3), "three");
  this->apply(adding(one), adding(two), adding(three));
  this->apply(moving(one, job_state::dead, {.free_key = true}), dropping(two),
              moving(three, job_state::retrying));
  EXPECT_TRUE(this->apply(adding(with_key(a_job(4), "one"))).empty());
  EXPECT_TRUE(this->apply(adding(with_key(a_job(5), "two"))).empty());
  EXPECT_EQ(this->apply(adding(with_key(a_job(6), "three"))).size(), 1U);
  one.state = job_state::dead;
  this->apply(dropping(one));
  const auto held = this->apply(adding(with_key(a_job(7), "one")));
  ASSERT_EQ(held.size(), 1U) << "a former holder does not free the key";
  EXPECT_EQ(held[0].holder, 4U);
}

TYPED_TEST_P(store_suite, AnElapsingKeyOutlivesItsJobAndEndsAtItsTime) {
  const auto lasts = milliseconds(100);
  job first = with_key(a_job(1), "k", unique_until::elapsed, lasts);
  this->apply(adding(first));
  this->apply(freeing_key(first));
  this->apply(dropping(first));
  const auto again = [&](job_id id, milliseconds after) {
    job j = with_key(a_job(id), "k", unique_until::elapsed, lasts);
    j.created_at = start + after;
    return this->apply_at(j.created_at, adding(j));
  };
  const auto early = again(2, milliseconds(99));
  ASSERT_EQ(early.size(), 1U);
  EXPECT_EQ(early[0].holder, 1U);
  this->reopen();
  EXPECT_EQ(again(3, milliseconds(99)).size(), 1U) << "it outlives the process too";
  EXPECT_TRUE(again(4, milliseconds(100)).empty());
  const auto next = again(5, milliseconds(199));
  ASSERT_EQ(next.size(), 1U) << "the new holder's time has begun";
  EXPECT_EQ(next[0].holder, 4U);
  EXPECT_TRUE(again(6, milliseconds(200)).empty());
}

TYPED_TEST_P(store_suite, AKeyOfAJobIsFreeAfterItsTime) {
  for (const unique_until until : {unique_until::started, unique_until::done}) {
    const job_id first = until == unique_until::done ? 1 : 11;
    const std::string key = "k" + std::to_string(first);
    this->apply(adding(with_key(a_job(first), key, until, milliseconds(10))));
    EXPECT_EQ(
        this->apply_at(start + milliseconds(9), adding(with_key(a_job(first + 1), key))).size(),
        1U);
    EXPECT_TRUE(
        this->apply_at(start + milliseconds(10), adding(with_key(a_job(first + 2), key))).empty());
    // The first job is no longer the holder: its end does not free the key.
    this->apply_at(start + milliseconds(11), freeing_key(this->get(first)),
                   dropping(this->get(first)));
    const auto taken =
        this->apply_at(start + milliseconds(12), adding(with_key(a_job(first + 3), key)));
    ASSERT_EQ(taken.size(), 1U);
    EXPECT_EQ(taken[0].holder, first + 2);
  }
}

TYPED_TEST_P(store_suite, AKeyOfAJobIsFreeWhenTheJobHasEndedBeforeItsTime) {
  const auto key_for = [](job_id id) {
    return with_key(a_job(id), "k", unique_until::done, milliseconds(1000));
  };
  this->apply(adding(key_for(1)));
  this->apply(freeing_key(this->get(1)));
  EXPECT_TRUE(this->apply(adding(key_for(2))).empty());
  this->apply(moving(this->get(2), job_state::dead, {.free_key = true}));
  EXPECT_TRUE(this->apply(adding(key_for(3))).empty());
  this->apply(dropping(this->get(3)));
  EXPECT_TRUE(this->apply(adding(with_key(a_job(4), "k"))).empty());
  // The remaining times of the earlier keys do not end this one.
  EXPECT_EQ(this->apply_at(start + milliseconds(5000), adding(key_for(5))).size(), 1U);
}

TYPED_TEST_P(store_suite, AnElapsedKeyCanBeTakenByEveryKindOfKey) {
  this->apply(adding(with_key(a_job(1), "k", unique_until::elapsed, milliseconds(10))));
  const job second = with_key(a_job(2), "k", unique_until::done);
  const unix_time later = start + milliseconds(10);
  EXPECT_TRUE(this->apply_at(later, adding(second)).empty());
  EXPECT_EQ(this->apply_at(later + std::chrono::hours(9), adding(with_key(a_job(3), "k"))).size(),
            1U);
  this->apply_at(later, freeing_key(second));
  EXPECT_TRUE(this->apply_at(later, adding(with_key(a_job(4), "k"))).empty());
}

TYPED_TEST_P(store_suite, KeysSurviveReopening) {
  this->apply(adding(with_key(a_job(1), "k")));
  this->reopen();
  EXPECT_EQ(this->apply(adding(with_key(a_job(2), "k"))).size(), 1U);
}

// ---- groups

TYPED_TEST_P(store_suite, AGroupIsAddedCompletelyOrNotAtAll) {
  this->apply(adding(with_key(a_job(1), "k")));
  const auto conflicts =
      this->apply(adding(a_job(2), 1), adding(with_key(a_job(3), "k"), 1), adding(a_job(4), 1),
                  adding(a_job(5), 2), adding(a_job(6), 2), adding(a_job(7)));
  ASSERT_EQ(conflicts.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(conflicts[i].index, i);
    EXPECT_EQ(conflicts[i].holder, i == 1 ? 1U : 0U);
  }
  EXPECT_EQ(this->ready(), (ids{1, 5, 6, 7}));
  EXPECT_EQ(this->counts().ready, 4U);
}

TYPED_TEST_P(store_suite, ARejectedGroupTakesNoKeys) {
  this->apply(adding(with_key(a_job(1), "k")));
  EXPECT_EQ(
      this->apply(adding(with_key(a_job(2), "free"), 9), adding(with_key(a_job(3), "k"), 9)).size(),
      2U);
  EXPECT_TRUE(this->apply(adding(with_key(a_job(4), "free"))).empty());
}

TYPED_TEST_P(store_suite, AGroupWithADuplicateKeyIsRejected) {
  const auto conflicts =
      this->apply(adding(with_key(a_job(1), "k"), 3), adding(with_key(a_job(2, "mail"), "k"), 3),
                  adding(with_key(a_job(3), "k"), 3));
  ASSERT_EQ(conflicts.size(), 3U);
  EXPECT_EQ(conflicts[0].holder, 0U);
  EXPECT_EQ(conflicts[1].holder, 0U);
  EXPECT_EQ(conflicts[2].holder, 1U);
  EXPECT_EQ(this->ready(), ids{});
  EXPECT_TRUE(this->apply(adding(with_key(a_job(4), "k"))).empty());
}

// ---- data that survives the process

TYPED_TEST_P(store_suite, IdsUpToNeverGoesBack) {
  transaction b;
  b.now = start;
  b.ids_up_to = 5000;
  must(this->db->apply(b));
  this->apply(adding(a_job(1)));  // ids_up_to is zero: unchanged
  b.ids_up_to = 10;
  must(this->db->apply(b));
  EXPECT_EQ(this->reopen().ids_up_to, 5000U);
  b.ids_up_to = (std::uint64_t{1} << 53) - 1;
  must(this->db->apply(b));
  EXPECT_EQ(this->reopen().ids_up_to, (std::uint64_t{1} << 53) - 1);
}

TYPED_TEST_P(store_suite, QueueSettingsAreStored) {
  queue_options o{
      .capacity_jobs = 1,
      .capacity_bytes = std::uint64_t{1} << 62,
      .when_full = overflow::latest,
      .paused = true,
      .lease_for = milliseconds(1),
      .keep_done = milliseconds(2),
      .keep_results = milliseconds(3),
      .keep_dead = milliseconds(4),
      .rate = 1.0 / 3.0,
      .rate_burst = 5,
      .concurrency = 6,
      .weight = 7,
      .key_concurrency = 8,
      .key_rate = 2.5,
      .key_burst = 9,
      .deliver = {
          .url = "https://example.com/work", .concurrency = 10, .timeout = milliseconds(11)}};
  this->apply(adding(a_job(1, "mail")));
  this->apply(setting(3, "a.b_c-d/e:f", o), setting(2, "mail", o), setting(10'000, "far"));
  const auto all = this->reopen();
  ASSERT_EQ(all.queues.size(), 4U);
  std::set<queue_number> seen;
  for (const auto& q : all.queues) {
    seen.insert(q.number);
    if (q.number == 3) {
      EXPECT_EQ(q.name, "a.b_c-d/e:f");
      EXPECT_EQ(q.options, o);
    } else if (q.number == 2) {
      EXPECT_EQ(q.options, o);
      EXPECT_EQ(q.counts.ready, 1U) << "setting a queue leaves its counts alone";
    } else {
      EXPECT_EQ(q.options, queue_options{});
    }
  }
  EXPECT_EQ(seen, (std::set<queue_number>{1, 2, 3, 10'000}));
}

TYPED_TEST_P(store_suite, SavedLeasesAreLoadedForJobsThatAreStillReady) {
  const auto lease = [](std::uint64_t key) {
    return change::lease_record{.key = key,
                                .worker = "worker \xff",
                                .until = start + milliseconds(60),
                                .began = start,
                                .lasts = milliseconds(7),
                                .progress = progress{12.5, "some \xff way"}};
  };
  std::vector<job> jobs;
  for (job_id id = 1; id <= 4; ++id) jobs.push_back(a_job(id, id == 4 ? "mail" : "default"));
  for (const job& j : jobs) this->apply(adding(j));
  const std::uint64_t largest = (std::uint64_t{1} << 53) - 1;
  this->apply(saving_lease(jobs[0], lease(11)), saving_lease(jobs[1], lease(12)),
              saving_lease(jobs[2], lease(13)), saving_lease(jobs[3], lease(largest)));
  this->apply(dropping(jobs[1]), moving(jobs[2], job_state::dead));
  auto all = this->reopen();
  ASSERT_EQ(all.leases.size(), 2U);
  if (all.leases[0].job->id != 1) std::swap(all.leases[0], all.leases[1]);
  EXPECT_EQ(*all.leases[0].job, jobs[0]);
  EXPECT_EQ(all.leases[0].queue, 1U);
  EXPECT_EQ(all.leases[0].lease, lease(11));
  EXPECT_EQ(*all.leases[1].job, jobs[3]);
  EXPECT_EQ(all.leases[1].queue, 2U);
  EXPECT_EQ(all.leases[1].lease.key, largest);
  this->apply(dropping_leases());
  EXPECT_TRUE(this->reopen().leases.empty());
}

TYPED_TEST_P(store_suite, ASavedLeaseOfACancelledJobIsLoadedWithoutTheJob) {
  job j = a_job(1);
  j.spec.key = "k";
  this->apply(adding(j));
  this->apply(dropping(j, job_state::cancelled));
  const change::lease_record lease{.key = 5,
                                   .worker = "w",
                                   .until = start + milliseconds(60),
                                   .began = start,
                                   .is_cancelled = true,
                                   .job_key = "k"};
  this->apply(saving_lease(j, lease));
  const auto all = this->reopen();
  ASSERT_EQ(all.leases.size(), 1U);
  EXPECT_EQ(all.leases[0].lease, lease);
  EXPECT_EQ(all.leases[0].queue, 1U);
  EXPECT_EQ(all.leases[0].job->id, 1U);
  EXPECT_EQ(all.leases[0].job->state, job_state::cancelled);
  EXPECT_EQ(all.leases[0].job->spec.queue, "default");
  EXPECT_EQ(all.leases[0].job->spec.key, "k");
}

TYPED_TEST_P(store_suite, EndedAttemptsAreStored) {
  job j = a_job(1);
  this->apply(adding(j));
  std::vector<attempt_record> expected;
  for (std::uint32_t n = 1; n <= limits::attempts_kept + 3; ++n) {
    const attempt_record one{n, start, start + milliseconds(n), n == 1 ? "" : "w \xff",
                             n % 2 == 0 ? attempt_outcome::expired : attempt_outcome::failed};
    const job before = *must(this->db->get(1));
    this->apply(
        moving(before, job_state::retrying, {.due_at = start, .attempts = n, .attempt = one}));
    this->apply(moving(*must(this->db->get(1)), job_state::ready, {.turn = 1}));
    add_attempt(expected, one);
    ASSERT_EQ(must(this->db->get(1))->history, expected);
  }
  EXPECT_EQ(expected.size(), limits::attempts_kept);
  this->reopen();
  EXPECT_EQ(must(this->db->get(1))->history, expected);
}

TYPED_TEST_P(store_suite, ALeaseSavedAgainReplacesTheFirst) {
  this->apply(adding(a_job(1)));
  this->apply(saving_lease(a_job(1), {1, "a", start, start}));
  this->apply(saving_lease(a_job(1), {2, "b", start, start}));
  const auto all = this->reopen();
  ASSERT_EQ(all.leases.size(), 1U);
  EXPECT_EQ(all.leases[0].lease.key, 2U);
}

TYPED_TEST_P(store_suite, CronEntriesAreStored) {
  cron_entry every;
  every.spec.name = "every/night";
  every.spec.schedule = "0 3 * * *";
  every.spec.zone = "Europe/Berlin";
  every.spec.missed = missed_runs::all;
  every.spec.paused = true;
  every.spec.job = with_key(a_job(1, "reports"), "one at a time").spec;
  every.spec.job.args = {std::string("\0\xff", 2), content_type::bytes};
  every.spec.job.priority = 3;
  every.spec.job.retry.attempts_max = 2;
  every.spec.job.key = "serial";
  every.spec.job.after = {{5, "", after_when::failure}};
  every.next_at = start + milliseconds(1);
  every.last_at = start;
  every.last_job = 77;
  every.runs = 3;
  every.missed = 4;
  cron_entry plain;
  plain.spec.name = "a";
  plain.spec.job.kind = "count";
  this->apply(of_cron(op::set_cron, every), of_cron(op::set_cron, plain));
  EXPECT_EQ(this->reopen().crons, (std::vector{plain, every})) << "by name";
  every.next_at = {};
  every.runs = 5;
  this->apply(of_cron(op::set_cron, every), of_cron(op::drop_cron, plain),
              of_cron(op::drop_cron, plain));
  EXPECT_EQ(this->reopen().crons, std::vector{every});
}

TYPED_TEST_P(store_suite, ACronEntryAndItsRunAreOneTransaction) {
  cron_entry entry;
  entry.spec.name = "tick";
  entry.last_job = 1;
  this->apply(of_cron(op::set_cron, entry), adding(a_job(1)));
  EXPECT_EQ(this->reopen().crons.at(0).last_job, 1U);
  EXPECT_TRUE(this->has(1));
}

TYPED_TEST_P(store_suite, ProgressIsKeptUntilThereIsMore) {
  const job j = a_job(1);
  this->apply(adding(j));
  this->apply(moving(j, job_state::ready, {.progress = progress{12.5, "half of a quarter"}}));
  EXPECT_EQ(this->get(1).progress, (progress{12.5, "half of a quarter"}));
  this->apply(moving(j, job_state::ready, {.attempts = 1}));
  this->reopen();
  EXPECT_EQ(this->get(1).progress, (progress{12.5, "half of a quarter"}));
  this->apply(moving(j, job_state::ready, {.progress = progress{20, ""}}));
  EXPECT_EQ(this->get(1).progress, (progress{20, ""}));
}

TYPED_TEST_P(store_suite, LogsOfAJobAreNumberedPagedAndDeletedWithIt) {
  const auto line = [](std::uint32_t attempt, std::string text) {
    return log_line{99, attempt, start + milliseconds(attempt), std::move(text)};
  };
  this->apply(adding(a_job(1)), adding(a_job(2)), adding_logs(1, {line(1, "a"), line(1, "\xff")}),
              adding_logs(2, {line(1, "of another")}), adding_logs(3, {line(1, "of nobody")}));
  this->reopen();
  this->apply(adding_logs(1, {line(2, "c")}), adding_logs(1, {}));
  const auto page = must(this->db->logs(1, 0, 10));
  EXPECT_EQ(page.lines, (std::vector<log_line>{{1, 1, start + milliseconds(1), "a"},
                                               {2, 1, start + milliseconds(1), "\xff"},
                                               {3, 2, start + milliseconds(2), "c"}}));
  EXPECT_FALSE(page.cursor);
  const auto part = must(this->db->reader()->logs(1, 1, 1));
  ASSERT_EQ(part.lines.size(), 1U);
  EXPECT_EQ(part.lines[0].number, 2U);
  EXPECT_EQ(part.cursor, 2U);
  EXPECT_TRUE(must(this->db->logs(1, 3, 10)).lines.empty());
  EXPECT_TRUE(must(this->db->logs(3, 0, 10)).lines.empty());
  this->apply(dropping(a_job(1)));
  EXPECT_TRUE(must(this->db->logs(1, 0, 10)).lines.empty());
  this->apply(adding(a_job(1)));
  EXPECT_TRUE(must(this->db->logs(1, 0, 10)).lines.empty()) << "they went with the job";
  EXPECT_EQ(must(this->db->logs(2, 0, 10)).lines.size(), 1U);
}

TYPED_TEST_P(store_suite, AFullLogKeepsItsFirstLines) {
  this->apply(adding(a_job(1)));
  std::vector<log_line> lines(limits::log_lines_max - 1);
  for (std::size_t n = 0; n < lines.size(); ++n) lines[n].text = std::to_string(n + 1);
  this->apply(adding_logs(1, lines));
  this->apply(adding_logs(1, {lines[0], lines[1], lines[2]}));
  const auto last = must(this->db->logs(1, limits::log_lines_max - 2, 10));
  ASSERT_EQ(last.lines.size(), 2U) << "the rest was left out";
  EXPECT_EQ(last.lines[1].text, "1");
  EXPECT_EQ(last.lines[1].number, limits::log_lines_max);
}

TYPED_TEST_P(store_suite, AnEmptyTransactionAndAFlushChangeNothing) {
  this->apply();
  must(this->db->flush());
  this->apply(adding(a_job(1)));
  must(this->db->flush());
  EXPECT_TRUE(this->has(1));
  EXPECT_FALSE(this->db->describe().empty());
}

// ---- readers

TYPED_TEST_P(store_suite, AReaderSeesEarlierTransactions) {
  auto reader = this->db->reader();
  EXPECT_FALSE(must(reader->get(1)));
  this->apply(adding(a_job(1)), adding(a_job(2, "mail")));
  EXPECT_EQ(must(reader->get(1)), a_job(1));
  EXPECT_EQ(ids_of(must(reader->list({}, 0, 10)).jobs), (ids{1, 2}));
  this->apply(setting(4, "late"), dropping(a_job(1)));
  job late = a_job(5);
  late.spec.queue = "late";
  change add = adding(late);
  add.queue = 4;
  this->apply(std::move(add));
  EXPECT_FALSE(must(reader->get(1)));
  EXPECT_EQ(must(reader->get(5)), late);
}

TYPED_TEST_P(store_suite, AReaderOnAnotherThreadSeesWholeTransactions) {
  auto reader = this->db->reader();
  std::atomic<bool> ended{false};
  std::size_t looks = 0;
  std::thread looking([&] {
    do {
      const auto page = must(reader->list({}, 0, 1000));
      EXPECT_EQ(page.jobs.size() % 3, 0U) << "a part of a transaction was visible";
      ++looks;
    } while (!ended);
  });
  for (job_id id = 1; id <= 900; id += 3) {
    this->apply(adding(a_job(id)), adding(a_job(id + 1)), adding(a_job(id + 2)));
    if (id % 2 == 0)
      this->apply(dropping(a_job(id)), dropping(a_job(id + 1)), dropping(a_job(id + 2)));
  }
  ended = true;
  looking.join();
  EXPECT_GT(looks, 0U);
}

REGISTER_TYPED_TEST_SUITE_P(
    store_suite, AKeyOfAJobIsFreeAfterItsTime, AKeyOfAJobIsFreeWhenTheJobHasEndedBeforeItsTime,
    AStoreIsEmptyAtFirst, AJobIsReadAsItWasAdded, EachOptionAloneIsStored, ArbitraryBytesAreStored,
    TheLargestArgsAndResultFit, CountsFollowEveryChange, CountsAreKeptForEachQueue,
    AMoveStoresItsFieldsAndKeepsTheRest, OneTransactionMayAddMoveAndDropTheSameJob,
    OnlyTheNewestErrorsAreKept, ADroppedJobIsGone, ASecondJobOfAKeyIsRejectedAndTheHolderNamed,
    AKeyBelongsToOneQueue, AKeyIsTakenWithinATransactionInOrder, AFreedKeyCanBeTaken,
    AMoveAndADropFreeTheKeyOfTheJob, AnElapsingKeyOutlivesItsJobAndEndsAtItsTime,
    AnElapsedKeyCanBeTakenByEveryKindOfKey, KeysSurviveReopening, AGroupIsAddedCompletelyOrNotAtAll,
    ARejectedGroupTakesNoKeys, AGroupWithADuplicateKeyIsRejected, IdsUpToNeverGoesBack,
    QueueSettingsAreStored, SavedLeasesAreLoadedForJobsThatAreStillReady,
    ALeaseSavedAgainReplacesTheFirst, ASavedLeaseOfACancelledJobIsLoadedWithoutTheJob,
    EndedAttemptsAreStored, CronEntriesAreStored, ACronEntryAndItsRunAreOneTransaction,
    ProgressIsKeptUntilThereIsMore, LogsOfAJobAreNumberedPagedAndDeletedWithIt,
    AFullLogKeepsItsFirstLines, AnEmptyTransactionAndAFlushChangeNothing,
    AReaderSeesEarlierTransactions, AReaderOnAnotherThreadSeesWholeTransactions);

}  // namespace sluice::jobs::testing
