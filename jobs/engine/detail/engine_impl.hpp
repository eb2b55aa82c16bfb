#pragma once

// The engine's threads: callers, which change the core with the lock held, and the committer. The
// store is used by the thread that holds `commit_mutex_`: the committer, or a caller in
// engine::commit_here.
//
// One round of the committer: do the work that reads the store (windows that run low, due jobs,
// calls about one job by its id), take all staged changes, commit them, pass the outcome to the
// core, send the replies. While it commits, callers stage the next transaction: that is the group
// commit, and it needs no timer to form groups. Pushed jobs are leased to waiting workers before
// the commit, and every reply about them is sent after it: a reply that reports a job as stored is
// reliable, and a worker need not wait for the disk to begin (docs/decisions/0019).

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <vector>

#include "jobs/engine/detail/core.hpp"
#include "jobs/engine/engine.hpp"
#include "sluice/base/seam.hpp"
#include "sluice/executor/thread_pool.hpp"
#include "sluice/sync/event.hpp"
#include "sluice/sync/histogram.hpp"
#include "sluice/sync/mutex.hpp"
#include "sluice/sync/spin_lock.hpp"

namespace sluice::jobs {

class engine::impl {
 public:
  // A call that reads the store: runs on the committing thread, without the lock.
  using store_call = unique_function<void()>;

  impl(std::unique_ptr<store> storage, const engine_options& o);
  ~impl();

  void_result start();
  void stop();  // any thread, any number of times: each call returns when the engine has stopped

  // Runs `change` on the core with the lock held, wakes the committer if there is work for it, and
  // sends the replies.
  template <class Change>
  void call(Change&& change) {
    detail::answers out;
    bool wake = false;
    {
      const std::lock_guard hold(mutex_);
      change(core_, out);
      core_.answer_event_waits(out);
      wake = out.wake_committer || core_.has_staged() || core_.next_timer() < sleeps_until_;
    }
    if (wake) wake_committer();
    out.deliver();
  }
  // Wakes the committer now, or marks work for this thread's next commit_here.
  void wake_committer() {
    if (local_commit_.engine_number == number_) {
      local_commit_.has_staged = true;
    } else {
      wake_.set();
    }
  }
  using flush_call = std::function<void()>;
  bool commit_here(const flush_call& flush_replies);
  // As `call`, for a call with one promise, which is rejected after shutdown. A list of replies has
  // `count`.
  template <class T, class Change>
  future<T> ask(Change&& change) {
    return ask<T>(1, std::forward<Change>(change));
  }
  template <class T, class Change>
  future<T> ask(std::size_t count, Change&& change) {
    promise<T> reply;
    future<T> answer = reply.get_future();
    call([&](detail::core& c, detail::answers& out) {
      if (has_shut_down_) return out.add(std::move(reply), refusal<T>(count));
      change(c, std::move(reply), out);
    });
    return answer;
  }
  // As `ask`, for a call that reads the store first: `store_read(promise)` runs on the committing
  // thread, without the lock.
  template <class T, class Read>
  future<T> ask_store(Read store_read) {
    return ask<T>([&](detail::core&, promise<T> reply, detail::answers& out) {
      calls_.push_back([store_read = std::move(store_read), reply = std::move(reply)]() mutable {
        store_read(std::move(reply));
      });
      out.wake_committer = true;
    });
  }
  // The error of every call after shutdown.
  static error shut_down_error() { return {error_code::shutting_down, "the server has shut down"}; }
  template <class T>
  static T refusal(std::size_t count) {
    if constexpr (std::is_same_v<T, status>) {
      return status(status::closed);
    } else if constexpr (std::is_constructible_v<T, error>) {
      return T(shut_down_error());
    } else {
      return T(count, shut_down_error());
    }
  }

  // With mutex_ held.
  void release(detail::core& c, lease_ref lease, give_back options, detail::ack_reply reply,
               detail::answers& out);

  // On the committing thread.
  void cancel(job_id id, promise<result<job>> reply);
  void kill(job_id id, failure why, promise<result<job>> reply);
  void retry(job_id id, promise<result<job>> reply);
  void remove(job_id id, promise<void_result> reply);
  template <class T>  // job, or job_ptr
  void wait(job_id id, promise<result<T>> reply, wait_limits limits);
  void reload(const job_ptr& trimmed, detail::ack_reply reply);
  void lease_job(job_id id, lease_request request, promise<result<leased_job>> reply);
  void peek(std::string name, job_state state, promise<result<job>> reply);
  void kick(std::string name, std::uint64_t max, promise<result<kicked_jobs>> reply);
  void configure(std::string name, queue_patch patch, promise<result<queue_info>> reply);
  void purge(std::string name, promise<result<std::uint64_t>> reply);

  future<result<batch_receipt>> push_empty_batch(std::shared_ptr<detail::batch_plan> plan);
  void close_batch(job_id id, promise<result<batch_info>> reply);
  enum class batch_act : std::uint8_t { cancel, retry };
  void change_batch(job_id id, batch_act act, promise<result<std::uint64_t>> reply);

  // On the reading thread.
  template <class T, class Read>
  future<result<T>> read(Read query);
  future<result<job>> read_job(job_id id);
  future<result<job_page>> read_list(list_request request);
  void reader_failed(const error& why);

  const engine_options options_;
  time_source& time_;
  const std::unique_ptr<store> store_;  // used with commit_mutex_ held, but for describe()

