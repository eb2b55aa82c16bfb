#pragma once

// Applies random transactions to a real store and to the model, and compares them after every few;
// the store is reopened at random. The seed is printed; SLUICE_SEED repeats a run.

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
    if (chance(3)) j.spec.key = "serial" + std::to_string(below(6));
    if (chance(4) && !model.batches.empty()) j.spec.batch = some_batch();
    if (chance(20)) j.spec.batch = known_or_none(1000);
    for (std::uint32_t n = chance(4) ? 1 + below(3) : 0; n > 0; --n) {
      j.spec.after.push_back({some_id(), "", static_cast<after_when>(below(3))});
    }
    return j;
  }

  template <class Map>
  auto any_of(const Map& all) {
    return std::next(all.begin(), below(static_cast<std::uint32_t>(all.size())));
  }
  job_id some_batch() { return any_of(model.batches)->first; }
  // Returns the id of a job or a batch, mostly of an existing one.
  job_id some_id() {
    if (chance(3) && !model.batches.empty()) return some_batch();
    if (chance(20) || model.jobs.empty()) return known_or_none(static_cast<std::uint32_t>(last_id));
    return any_of(model.jobs)->first;
  }
  // Returns an id that existed before this push, or an unused one: the store requires that a job of
  // a group depends only on earlier jobs of the group.
  job_id known_or_none(std::uint32_t up_to) {
    const job_id id = 1 + below(up_to + 9);
    return id < group_begins_at ? id : id + 1'000'000'000;
  }
  batch_info random_batch() {
    batch_info b = a_batch_of_jobs(++last_id);
    b.created_at = this->now;
    b.keep_done = some_time();
    b.keep_failed = some_time();
    return b;
  }

  void add_some(transaction& t) {
    const std::uint32_t group = chance(3) ? ++last_group : 0;
    group_begins_at = last_id + 1;
    std::vector<job> jobs;
    std::optional<batch_info> with_batch;
    model.cause = t.changes.size();
    const std::size_t first = model.cause;
    if (group != 0 && chance(3)) {
      with_batch = random_batch();
      t.changes.push_back(adding_batch(*with_batch, group));
      ++model.cause;
    }
    for (std::uint32_t n = group == 0 ? 1 : 1 + below(4); n > 0; --n) {
      jobs.push_back(random_job());
      job& j = jobs.back();
      if (with_batch && !chance(3)) j.spec.batch = with_batch->id;
      if (with_batch && chance(4)) {
        j.spec.after.push_back({with_batch->id, "", static_cast<after_when>(below(3))});
      }
      if (jobs.size() > 1 && chance(3)) {
        j.spec.after.push_back({jobs.front().id, "", static_cast<after_when>(below(3))});
      }
      // A job that waits for its own batch would wait for ever.
      std::erase_if(j.spec.after,
                    [&](const dependency& d) { return d.on == j.spec.batch || d.on == j.id; });
    }
    for (const job& j : jobs) t.changes.push_back(adding(j, group));
    for (conflict c : model.add(jobs, with_batch ? &*with_batch : nullptr)) {
      c.index += first;
      expected.push_back(c);
    }
  }

  // Returns the states that a job may be moved to.
  static std::vector<job_state> ways_of(const job& j) {
    using is = job_state;
    if (!gates::concern(j.spec)) {
      return {is::scheduled, is::ready, is::retrying, is::done, is::dead, is::cancelled};
    }
    if (j.state == is::held) return {is::cancelled};
    if (has_ended(j.state)) return {is::ready, is::scheduled};
    if (j.state == is::scheduled && !j.has_place) {
      return {is::ready, is::scheduled, is::cancelled, is::dead};
    }
    return {is::scheduled, is::ready, is::retrying, is::done, is::dead, is::cancelled};
  }

  void move_one(transaction& t, const job& j) {
    const auto ways = ways_of(j);
    const job_state new_state = ways[below(static_cast<std::uint32_t>(ways.size()))];
    change::moved fields;
    if (new_state != job_state::ready && !chance(4)) fields.due_at = t.now + some_time();
    if (new_state == job_state::ready || chance(4)) fields.turn = ++last_id;
    if (chance(2)) fields.attempts = j.attempts + 1;
    if (has_ended(new_state) || chance(8)) fields.ended_at = chance(8) ? unix_time{} : t.now;
    if (chance(3)) fields.error = attempt_error{j.attempts + 1, t.now, "t", "m", ""};
    if (chance(6)) fields.result = payload{std::string(below(50), 'r'), content_type::bytes};
    if (chance(6)) fields.priority = static_cast<std::int64_t>(below(5)) - 2;
    if (chance(6)) fields.progress = progress{static_cast<double>(below(100)), "step"};
    fields.free_key = chance(2);
    model.cause = t.changes.size();
    t.changes.push_back(moving(j, new_state, fields));
    model.move(j.id, new_state, fields);
  }

  void change_a_batch(transaction& t) {
    model.cause = t.changes.size();
    if (model.batches.empty() || chance(3)) {
      const batch_info made = random_batch();
      model.batches[made.id] = made;
      return t.changes.push_back(adding_batch(made));
    }
    const job_id id = some_batch();
    if (chance(6)) {
      t.changes.push_back(dropping_batch(id));
      return model.drop_batch(id);
    }
    t.changes.push_back(closing_batch(id));
    model.close_batch(id);
  }

  void change_something(transaction& t) {
    const std::uint32_t roll = below(100);
    if (chance(12)) return change_a_batch(t);
    if (model.jobs.empty() || roll < 35 || (roll < 45 && model.jobs.size() < 150)) {
      return add_some(t);
    }
    auto at = std::next(model.jobs.begin(), below(static_cast<std::uint32_t>(model.jobs.size())));
    const job j = at->second;
    if (roll < 70) return move_one(t, j);
    if (roll < 92) {
      const auto as = static_cast<job_state>(4 + below(4));
      model.cause = t.changes.size();
      t.changes.push_back(dropping(j, as));
      return model.drop(j.id, as);
    }
    if (roll < 95) {
      t.changes.push_back(freeing_key(j));
      return model.free_key(j);
    }
    if (roll < 97) {
      const change::lease_record lease{1 + below(1000), "w", t.now + some_time(), t.now};
      t.changes.push_back(saving_lease(j, lease));
      model.leases[j.id] = lease;
      return;
    }
    if (roll == 97) {
      t.changes.push_back(dropping_leases());
      model.leases.clear();
      return;
    }
    queue_options o;
    o.paused = chance(2);
    o.capacity_jobs = 1 + below(1000);
    o.key_concurrency = 1 + below(3);
    o.key_rate = below(100) / 7.0;
    o.deliver.url = chance(2) ? "http://localhost/" : "";
    const queue_number number = 1 + below(2);
    t.changes.push_back(setting(number, model.queues[number].name, o));
    model.queues[number].options = o;
  }

  void apply_random_transaction() {
    this->now = this->now + milliseconds(below(30));
    transaction t;
    t.now = this->now;
    expected.clear();
    model.effects.clear();
    model.now = t.now;
    for (std::uint32_t n = below(20); n > 0; --n) change_something(t);
    if (chance(5)) {
      t.ids_up_to = below(1'000'000);
      model.ids_up_to = std::max(model.ids_up_to, t.ids_up_to);
    }
    run.did(t.changes.size());
    const auto outcome = must(this->db->apply(t));
    ASSERT_EQ(outcome.conflicts.size(), expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      ASSERT_EQ(outcome.conflicts[i].index, expected[i].index);
      ASSERT_EQ(outcome.conflicts[i].holder, expected[i].holder);
      ASSERT_EQ(outcome.conflicts[i].cause, expected[i].cause);
    }
    compare_effects(outcome.effects);
  }

  void compare_effects(const std::vector<effect>& effects) {
    ASSERT_EQ(effects.size(), model.effects.size());
    for (std::size_t i = 0; i < effects.size(); ++i) {
      const effect& real = effects[i];
      const effect& wanted = model.effects[i];
      ASSERT_EQ(real.type, wanted.type) << "of " << wanted.id;
      ASSERT_EQ(real.id, wanted.id);
      ASSERT_EQ(real.cause, wanted.cause);
      ASSERT_EQ(real.queue, wanted.queue);
      ASSERT_EQ(real.new_state, wanted.new_state);
      ASSERT_EQ(real.due_at, wanted.due_at);
      ASSERT_EQ(real.blockers, wanted.blockers);
      ASSERT_EQ(real.weight, wanted.weight);
      ASSERT_EQ(real.job != nullptr, wanted.job != nullptr);
      if (wanted.job && wanted.type == effect::kind::released) {
        ASSERT_EQ(*real.job, *wanted.job);
      }
      ASSERT_EQ(real.batch != nullptr, wanted.batch != nullptr);
      if (wanted.batch) {
        ASSERT_EQ(*real.batch, *wanted.batch);
      }
    }
    effects_seen += effects.size();
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
      ASSERT_EQ(values(must(this->db->ready_after(queue, {}, {}))), expected_ready);
      if (expected_ready.empty()) continue;
      const job& from = expected_ready[below(static_cast<std::uint32_t>(expected_ready.size()))];
      const auto at = std::ranges::find(expected_ready, from.id, &job::id);
      ASSERT_EQ(ids_of(must(this->db->ready_after(queue, {from.spec.priority, from.turn}, {}))),
                ids_of(std::vector<job>(at + 1, expected_ready.end())));
      const auto skip = [](job_id id) { return id % 3 == 0; };
      auto doomed = expected_ready;
      std::erase_if(doomed, [&](const job& j) { return skip(j.id); });
      std::ranges::reverse(doomed);
      ASSERT_EQ(ids_of(must(this->db->victims(queue, victim::newest, 1000, skip))), ids_of(doomed));
      std::ranges::stable_sort(doomed, [](const job& a, const job& b) {
        return std::pair(a.spec.priority, a.turn) < std::pair(b.spec.priority, b.turn);
      });
      ASSERT_EQ(ids_of(must(this->db->victims(queue, victim::oldest, 1000, skip))), ids_of(doomed));
    }
  }

  void compare_due() {
    auto timed = model.timed();
    const auto limit = 1 + below(20);
    std::size_t n = 0;
    while (n < timed.size() && n < limit && timed[n].due_at <= this->now) ++n;
    auto next = n < timed.size() ? std::optional(timed[n].due_at) : std::nullopt;
    const auto batches = model.timed_batches();
    ids due_batches;
    for (const auto& [when, id] : batches) {
      if (when <= this->now && due_batches.size() < limit) {
        due_batches.push_back(id);
      } else {
        next = next ? std::min(*next, when) : when;
        break;
      }
    }
    const auto page = must(this->db->due(this->now, limit));
    ASSERT_EQ(page.batches, due_batches);
    ASSERT_EQ(page.next, next);
    timed.resize(n);
    ASSERT_EQ(values(page.jobs), timed);
  }

  void compare_timed() {
    const auto queue = static_cast<queue_number>(1 + below(2));
    std::vector<job> found;
    for (due_place after;;) {
      const auto page = must(this->db->timed_after(queue, after, 1 + below(5)));
      found.insert(found.end(), page.jobs.begin(), page.jobs.end());
      if (!page.cursor) break;
      after = *page.cursor;
    }
    ASSERT_EQ(found, model.timed(queue));
  }

  void compare_list() {
    job_filter filter;
    if (chance(2)) filter.queue = 1 + below(2);
    if (chance(2)) filter.state = chance(2) ? job_state::dead : job_state::ready;
    if (chance(2)) filter.kind = "rare";
    if (chance(3) && !model.batches.empty()) filter.batch = some_batch();
    const auto by_id = [](const job& a, const job& b) { return a.id < b.id; };
    const auto wanted = model.sorted(
        [&](const job& j) {
          return (!filter.queue || *filter.queue == number_of(j.spec.queue)) &&
                 (!filter.state || *filter.state == j.state) &&
                 (filter.kind.empty() || filter.kind == j.spec.kind) &&
                 (filter.batch == 0 || filter.batch == j.spec.batch);
        },
        by_id);
    std::vector<job> found;
    for (std::optional<job_id> after = 0; after;) {
      auto page = must(this->db->list(filter, *after, 1 + below(50)));
      found.insert(found.end(), page.jobs.begin(), page.jobs.end());
      after = page.cursor;
    }
    ASSERT_EQ(found, wanted);
  }

  void compare_batches() {
    std::vector<batch_info> wanted;
    for (const auto& [id, b] : model.batches) wanted.push_back(b);
    std::vector<batch_info> found;
    for (std::optional<job_id> after = 0; after;) {
      const auto page = must(this->db->list_batches(*after, 1 + below(9)));
      found.insert(found.end(), page.batches.begin(), page.batches.end());
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
      ASSERT_EQ(*l.job, model.jobs.at(l.job->id));
      ASSERT_EQ(l.lease.key, model.leases.at(l.job->id).key);
    }
  }

  sluice::testing::stress run;
  sluice::random random = run.generator(1);
  store_model model;
  std::vector<conflict> expected;
  job_id last_id = 0;  // of jobs, and of turns
  job_id group_begins_at = 1;
  std::uint32_t last_group = 0;
  std::size_t effects_seen = 0;
};

TYPED_TEST_SUITE_P(store_random_suite);

TYPED_TEST_P(store_random_suite, TheStoreAndTheModelAgree) {
  for (int round = 0; round < 1500 && !this->HasFatalFailure(); ++round) {
    this->apply_random_transaction();
    if (this->HasFatalFailure()) break;
    if (round % 4 == 0) this->compare_ready_and_victims();
    if (this->HasFatalFailure()) break;
    if (round % 4 == 1) this->compare_due();
    if (this->HasFatalFailure()) break;
    if (round % 4 == 2) this->compare_list();
    if (round % 4 == 3) this->compare_timed();
    if (this->HasFatalFailure()) break;
    if (round % 4 == 3) this->compare_batches();
    if (this->HasFatalFailure()) break;
    if (round % 50 == 49) this->compare_reopened();
  }
  EXPECT_GT(this->effects_seen, 1000U) << "jobs waited for one another";
}

REGISTER_TYPED_TEST_SUITE_P(store_random_suite, TheStoreAndTheModelAgree);

}  // namespace sluice::jobs::testing
