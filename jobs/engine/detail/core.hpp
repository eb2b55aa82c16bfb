#pragma once

// The engine's state and rules, without threads or files: queues, leases, waiting calls, changes.
//
// Must hold the engine's lock for every member. A call changes state in memory, stages changes that
// must be durable, and adds replies that need no commit to `answers`. The committer applies the
// staged changes (`take_commit`) and reports the outcome (`committed`, `refused`). Only then are
// jobs published, leases removed and callers answered, except that `hand_over` gives a waiting
// worker a job before the commit of its push.
//
// Counts are those of the store, which counts a running job as ready; here it is running as well.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>

#include "jobs/engine/detail/answers.hpp"
#include "jobs/engine/detail/commit.hpp"
#include "jobs/engine/detail/cron_state.hpp"
#include "jobs/engine/detail/lease_state.hpp"
#include "jobs/engine/detail/queue_state.hpp"
#include "jobs/engine/detail/waiting.hpp"
#include "jobs/engine/detail/window.hpp"
#include "jobs/engine/engine.hpp"
#include "jobs/store/gates.hpp"
#include "sluice/base/random.hpp"

namespace sluice::jobs::detail {

class core {
 public:
  core(const engine_options& o, time_source& time);
  core(const core&) = delete;
  core& operator=(const core&) = delete;
  ~core();

  void load(store::contents contents);

  // Producers.
  void push(job_spec spec, push_reply reply, const wait_limits& limits, answers& out);
  // With a plan: a batch.
  void push_together(std::vector<job_spec> specs, promise<std::vector<result<push_receipt>>> reply,
                     const wait_limits& limits, answers& out,
                     std::shared_ptr<batch_plan> plan = nullptr);
  void push_empty_batch(const std::shared_ptr<batch_plan>& plan,
                        promise<result<batch_receipt>> reply, answers& out);

  // Workers.
  void lease(lease_request request, promise<result<std::vector<leased_job>>> reply,
             const wait_limits& limits, answers& out);
  result<extension> extend(lease_ref ref, milliseconds by, std::optional<jobs::progress> progress);
  void_result report(lease_ref ref, jobs::progress progress);
  void log(lease_ref ref, std::vector<std::string> lines, promise<void_result> reply, answers& out);
  void ack(lease_ref ref, std::optional<payload> value, ack_reply reply, answers& out);
  void fail(lease_ref ref, failure why, promise<result<fail_receipt>> reply, answers& out);
  static void cut_to_limits(failure& why);
  // Returns the job if its args are not in memory: the caller then reads it and calls
  // publish_again, or read_again if it cannot be read. Otherwise null.
  job_ptr release(lease_ref ref, give_back options, ack_reply& reply, answers& out);
  // Leases one job that the caller has found: it must be ready in the store, and busy or not
  // leased. Removes it from its window. On error nothing was changed.
  result<leased_job> lease_this(const job_ptr& job, const lease_request& request);
  static void_result check_lease(lease_request& request);  // also truncates texts to their limits
  std::optional<error> refuse_lease(const queue_state& q, const job& j) const;
  std::optional<lease_info> lease_of(job_id id) const;
  void publish_again(job_ptr job, answers& out);
  void read_again(const job& j, answers& out);

  // Waiting calls. `on_stop` is called on any thread, with or without the lock, when the stop_token
  // of the wait with this number stops it; the engine passes the number to `stop_wait` later.
  std::function<void(std::uint64_t)> on_stop;
  void stop_wait(std::uint64_t number, answers& out);
  using end_reply = std::variant<promise<result<job>>, promise<result<job_ptr>>>;
  void await_end(job_id id, end_reply reply, const wait_limits& limits, answers& out);
  void await_drained(promise<status> reply, const wait_limits& limits, answers& out);

  // Events.
  void await_events(event_request request, promise<result<event_page>> reply,
                    const wait_limits& limits, answers& out);
  void answer_event_waits(answers& out);
  void note(event_type type, const job& j, std::string_view text = {});
  void note_batch(const batch_info& b);