  mutable mutex mutex_;
  detail::core core_;                            // protected by mutex_
  std::vector<store_call> calls_;                // protected by mutex_
  bool stopping_ = false;                        // protected by mutex_
  bool has_shut_down_ = false;                   // protected by mutex_: the last round has ended
  time_point sleeps_until_ = time_point::max();  // protected by mutex_
  histogram commit_times_;

 private:
  struct purge_state;
  struct kick_state;
  struct batch_change;
  // Cursor of a search through the jobs of a queue: continue after this due time, or this id.
  struct place_in_queue {
    due_place due{};
    job_id id = 0;
  };
  struct found_jobs {
    std::vector<job> jobs;
    std::optional<place_in_queue> next;  // none: these were the last
  };
  using when_changed = unique_function<void(result<job> changed, detail::answers& replies)>;
  // Jobs that a round may evict, in eviction order.
  struct found_victims {
    std::unordered_map<detail::queue_state*, std::deque<job_ptr>> by_queue;
    std::uint64_t bytes = 0;
  };

  // Calls `act(job, lease, reply, answers)` with the lock held if the job exists and has no other
  // pending change.
  template <class T, class Act>
  void with_job(job_id id, promise<result<T>> reply, Act act);
  void mark_damaged();
  struct ending {
    job_state state = job_state::cancelled;  // or dead
    std::optional<attempt_error> why{};      // if it is dead
  };
  void stage_end(job j, detail::lease_state* l, ending as, when_changed reply);
  void ended_without_worker(const job& j, detail::answers& replies);
  milliseconds keep_after(const detail::queue_state& q, const job_spec& spec, job_state as) const;
  void stage_retry(job j, when_changed reply);
  void stage_ready(job j, when_changed reply);
  void find_pages(std::shared_ptr<batch_change> b);
  void batch_step(std::shared_ptr<batch_change> b);
  void publish_unless_removed(const job_ptr& job, const error& why);
  job_page running_page(const list_request& request);
  error no_more_reads() const;
  void run();
  enum class run_by : std::uint8_t { committer, caller };
  // Returns false if there was no work. `flush_replies` is called after jobs were leased before
  // their commit.
  bool round(run_by thread, const flush_call& flush_replies = {});
  void gather();
  bool more_may_come() const;  // with both locks held
  bool commits_fast() const;
  void read_windows(const std::vector<detail::queue_state*>& queues, detail::answers& out);
  void read_due(detail::answers& out);
  void evict_for_pushes(detail::answers& out);
  std::optional<error> choose_victims(detail::push_item& item, found_victims& found);
  void stage_due(const job_ptr& job, unix_time wall);
  void write(detail::commit c, const flush_call& flush_replies = {});
  void hand_over(detail::commit& c, const flush_call& flush_replies);
  void read_args_of_ends(detail::commit& c);
  result<applied> apply(const transaction& staged);
  void store_failed(const error& why, detail::answers& out);
  void announce();
  void delete_saved_leases();
  void probe(time_point now);
  void flush_if_due(time_point now);
  void watch_store(time_point now);
  void read_failed(const error& why, detail::answers& out);
  // As read_failed, without the lock, for a call that fails with it.
  template <class T>
  void answer_failed_read(const error& why, promise<result<T>> reply) {
    detail::answers out;
    {
      const std::lock_guard hold(mutex_);
      read_failed(why, out);
    }
    announce();
    out.add(std::move(reply), result<T>(why));
    out.deliver();
  }
  time_point next_probe_or_flush() const;
  void finish();
  void purge_step(std::shared_ptr<purge_state> p);
  void stage_purge(const std::shared_ptr<purge_state>& p, const job_ptr& gone);
  change drop_of(const job_ptr& job);
  void touch_queue_of(const job& gone);
  void peek_ready(std::string name, position after, promise<result<job>> reply);
  static std::uint64_t count_of(const detail::queue_state& q, job_state state);
  void peek_page(std::string name, job_state state, place_in_queue after,
                 promise<result<job>> reply);
  void kick_step(std::shared_ptr<kick_state> k);
  result<found_jobs> find_jobs(queue_number queue, job_state state, place_in_queue after,
                               std::size_t limit);

  // A thread that calls commit_here: for which engine, and its work since the previous call.
  struct local_commit {
    std::uint64_t engine_number = 0;  // its number: a new engine may have the address of an old one
    bool has_staged = false;
    bool has_unsent_replies = false;  // of its previous commit
    time_point replies_sent_at{};
  };
  static thread_local local_commit local_commit_;
  static std::uint64_t next_number() noexcept;
  const std::uint64_t number_ = next_number();

  event wake_;
  mutex commit_mutex_;  // the right to commit; locked before mutex_
  spin_lock stops_guard_;
  std::vector<std::uint64_t> stops_;  // protected by stops_guard_: waits with a stop request

  // Protected by commit_mutex_.
  // Changes in the next commit if all callers of this one call again.
  std::size_t expected_changes_ = 0;
  time_point replies_sent_at_{};
  std::chrono::nanoseconds last_commit_{0};
  std::chrono::nanoseconds commit_before_{0};
  std::optional<jobs::health> pending_health_;
  bool has_changed_queue_ = false;  // announced with it
  bool has_saved_leases_ = false;   // in the store, from the previous process
  time_point probe_at_ = time_point::max();
  time_point flush_at_ = time_point::max();
  time_point watch_at_ = time_point::max();

  std::unique_ptr<store_reader> reader_;  // used only by the thread of reads_
  thread_pool reads_;
  mutex ending_;            // held by stop(): one caller joins, the others wait
  seam::thread committer_;  // last: it uses all members above
};

}  // namespace sluice::jobs
