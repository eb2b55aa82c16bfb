#pragma once

// The vocabulary of the tests of a store: jobs, changes of jobs, and queries.
//
// A Kind opens a store, with the same contents each time:
//
//   struct memory_kind {
//     std::unique_ptr<store> open() { return make_memory_store({.contents = contents}); }
//     std::shared_ptr<memory_contents> contents = make_memory_contents();
//   };

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "jobs/store/gates.hpp"
#include "jobs/store/store.hpp"

namespace sluice::jobs {

// Used by GoogleTest to print the jobs of a failed comparison.
inline void PrintTo(const job& j, std::ostream* out) {  // NOLINT(readability-identifier-naming)
  *out << "job " << j.id << " of " << j.spec.queue << ", " << to_string(j.state) << ", priority "
       << j.spec.priority << ", turn " << j.turn << ", due " << j.due_at.ms << ", ended "
       << j.ended_at.ms << ", attempts " << j.attempts << ", errors " << j.errors.size()
       << ", args of " << j.spec.args.data.size() << " bytes"
       << ", key '" << j.spec.key << "', batch " << j.spec.batch << ", after "
       << j.spec.after.size() << ", blockers " << j.blockers << ", place " << j.has_place;
}

}  // namespace sluice::jobs

namespace sluice::jobs::testing {

using op = change::op;

inline constexpr unix_time start{1'767'225'600'000};

// A job as the engine would add it: ready, with its id as its turn.
inline job a_job(job_id id, std::string queue = "default") {
  job j;
  j.id = id;
  j.turn = id;
  j.created_at = start;
  j.spec.queue = std::move(queue);
  j.spec.kind = "count";
  j.spec.args = {R"({"n":)" + std::to_string(id) + "}", content_type::json};
  return j;
}

inline job with_key(job j, std::string key, unique_until until = unique_until::done,
                    milliseconds lasts = milliseconds(0)) {
  j.spec.unique = {std::move(key), until, lasts};
  return j;
}

inline queue_number number_of(const std::string& queue) {
  return queue == "default" ? 1U : queue == "mail" ? 2U : 3U;
}

inline change adding(job j, std::uint32_t group = 0) {
  change c;
  c.type = op::add;
  c.queue = number_of(j.spec.queue);
  c.group = group;
  c.job = std::make_shared<const job>(std::move(j));
  return c;
}

// Returns a change of `j` from its current state.
inline change change_of(op type, const job& j) {
  change c;
  c.type = type;
  c.queue = number_of(j.spec.queue);
  c.id = j.id;
  c.from = j.state;
  c.weight = weight_of(j.spec);
  return c;
}

inline change moving(const job& j, job_state new_state, change::moved fields = {}) {
  change c = change_of(op::move, j);
  c.new_state = new_state;
  if (fields.free_key || gates::concern(j.spec)) c.job = std::make_shared<const job>(j);
  c.fields = std::make_unique<change::moved>(std::move(fields));
  return c;
}

inline change dropping(const job& j, job_state as = job_state::ready) {
  change c = change_of(op::drop, j);
  c.new_state = as;
  if (!j.spec.unique.key.empty() || gates::concern(j.spec)) c.job = std::make_shared<const job>(j);
  return c;
}

inline change freeing_key(const job& j) {
  change c = change_of(op::free_key, j);
  c.job = std::make_shared<const job>(j);
  return c;
}

inline change setting(queue_number number, std::string name, queue_options options = {}) {
  change c;
  c.type = op::set_queue;
  c.queue = number;
  c.settings = std::make_unique<change::queue_settings>();
  c.settings->name = std::move(name);
  c.settings->options = options;
  return c;
}

inline change saving_lease(const job& j, change::lease_record lease) {
  change c = change_of(op::save_lease, j);
  c.lease = std::make_unique<change::lease_record>(std::move(lease));
  return c;
}

inline change dropping_leases() {
  change c;
  c.type = op::drop_leases;
  return c;
}

inline batch_info a_batch_of_jobs(job_id id) {
  batch_info b;
  b.id = id;
  b.name = "batch " + std::to_string(id);
  b.open = true;
  b.created_at = start;
  b.keep_done = milliseconds(1000);
  b.keep_failed = milliseconds(5000);
  return b;
}

inline change adding_batch(batch_info b, std::uint32_t group = 0) {
  change c;
  c.type = op::add_batch;
  c.group = group;
  c.batch = std::make_unique<batch_info>(std::move(b));
  return c;
}
inline change adding_batch(job_id id, std::uint32_t group = 0) {
  return adding_batch(a_batch_of_jobs(id), group);
}

inline change of_batch(op type, job_id id) {
  change c;
  c.type = type;
  c.id = id;
  return c;
}
inline change closing_batch(job_id id) {
  return of_batch(op::close_batch, id);
}
inline change dropping_batch(job_id id) {
  return of_batch(op::drop_batch, id);
}

inline change of_cron(op type, cron_entry entry) {
  change c;
  c.type = type;
  c.cron = std::make_unique<cron_entry>(std::move(entry));
  return c;
}

inline change adding_logs(job_id id, std::vector<log_line> lines) {
  change c;
  c.type = op::add_logs;
  c.id = id;
  c.logs = std::make_unique<std::vector<log_line>>(std::move(lines));
  return c;
}

template <class... Changes>
transaction a_transaction(unix_time now, Changes... changes) {
  transaction t;
  t.now = now;
  (t.changes.push_back(std::move(changes)), ...);
  return t;
}

inline std::vector<job_id> ids_of(const std::vector<job_ptr>& jobs) {
  std::vector<job_id> ids;
  for (const job_ptr& j : jobs) ids.push_back(j->id);
  return ids;
}

inline std::vector<job_id> ids_of(const std::vector<job>& jobs) {
  std::vector<job_id> ids;
  for (const job& j : jobs) ids.push_back(j.id);
  return ids;
}

template <class T>
T must(result<T> r) {
  EXPECT_TRUE(r.has_value()) << (r ? std::string() : r.error().message);
  check(r.has_value(), "test", "a call of the store to succeed");
  return std::move(*r);
}

using ids = std::vector<job_id>;

// A store of the kind with two queues: 1 is "default", 2 is "mail".
template <class Kind>
class store_words : public ::testing::Test {
 protected:
  store_words() {
    db = kind.open();
    must(db->load());
    apply(setting(1, "default"), setting(2, "mail"));
  }