  // Cron.
  void set_cron(cron_spec spec, promise<result<cron_info>> reply, answers& out);
  void patch_cron(const std::string& name, cron_patch patch, promise<result<cron_info>> reply,
                  answers& out);
  void remove_cron(const std::string& name, promise<void_result> reply, answers& out);
  void run_cron(const std::string& name, push_reply reply, answers& out);
  std::vector<cron_info> crons() const;
  result<cron_info> get_cron(std::string_view name) const;
  bool cron_has_come(unix_time wall) const {
    return !closed_ && !degraded_ && !cron_times_.empty() && cron_times_.begin()->first <= wall;
  }
  void stage_crons(unix_time wall);

  // For calls that read the store first.
  queue_state* find_queue(std::string_view name);
  queue_state* find_queue(queue_number number);
  // Null: too many queues. Queues that only have waiting calls are limited separately.
  queue_state* make_queue(std::string_view name, bool only_waited_for = false);
  std::size_t count_queues(bool only_waited_for) const;
  error too_many_queues() const;
  static error no_such_queue(std::string_view name);
  void_result pause_for(std::string_view name, milliseconds time);
  milliseconds pause_left(std::string_view name) const;
  void drop_unused(queue_state& q);  // if it is not stored and has no waiting calls
  lease_state* find_lease(job_id id);
  const auto& leases() const { return leases_; }
  bool is_busy(job_id id) const { return busy_.contains(id); }
  bool key_is_free(const queue_state& q, const job& j) const;
  void pass_over(queue_state& q, const job& j);
  std::size_t stage(change c);  // returns its index
  // Returns the job if a change of it must carry the whole job (see change::job), or null.
  static job_ptr job_for_change(const job_ptr& job) {
    return job->spec.unique.key.empty() && !gates::concern(job->spec) ? nullptr : job;
  }
  // A job that the server itself adds, even into a full queue; nullopt: too many queues.
  struct own_job {
    std::shared_ptr<jobs::job> job;  // its id becomes zero if it was not added
    std::size_t change = 0;
  };
  std::optional<own_job> stage_own(job_spec spec);
  // Called after the commit, before the job can have been leased: the next commit drops it.
  void drop_own_job(const job_ptr& own);
  // Stages the webhook job of `j`, if it has a webhook, in the commit that ends it. Returns that
  // job or null.
  job_ptr stage_webhook(const job& j, job_state as, const std::optional<payload>& value,
                        const attempt_error* why);
  void stage_after(commit::after continuation, std::size_t change_index = commit::no_change) {
    next_.others.push_back({change_index, std::move(continuation)});
  }
  void stage_queue(queue_state& q, const queue_options& options);
  void_result check_options(const queue_options& options) const;
  void queue_changed(queue_state& q, const queue_options& before);
  void stage_push(push_item item, std::uint32_t group = 0);
  // Chooses a job to be evicted for a push; it cannot be leased until spare_victim undoes that.
  void choose_victim(queue_state& q, const job& chosen);
  void spare_victim(queue_state& q, job_ptr chosen);
  void mark_busy(job_id id) { busy_.insert(id); }
  void clear_busy(job_id id) { busy_.erase(id); }
  std::uint64_t next_sequence() { return next_id_++; }
  job_id last_id() const { return next_id_ - 1; }
  void note_due(unix_time at);
  void mark_cancelled(lease_state& l);  // the job has ended, the worker still has the lease
  void job_removed(job_id id, const error& why, answers& out);
  void job_ended(const job& j, answers& out);  // answers the calls that wait for its end
  void publish(job_ptr job);
  void unpublish(const job& j);
  void touch(queue_state& q) {
    if (!q.is_touched) touched_.push_back(&q);
    q.is_touched = true;
  }
  // Serves waiting calls of touched queues: leases get published jobs, pushes get free capacity.
  void settle(answers& out) {
    if (is_applying_) return;
    serve(out);
    admit_waiting(out);
  }
  milliseconds keep_of(const queue_state& q, const job_spec& spec, job_state ended,
                       bool has_result) const;
  window::bounds window_bounds(const queue_state& q) const;

