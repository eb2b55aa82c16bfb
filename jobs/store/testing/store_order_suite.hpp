#pragma once

// The conformance suite for the order and size of pages: ready jobs, due jobs, victims of a full
// queue, lists. See store_words.hpp for Kind.

#include <array>
#include <functional>
#include <set>
#include <string>

#include "jobs/store/testing/store_words.hpp"

namespace sluice::jobs::testing {

template <class Kind>
class store_order_suite : public store_words<Kind> {};

TYPED_TEST_SUITE_P(store_order_suite);

// ---- the order of ready jobs

TYPED_TEST_P(store_order_suite, ReadyJobsAreOrderedByPriorityThenTurn) {
  const auto put = [&](job_id id, std::int64_t priority, std::uint64_t turn) {
    job j = a_job(id);
    j.spec.priority = priority;
    j.turn = turn;
    this->apply(adding(j));
  };
  put(1, 0, 10);
  put(2, 5, 11);
  put(3, -1, 1);
  put(4, 5, 3);
  put(5, limits::priority_max, 99);
  put(6, -limits::priority_max, 2);
  put(7, 0, 9);
  this->apply(adding(a_job(8, "mail")));
  const ids order{5, 4, 2, 7, 1, 3, 6};
  EXPECT_EQ(this->ready(), order);
  EXPECT_EQ(this->ready(2), ids{8});
  EXPECT_EQ(this->ready(1, {5, 3}), (ids{2, 7, 1, 3, 6})) << "after, not from";
  EXPECT_EQ(this->ready(1, {5, 11}), (ids{7, 1, 3, 6}));
  EXPECT_EQ(this->ready(1, {3, 0}), (ids{7, 1, 3, 6})) << "a position without a job";
  EXPECT_EQ(this->ready(1, {-limits::priority_max, 2}), ids{});

  ids paged;
  position after;
  while (true) {
    const auto page = must(this->db->ready_after(1, after, {.jobs = 2}));
    if (page.empty()) break;
    EXPECT_LE(page.size(), 2U);
    for (const auto& j : page) paged.push_back(j->id);
    after = {page.back()->spec.priority, page.back()->turn};
  }
  EXPECT_EQ(paged, order);
}

TYPED_TEST_P(store_order_suite, APageOfReadyJobsEndsAtItsLimits) {
  for (job_id id = 1; id <= 10; ++id) {
    job j = a_job(id);
    j.spec.args.data.assign(1000, 'x');
    this->apply(adding(j));
  }
  const auto each = weight_of(this->get(1).spec);
  EXPECT_EQ(this->ready(1, {}, {.jobs = 3}), (ids{1, 2, 3}));
  EXPECT_EQ(this->ready(1, {}, {.jobs = 0}), ids{});
  EXPECT_EQ(this->ready(1, {}, {.jobs = 100, .bytes = 1}), ids{1})
      << "a large job is returned alone";
  EXPECT_EQ(this->ready(1, {}, {.jobs = 100, .bytes = 2 * each}), (ids{1, 2}));
  EXPECT_EQ(this->ready(1, {}, {.jobs = 100, .bytes = 2 * each + 1}), (ids{1, 2, 3}));
  EXPECT_EQ(this->ready(1, {}, {.jobs = 100, .bytes = 1000 * each}).size(), 10U);
}

TYPED_TEST_P(store_order_suite, OnlyReadyJobsAreReady) {
  job_id id = 0;
  for (const job_state s : {job_state::scheduled, job_state::ready, job_state::retrying,
                            job_state::done, job_state::dead, job_state::cancelled}) {
    job j = a_job(++id);
    j.state = s;
    this->apply(adding(j));
  }
  EXPECT_EQ(this->ready(), ids{2});
}

// ---- due jobs

TYPED_TEST_P(store_order_suite, DueJobsOfAllStatesAreOrderedByTime) {
  const auto put = [&](job_id id, job_state s, int due) {
    job j = a_job(id);
    j.state = s;
    j.due_at = start + milliseconds(due);
    this->apply(adding(j));
  };
  put(1, job_state::scheduled, 30);
  put(2, job_state::retrying, 10);
  put(3, job_state::done, 20);
  put(4, job_state::dead, 50);
  put(5, job_state::cancelled, 40);
  put(6, job_state::scheduled, 20);
  this->apply(adding(a_job(7)));
  const auto due = [&](int when, std::size_t limit) {
    return must(this->db->due(start + milliseconds(when), limit));
  };
  EXPECT_EQ(ids_of(due(100, 10).jobs), (ids{2, 3, 6, 1, 5, 4}));
  EXPECT_FALSE(due(100, 10).next);
  EXPECT_EQ(due(9, 10).jobs.size(), 0U);
  EXPECT_EQ(due(9, 10).next, start + milliseconds(10));
  EXPECT_EQ(ids_of(due(20, 10).jobs), (ids{2, 3, 6})) << "due exactly at its time";
  EXPECT_EQ(due(20, 10).next, start + milliseconds(30));
  EXPECT_EQ(ids_of(due(100, 2).jobs), (ids{2, 3}));
  EXPECT_EQ(due(100, 2).next, start + milliseconds(20)) << "of the rest";
  EXPECT_EQ(this->get(2), *due(100, 1).jobs.at(0));

  this->apply(moving(this->get(2), job_state::ready));
  this->apply(dropping(this->get(3)));
  EXPECT_EQ(ids_of(due(100, 10).jobs), (ids{6, 1, 5, 4}));
  this->reopen();
  EXPECT_EQ(ids_of(due(100, 10).jobs), (ids{6, 1, 5, 4}));
}

TYPED_TEST_P(store_order_suite, APageOfDueJobsIsBoundedInBytes) {
  for (job_id id = 1; id <= 4; ++id) {
    job j = a_job(id);
    j.state = job_state::scheduled;
    j.due_at = start + milliseconds(id);
    j.spec.args.data.assign(page_limit{}.bytes - 1000, 'x');
    this->apply(adding(j));
  }
  const auto page = must(this->db->due(start + milliseconds(100), 1000));
  EXPECT_EQ(ids_of(page.jobs), (ids{1, 2}));
  EXPECT_EQ(page.next, start + milliseconds(3));
}

// ---- timed jobs, and victims of a full queue

TYPED_TEST_P(store_order_suite, TimedJobsOfAQueueAreOrderedByTime) {
  const auto timed = [](job_id id, job_state state, int at, const char* queue = "default") {
    job j = a_job(id, queue);
    j.state = state;
    j.due_at = start + milliseconds(at);
    return j;
  };
  this->apply(adding(timed(1, job_state::scheduled, 30)), adding(timed(2, job_state::retrying, 10)),
              adding(timed(3, job_state::scheduled, 10)),
              adding(timed(4, job_state::scheduled, 5, "mail")),
              adding(timed(5, job_state::dead, 7)), adding(timed(6, job_state::done, 20)),
              adding(a_job(7)));
  const auto all = must(this->db->timed_after(1, {}, 10));
  EXPECT_EQ(ids_of(all.jobs), (ids{2, 3, 1}));
  EXPECT_EQ(all.jobs[0], this->get(2));
  EXPECT_FALSE(all.cursor);

  ids found;
  due_place after;
  for (int pages = 0; pages < 10; ++pages) {
    const auto page = must(this->db->timed_after(1, after, 1));
    for (const job& j : page.jobs) found.push_back(j.id);
    if (!page.cursor) break;
    after = *page.cursor;
  }
  EXPECT_EQ(found, (ids{2, 3, 1}));
  EXPECT_EQ(ids_of(must(this->db->timed_after(2, {}, 10)).jobs), ids{4});
  EXPECT_TRUE(must(this->db->timed_after(3, {}, 10)).jobs.empty());
}

TYPED_TEST_P(store_order_suite, TheScanOfAPageOfTimedJobsIsBounded) {
  transaction many;
  many.now = start;
  constexpr job_id others = 3000;
  for (job_id id = 1; id <= others + 1; ++id) {
    job j = a_job(id, id <= others ? "mail" : "default");
    j.state = job_state::scheduled;
    j.due_at = start + milliseconds(5);
    many.changes.push_back(adding(j));
  }
  must(this->db->apply(many));
  ids found;
  due_place after;
  int pages = 1;
  for (;; ++pages) {
    const auto page = must(this->db->timed_after(1, after, 1));
    for (const job& j : page.jobs) found.push_back(j.id);
    if (!page.cursor) break;
    after = *page.cursor;
  }
  EXPECT_EQ(found, ids{others + 1});
  EXPECT_EQ(pages, 3) << "of 1010 each";
}

TYPED_TEST_P(store_order_suite, VictimsAreTheLeastUrgent) {
  const auto put = [&](job_id id, std::int64_t priority) {
    job j = a_job(id);
    j.spec.priority = priority;
    this->apply(adding(j));
  };
  for (job_id id = 1; id <= 3; ++id) put(id, 5);
  for (job_id id = 4; id <= 6; ++id) put(id, -5);
  put(7, 0);
  this->apply(adding(a_job(8, "mail")));
  EXPECT_EQ(this->victims(victim::oldest, 2), (ids{4, 5}));
  EXPECT_EQ(this->victims(victim::newest, 2), (ids{6, 5}));
  EXPECT_EQ(this->victims(victim::oldest, 100), (ids{4, 5, 6, 7, 1, 2, 3}));
  EXPECT_EQ(this->victims(victim::newest, 100), (ids{6, 5, 4, 7, 3, 2, 1}));
  const auto odd = [](job_id id) { return id % 2 == 1; };
  EXPECT_EQ(this->victims(victim::oldest, 3, odd), (ids{4, 6, 2}));
  EXPECT_EQ(this->victims(victim::newest, 3, odd), (ids{6, 4, 2}));
  EXPECT_EQ(this->victims(victim::oldest, 3, [](job_id) { return true; }), ids{});
  EXPECT_EQ(this->victims(victim::oldest, 0), ids{});
}

TYPED_TEST_P(store_order_suite, APageOfVictimsIsBoundedInBytes) {
  for (job_id id = 1; id <= 4; ++id) {
    job j = a_job(id);
    j.spec.priority = id == 1 ? -1 : 0;
    j.spec.args.data.assign(page_limit{}.bytes - 1000, 'x');
    this->apply(adding(j));
  }
  EXPECT_EQ(this->victims(victim::oldest, 1000), (ids{1, 2}));
  EXPECT_EQ(this->victims(victim::newest, 1000), (ids{1, 4}));
}

TYPED_TEST_P(store_order_suite, TheScanForVictimsIsBounded) {
  for (job_id id = 1; id <= 50; ++id) this->apply(adding(a_job(id)));
  int asked = 0;
  const auto skip = [&](job_id id) {
    ++asked;
    return id <= 3;
  };
  EXPECT_EQ(this->victims(victim::oldest, 2, skip), (ids{4, 5}));
  EXPECT_LE(asked, 5);
}

// ---- lists

TYPED_TEST_P(store_order_suite, AListIsFilteredAndPaged) {
  for (job_id id = 1; id <= 30; ++id) {
    job j = a_job(id, id % 2 == 0 ? "mail" : "default");
    if (id % 3 == 0) j.state = job_state::dead;
    if (id % 5 == 0) j.spec.kind = "five";
    this->apply(adding(j));
  }
  const auto all = [&](const job_filter& filter, std::size_t limit) {
    ids found;
    job_id after = 0;
    for (int pages = 0; pages < 100; ++pages) {
      const job_page page = must(this->db->list(filter, after, limit));
      EXPECT_LE(page.jobs.size(), limit);
      for (const job& j : page.jobs) found.push_back(j.id);
      if (!page.cursor) return found;
      EXPECT_GT(*page.cursor, after) << "a cursor that does not advance";
      after = *page.cursor;
    }
    ADD_FAILURE() << "a list without an end";
    return found;
  };
  for (const std::size_t limit : {1U, 2U, 3U, 7U, 100U}) {
    ids every;
    for (job_id id = 1; id <= 30; ++id) every.push_back(id);
    EXPECT_EQ(all({}, limit), every);
    EXPECT_EQ(all({.queue = 2}, limit).size(), 15U);
    EXPECT_EQ(all({.state = job_state::dead}, limit), (ids{3, 6, 9, 12, 15, 18, 21, 24, 27, 30}));
    EXPECT_EQ(all({.queue = 1, .state = job_state::dead}, limit), (ids{3, 9, 15, 21, 27}));
    EXPECT_EQ(all({.queue = 1, .state = job_state::ready, .kind = "five"}, limit), (ids{5, 25}));
    EXPECT_EQ(all({.kind = "five"}, limit), (ids{5, 10, 15, 20, 25, 30}));
    EXPECT_EQ(all({.queue = 9}, limit), ids{});
    EXPECT_EQ(all({.state = job_state::retrying}, limit), ids{});
  }
  EXPECT_EQ(must(this->db->list({}, 28, 10)).jobs.at(0), this->get(29));
  EXPECT_FALSE(must(this->db->list({}, 0, 30)).cursor) << "nothing is left";
}

TYPED_TEST_P(store_order_suite, TheWorkOfOnePageIsBounded) {
  constexpr job_id count = 3000;
  transaction many;
  many.now = start;
  for (job_id id = 1; id <= count; ++id) {
    job j = a_job(id);
    if (id == count) j.spec.kind = "rare";
    many.changes.push_back(adding(j));
  }
  must(this->db->apply(many));
  const job_filter rare{.kind = "rare"};
  const auto first = must(this->db->list(rare, 0, 1));
  EXPECT_TRUE(first.jobs.empty());
  ASSERT_TRUE(first.cursor) << "the page ended before it had scanned all jobs";
  job_id after = 0;
  for (int pages = 1; pages < 10; ++pages) {
    const auto page = must(this->db->list(rare, after, 1));
    if (!page.jobs.empty()) {
      EXPECT_EQ(page.jobs[0].id, count);
      return;
    }
    ASSERT_TRUE(page.cursor);
    after = *page.cursor;
  }
  ADD_FAILURE() << "not found within ten pages";
}

REGISTER_TYPED_TEST_SUITE_P(store_order_suite, TimedJobsOfAQueueAreOrderedByTime,
                            TheScanOfAPageOfTimedJobsIsBounded,
                            ReadyJobsAreOrderedByPriorityThenTurn, APageOfReadyJobsEndsAtItsLimits,
                            OnlyReadyJobsAreReady, DueJobsOfAllStatesAreOrderedByTime,
                            APageOfDueJobsIsBoundedInBytes, VictimsAreTheLeastUrgent,
                            APageOfVictimsIsBoundedInBytes, TheScanForVictimsIsBounded,
                            AListIsFilteredAndPaged, TheWorkOfOnePageIsBounded);

}  // namespace sluice::jobs::testing