  // Closes the store, opens it again, and returns its contents.
  store::contents reopen() {
    db.reset();
    db = kind.open();
    return must(db->load());
  }
  queue_counts counts(queue_number queue = 1) {
    for (auto& q : reopen().queues) {
      if (q.number == queue) return q.counts;
    }
    ADD_FAILURE() << "no queue " << queue;
    return {};
  }

  template <class... Changes>
  std::vector<conflict> apply_at(unix_time when, Changes... changes) {
    return must(db->apply(a_transaction(when, std::move(changes)...))).conflicts;
  }
  template <class... Changes>
  std::vector<conflict> apply(Changes... changes) {
    return apply_at(now, std::move(changes)...);
  }

  job get(job_id id) {
    auto found = must(db->get(id));
    EXPECT_TRUE(found.has_value()) << "no job " << id;
    return found ? *found : job{};
  }
  bool has(job_id id) { return must(db->get(id)).has_value(); }
  ids ready(queue_number queue = 1, position after = {}, page_limit limit = {}) {
    return ids_of(must(db->ready_after(queue, after, limit)));
  }
  ids victims(victim which, std::size_t limit, std::function<bool(job_id)> skip = {}) {
    if (!skip) skip = [](job_id) { return false; };
    return ids_of(must(db->victims(1, which, limit, skip)));
  }

  Kind kind;
  std::unique_ptr<store> db;
  unix_time now = start;
};

}  // namespace sluice::jobs::testing