  // The committer.
  std::size_t staged() const { return next_.transaction.changes.size(); }
  bool has_staged() const { return !next_.empty() || !refills_.empty() || !evictions_.empty(); }
  time_point next_timer() const;
  // Returns the time of the next work if no call arrives before.
  time_point next_wake(time_point now) const;
  void fire_due(time_point now, time_point first_due, answers& out);
  std::vector<queue_state*> take_refills();
  // `jobs`: the store's jobs after `after`, which was the horizon when the store was read.
  void refilled(queue_state& q, const position& after, std::vector<job_ptr> jobs, bool was_all);
  void not_refilled(queue_state& q, bool has_failed);
  bool due_has_come(unix_time wall) const { return next_due_ && *next_due_ <= wall; }
  void set_next_due(std::optional<unix_time> at) { next_due_ = at; }
  time_point due_since() const;  // of the first due job or cron run; max: none is due
  void serves_due(time_point first) { serves_due_since_ = first; }
  void read_due_page(bool is_full) { full_due_pages_ = is_full ? full_due_pages_ + 1 : 0; }
  commit take_commit();
  // Leases jobs of uncommitted pushes to waiting workers. The pushes are answered after the commit.
  bool hand_over(commit& c, answers& out);
  void committed(commit& c, const applied& outcome, answers& out);
  void refused(commit& c, const error& why, answers& out);
  // Takes the next push that must evict another job, which the store chooses.
  std::optional<push_item> take_eviction();
  // Returns how many of the next `among` such pushes are for this queue.
  std::size_t evictions_from(const queue_state& q, std::size_t among) const;
  // Removes and rejects the pushes of a commit and spares their victims. The rest can be reapplied.
  void refuse_pushes(commit& c, const error& why, answers& out);
  // The same for jobs that the server itself adds, with their changes. Returns false without any.
  bool refuse_own(commit& c, const error& why, answers& out);
  // Removes the change of the job that does not match the store's row, and its lease; its caller
  // fails with `why`. The rest can be reapplied. Returns false if there is no such change.
  bool remove_rejected(commit& c, const error& why, answers& out);
  // Returns ending jobs with waiters and args only on disk, to be read before the commit.
  std::vector<end_item*> ends_without_args(commit& c);

  // Health and shutdown.
  void degrade(const error& why, answers& out);  // rejects waiting pushes; if damaged, also leases
  bool is_store_damaged() const;                 // the store, not only the row of one job
  void recover(answers& out);
  bool is_degraded() const { return degraded_.has_value(); }
  const std::optional<error>& degraded() const { return degraded_; }
  std::uint64_t ids_to_reserve() const;
  void close(answers& out);  // rejects leases, and pushes that would wait for capacity
  bool is_closed() const { return closed_; }
  void stop_intake() { is_ending_ = true; }  // after close: rejects all pushes
  void stage_saved_leases();
  void end_all_waits(answers& out);

  std::vector<queue_info> queues() const;
  queue_info info_of(const queue_state& q) const;
  void add_stats(engine_stats& s) const;
  engine_stats counters;  // the counters; add_stats adds the gauges

 private:
  friend struct lease_state;
  class lease_wait;
  class push_wait;
  class event_wait;
  class end_wait;
  class drain_wait;
  struct obstacle;

