#pragma once

// Random batches against a real store and against the model, compared after every few, with the
// store closed and opened again now and then. The seed is printed; SLUICE_SEED repeats a run.

#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "jobs/store/testing/store_model.hpp"
#include "jobs/store/testing/store_words.hpp"
#include "sluice/sync/testing/stress.hpp"

namespace sluice::jobs::testing {

template <class Kind>
class store_random_suite : public store_words<Kind> {
 protected:
  store_random_suite() {
    for (const auto& [number, name] : {std::pair(1U, "default"), std::pair(2U, "mail")}) {
      model.queues[number].name = name;
    }
  }

  std::uint32_t below(std::uint32_t n) { return random.below(n); }
  bool chance(std::uint32_t one_in) { return below(one_in) == 0; }
  milliseconds some_time() { return milliseconds(1 + below(200)); }

  job random_job() {
    job j = a_job(++last_id, chance(3) ? "mail" : "default");
    j.created_at = this->now;
    j.spec.priority = static_cast<std::int64_t>(below(5)) - 2;
    j.spec.args.data.assign(below(300), static_cast<char>(below(256)));
    if (chance(2)) j.spec.args.type = content_type::bytes;
    if (chance(4)) j.spec.kind = "rare";
    if (chance(5)) j.spec.metadata = "{}";
    if (chance(5)) j.spec.retry.attempts_max = 1 + below(9);
    if (chance(3)) {
      j.spec.unique = {"key" + std::to_string(below(12)), static_cast<unique_until>(below(3)),
                       some_time()};
    }
    if (chance(3)) {
      j.state = job_state::scheduled;
      j.due_at = this->now + some_time();
      j.spec.run_at = j.due_at;
    }
    return j;
  }

  void add_some(batch& b) {
    const std::uint32_t group = chance(3) ? ++last_group : 0;
    std::vector<job> jobs;
    for (std::uint32_t n = group == 0 ? 1 : 1 + below(4); n > 0; --n) jobs.push_back(random_job());
    const std::size_t first = b.changes.size();
    for (const job& j : jobs) b.changes.push_back(adding(j, group));
    const auto holders = model.add(jobs, b.now);
    if (std::ranges::all_of(holders, [](job_id h) { return h == 0; })) return;
    for (std::size_t i = 0; i < holders.size(); ++i) expected.push_back({first + i, holders[i]});
  }

  void move_one(batch& b, const job& j) {
    static constexpr job_state states[] = {job_state::scheduled, job_state::ready,
                                           job_state::retrying,  job_state::done,
                                           job_state::dead,      job_state::cancelled};
    const job_state to = states[below(std::size(states))];
    change::moved how;
    if (to != job_state::ready && !chance(4)) how.due_at = b.now + some_time();
    if (to == job_state::ready || chance(4)) how.turn = ++last_id;
    if (chance(2)) how.attempts = j.attempts + 1;
    if (has_ended(to) || chance(8)) how.ended_at = chance(8) ? unix_time{} : b.now;
    if (chance(3)) how.error = attempt_error{j.attempts + 1, b.now, "t", "m", ""};
    if (chance(6)) how.result = payload{std::string(below(50), 'r'), content_type::bytes};
    if (chance(6)) how.priority = static_cast<std::int64_t>(below(5)) - 2;
    how.free_key = chance(2);
    b.changes.push_back(moving(j, to, how));
    model.move(j.id, to, how);
  }

  void change_something(batch& b) {
    const std::uint32_t what = below(100);
    if (model.jobs.empty() || what < 35 || (what < 45 && model.jobs.size() < 150)) {
      return add_some(b);
    }
    auto at = std::next(model.jobs.begin(), below(static_cast<std::uint32_t>(model.jobs.size())));
    const job j = at->second;
    if (what < 70) return move_one(b, j);
    if (what < 92) {
      b.changes.push_back(dropping(j));
      return model.drop(j.id);
    }
    if (what < 95) {
      b.changes.push_back(freeing_key(j));
      return model.free_key(j);
    }
    if (what < 97) {
      const change::lease_record lease{1 + below(1000), "w", b.now + some_time(), b.now};
      b.changes.push_back(saving_lease(j, lease));
      model.leases[j.id] = lease;
      return;
    }
    if (what == 97) {
      b.changes.push_back(dropping_leases());
      model.leases.clear();
      return;
    }
    queue_options o;
    o.paused = chance(2);
    o.capacity_jobs = 1 + below(1000);
    const queue_number number = 1 + below(2);
    b.changes.push_back(setting(number, model.queues[number].name, o));
    model.queues[number].options = o;
  }

  void apply_random_batch() {
    this->now = this->now + milliseconds(below(30));
    batch b;
    b.now = this->now;
    expected.clear();
    for (std::uint32_t n = below(20); n > 0; --n) change_something(b);
    if (chance(5)) {
      b.ids_up_to = below(1'000'000);
      model.ids_up_to = std::max(model.ids_up_to, b.ids_up_to);
    }
    run.did(b.changes.size());
    const auto conflicts = must(this->it->apply(b));
    ASSERT_EQ(conflicts.size(), expected.size());
    for (std::size_t i = 0; i < conflicts.size(); ++i) {
      ASSERT_EQ(conflicts[i].index, expected[i].index);
      ASSERT_EQ(conflicts[i].holder, expected[i].holder);
    }
  }