  void restore_leases(std::vector<store::saved_lease> leases);
  std::optional<error> refuse_intake() const;
  void set_in_use(queue_state& q, bool is);
  void arrive(push_item item, const wait_limits& limits, answers& out);
  void arrive_at_full(push_item item, answers& out);
  void arrive_together(std::vector<push_item> items, std::shared_ptr<batch_plan> plan,
                       const wait_limits& limits, answers& out);
  void park_pushes(std::vector<push_item> items, bool are_a_group, std::shared_ptr<batch_plan> plan,
                   queue_state* line_queue, const wait_limits& limits);
  void stage_together(std::vector<push_item> items, batch_plan* plan);
  void stage_batch(std::vector<push_item>& items, batch_plan& plan, std::uint32_t group);
  void_result check_references(const job_spec& spec) const;
  void refuse_item(push_item& item, error why, answers& out);
  void refuse_items(std::vector<push_item>& items, error why, answers& out);
  void drop_unused_of(const std::vector<push_item>& items);
  void drop_unused_of(const lease_request& asked);
  void refuse_waiting_pushes(const error& why, answers& out);
  void stage_eviction(queue_state& q, job_ptr gone, bool is_with_push);
  void unchoose_victim(queue_state& q, const job& chosen);
  void evicted(commit::eviction& e, answers& out);
  void serve(answers& out);
  void admit_waiting(answers& out);
  result<push_item> make_item(job_spec spec, push_reply& reply);
  obstacle obstacle_to(const std::vector<push_item>& items, const queue_state* line_queue) const;
  bool admit(push_wait& w, queue_state* line_queue, answers& out);
  // Returns an error if one more waiting call would exceed waiting_max or waiting_bytes_max.
  std::optional<error> refuse_wait(std::uint64_t bytes) const;
  void park(std::unique_ptr<waiting> w, const std::vector<waiting::line*>& lines,
            const wait_limits& limits, const std::stop_token& cancel);
  // Removes it from all its lines. Destroy it outside the lock: answers::destroy_later.
  std::unique_ptr<waiting> unpark(waiting& w);
  void end_wait_early(waiting& w, error why, answers& out);
  void end_reads(answers& out);
  bool must_wait_for_staged(std::uint64_t weight) const;
  error too_much_staged() const;
  std::size_t take_from(queue_state& q, const lease_request& request,
                        std::vector<leased_job>& into);
  void take_some(const lease_request& request, std::vector<leased_job>& into);
  void take_fairly(std::vector<queue_state*> open, const lease_request& request,
                   std::vector<leased_job>& into);
  void take_urgently(std::vector<queue_state*> open, const lease_request& request,
                     std::vector<leased_job>& into);
  bool take_one(queue_state& q, const lease_request& request, std::vector<leased_job>& into);
  bool is_paused(const queue_state& q) const;
  std::string too_many_run() const;
  void count_start(queue_state& q, const job& j);
  static bucket& rate_of_key(queue_state& q, std::string_view key, time_point now);
  bool may_start(const queue_state& q, time_point now) const;
  bool limits_permit(const queue_state& q, time_point now) const;
  void arm_rate(queue_state& q);
  bool key_may_start(queue_state& q, const job_ptr& job);
  void count_key(lease_state& l);
  void uncount_key(const lease_state& l);
  bool due_is_pending(time_point since) const;
  void defer_for_rate(queue_state& q, const job_ptr& job, std::chrono::nanoseconds by);
  leased_job start(queue_state& q, job_ptr job, const lease_request& request,
                   bool is_stored = true);
  leased_job open_lease(queue_state& q, job_ptr job, const lease_request& request, bool is_stored);
  void answer_lease(lease_wait& w, std::vector<leased_job> with, answers& out);
  void hand_over_to(queue_state& q, std::span<commit::staged_push* const> candidates, answers& out);
  void handed_over_is_stored(const job& j);
  void handed_over_is_not_stored(job_id id, answers& out);
  void run_deferred(answers& out);
  bool depends_on_unstored(const job_spec& spec) const;
  void want_refill(queue_state& q);
  result<lease_state*> checked_lease(lease_ref ref);
  bool has_pending_commit(lease_ref ref) const;
  void after_pending_commit(lease_ref ref, commit::after continuation);
  void note_progress(const lease_state& l);
  void stage_logs(job_id of, std::unique_ptr<std::vector<log_line>> lines, std::uint64_t bytes,
                  promise<void_result> reply);
  std::optional<error> refuse_result_bytes(std::uint64_t bytes, job_id id) const;
  void keep_leased(lease_state& l, const job_ptr& job);
  void time_lease(lease_state& l);
  void end_lease(lease_state& l, end_item end, change c);
  void remove_lease(job_id id, answers& out);
  void stage_failure(lease_state& l, failure why, end_item end, std::chrono::nanoseconds ago);
  void lease_expired(lease_state& l);
  void apply_counts(const change& c);
  // `of_group`: the conflict that rejected its group, if it is in one.
  void push_committed(commit::staged_push& p, const conflict* clash, const conflict* of_group,
                      const effect* instead, answers& out);
  void apply_effects(const commit& c, const std::vector<effect>& effects, answers& out);
  void count_effect(const effect& e, job_state from);
  event_page read_events(event_request& request) const;
  bool fits(const event_request& request, const job_event& e) const;
  void add_event(job_event e);
  cron_info info_of(const cron_state& c) const;
  void time_cron(cron_state& c, std::optional<unix_time> at);
  void stage_cron(cron_state& c, unix_time wall);
  void store_cron(cron_state& c, cron_entry next, cron_schedule when,
                  promise<result<cron_info>> reply);
  std::size_t stage_entry(const cron_entry& entry, change::op op = change::op::set_cron);
  void refuse_end(end_item& e, const error& why, answers& out);
  void end_committed(end_item& e, const change& c, answers& out);
  template <class Change>
  void change_window(queue_state& q, Change&& edit);
  void answer_end_waits(job_id id, const result<job>& outcome, answers& out);
  void check_drained(answers& out);
  time_point deadline_of(const wait_limits& limits) const;
  std::chrono::nanoseconds sleep_until_due(unix_time due) const;

  const engine_options options_;
  time_source& time_;
  random random_;

  std::map<std::string, std::unique_ptr<queue_state>, std::less<>> queues_;
  std::unordered_map<queue_number, queue_state*> by_number_;
  std::size_t used_queues_ = 0;
  queue_number next_number_ = 1;
  std::uint64_t next_id_ = 1;
  std::uint64_t ids_stored_ = 0;

  std::unordered_map<job_id, lease_state> leases_;
  std::uint64_t leased_bytes_ = 0;
  std::uint64_t running_ = 0;            // leases of jobs that have not ended
  std::unordered_set<job_id> busy_;      // jobs with a staged change that had to read the store
  std::vector<commit::after> deferred_;  // calls about jobs whose commit is pending
  std::unordered_map<job_id, waiting::line> ends_;  // waiters for the end of each job
  waiting::line drains_;
  waiting::line reads_;           // leases that wait only until the store was read
  waiting::line blocked_pushes_;  // waiting until less is staged
  std::unordered_map<std::uint64_t, std::unique_ptr<waiting>> waits_;
  std::uint64_t next_wait_ = 1;
  std::uint64_t waiting_leases_ = 0;
  std::uint64_t waiting_pushes_ = 0;
  std::uint64_t waiting_bytes_ = 0;
  timer_heap timers_;          // of leases and queues
  timer_heap deadlines_;       // of waits
  answers* firing_ = nullptr;  // while timers fire
  bool is_applying_ = false;   // effects of a commit are applied: no job is leased until all are

  commit next_;
  std::uint64_t staged_bytes_ = 0;
  std::uint64_t staged_result_bytes_ = 0;  // results and failures that are staged
  std::uint32_t next_group_ = 1;
  std::deque<push_item> evictions_;  // counted in staged_bytes_, as the jobs they evict
  std::vector<queue_state*> refills_;
  std::vector<queue_state*> touched_;  // with newly published jobs or free capacity; may hold null
  std::vector<queue_state*> stalled_;  // first waiting push waits for staged_bytes_max
  std::vector<queue_state*> starved_;  // first waiting lease waits for running_max
  std::uint64_t window_bytes_ = 0;
  std::uint64_t window_jobs_ = 0;
  std::optional<unix_time> next_due_;
  time_point serves_due_since_ = time_point::max();  // of the first staged event; max: none
  std::size_t full_due_pages_ = 0;

  std::map<std::string, cron_state, std::less<>> crons_;
  std::set<std::pair<unix_time, std::string>> cron_times_;

  std::deque<job_event> events_;
  std::uint64_t next_event_ = 1;
  std::uint64_t events_checked_ = 0;  // the last event that waiting calls were checked against
  std::uint64_t epoch_ = 0;
  waiting::line event_waits_;

  std::optional<error> degraded_;
  bool closed_ = false, is_ending_ = false;
};

}  // namespace sluice::jobs::detail