  template <class Page>
  static std::vector<job> values(const Page& page) {
    std::vector<job> jobs;
    for (const job_ptr& j : page) jobs.push_back(*j);
    return jobs;
  }

  void compare_ready_and_victims() {
    for (const queue_number queue : {1U, 2U}) {
      const auto expected_ready = model.ready(queue);
      ASSERT_EQ(values(must(this->it->ready_after(queue, {}, {}))), expected_ready);
      if (expected_ready.empty()) continue;
      const job& from = expected_ready[below(static_cast<std::uint32_t>(expected_ready.size()))];
      const auto at = std::ranges::find(expected_ready, from.id, &job::id);
      ASSERT_EQ(ids_of(must(this->it->ready_after(queue, {from.spec.priority, from.turn}, {}))),
                ids_of(std::vector<job>(at + 1, expected_ready.end())));
      const auto skip = [](job_id id) { return id % 3 == 0; };
      auto doomed = expected_ready;
      std::erase_if(doomed, [&](const job& j) { return skip(j.id); });
      std::ranges::reverse(doomed);
      ASSERT_EQ(ids_of(must(this->it->victims(queue, victim::newest, 1000, skip))), ids_of(doomed));
      std::ranges::stable_sort(doomed, [](const job& a, const job& b) {
        return std::pair(a.spec.priority, a.turn) < std::pair(b.spec.priority, b.turn);
      });
      ASSERT_EQ(ids_of(must(this->it->victims(queue, victim::oldest, 1000, skip))), ids_of(doomed));
    }
  }

  void compare_due() {
    auto timed = model.timed();
    const auto limit = 1 + below(20);
    std::size_t n = 0;
    while (n < timed.size() && n < limit && timed[n].due_at <= this->now) ++n;
    const auto page = must(this->it->due(this->now, limit));
    ASSERT_EQ(page.next, n < timed.size() ? std::optional(timed[n].due_at) : std::nullopt);
    timed.resize(n);
    ASSERT_EQ(values(page.jobs), timed);
  }

  void compare_list() {
    job_filter filter;
    if (chance(2)) filter.queue = 1 + below(2);
    if (chance(2)) filter.state = chance(2) ? job_state::dead : job_state::ready;
    if (chance(2)) filter.kind = "rare";
    const auto by_id = [](const job& a, const job& b) { return a.id < b.id; };
    const auto wanted = model.sorted(
        [&](const job& j) {
          return (!filter.queue || *filter.queue == number_of(j.spec.queue)) &&
                 (!filter.state || *filter.state == j.state) &&
                 (filter.kind.empty() || filter.kind == j.spec.kind);
        },
        by_id);
    std::vector<job> found;
    for (std::optional<job_id> after = 0; after;) {
      auto page = must(this->it->list(filter, *after, 1 + below(50)));
      found.insert(found.end(), page.jobs.begin(), page.jobs.end());
      after = page.cursor;
    }
    ASSERT_EQ(found, wanted);
  }

  void compare_reopened() {
    const auto all = this->reopen();
    ASSERT_EQ(all.ids_up_to, model.ids_up_to);
    ASSERT_EQ(all.queues.size(), model.queues.size());
    for (const auto& q : all.queues) {
      ASSERT_EQ(q.name, model.queues[q.number].name);
      ASSERT_EQ(q.options, model.queues[q.number].options);
      ASSERT_EQ(q.counts, model.counts(q.number)) << "queue " << q.number;
    }
    std::size_t honoured = 0;
    for (const auto& [id, lease] : model.leases) {
      const auto at = model.jobs.find(id);
      if (at != model.jobs.end() && at->second.state == job_state::ready) ++honoured;
    }
    ASSERT_EQ(all.leases.size(), honoured);
    for (const auto& l : all.leases) {
      ASSERT_EQ(*l.it, model.jobs.at(l.it->id));
      ASSERT_EQ(l.lease.key, model.leases.at(l.it->id).key);
    }
  }

  sluice::testing::stress run;
  sluice::random random = run.generator(1);
  store_model model;
  std::vector<conflict> expected;
  job_id last_id = 0;  // of jobs, and of turns
  std::uint32_t last_group = 0;
};

TYPED_TEST_SUITE_P(store_random_suite);

TYPED_TEST_P(store_random_suite, TheStoreAndTheModelAgree) {
  for (int round = 0; round < 1500 && !this->HasFatalFailure(); ++round) {
    this->apply_random_batch();
    if (this->HasFatalFailure()) break;
    if (round % 4 == 0) this->compare_ready_and_victims();
    if (this->HasFatalFailure()) break;
    if (round % 4 == 1) this->compare_due();
    if (this->HasFatalFailure()) break;
    if (round % 4 == 2) this->compare_list();
    if (this->HasFatalFailure()) break;
    if (round % 50 == 49) this->compare_reopened();
  }
}

REGISTER_TYPED_TEST_SUITE_P(store_random_suite, TheStoreAndTheModelAgree);

}  // namespace sluice::jobs::testing
