#pragma once

// The engine's threads: callers, who change the core with the lock held, and the committer. Whoever
// has the turn talks to the store: the committer, or a caller who helps (engine::help).
//
// The committer's round: do what needs the store to be read (windows that run low, jobs whose time
// has come, calls about one job by its id), take all that is staged, commit it, tell the core, give
// the answers. While it commits, the next round is being staged: that is the group commit, and it
// needs no timer to form groups. Jobs that were pushed go to workers who wait for one before the
// commit, and every answer about it comes after: who was told that something is stored can rely on
// it, and a worker need not wait for the disk to begin (docs/decisions/0019).

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
  // A call that reads the store: runs on the committer, without the lock.
  using store_call = unique_function<void()>;

  impl(std::unique_ptr<store> keep, const engine_options& o);
  ~impl();

  void_result start();
  void stop();  // any thread, any number of times: each returns when it has stopped

  // Runs `change` on the core with the lock held, wakes the committer if there is something for
  // it, gives the answers.
  template <class Change>
  void call(Change&& change) {
    detail::answers out;
    bool wake = false;
    {
      const std::lock_guard hold(mutex_);
      change(core_, out);
      core_.tell_events(out);
      wake = out.wake_committer || core_.has_staged() || core_.next_timer() < sleeps_until_;
    }
    if (wake) wake_committer();
    out.deliver();
  }
  // At once, or when this thread helps next.
  void wake_committer() {
    if (helps_.whom == number_) {
      helps_.has_something = true;
    } else {
      wake_.set();
    }
  }
  using between = std::function<void()>;
  bool help(const between& then);
  // The same for a call with one promise, which is refused once the engine has ended. Of a list of
  // answers there are `count`.
  template <class T, class Change>
  future<T> ask(Change&& change) {
    return ask<T>(1, std::forward<Change>(change));
  }
  template <class T, class Change>
  future<T> ask(std::size_t count, Change&& change) {
    promise<T> to;
    future<T> answer = to.get_future();
    call([&](detail::core& c, detail::answers& out) {
      if (is_over_) return out.add(std::move(to), refusal<T>(count));
      change(c, std::move(to), out);
    });
    return answer;
  }
  // The same for a call that reads the store first: `what(promise)` runs on the committer, without
  // the lock.
  template <class T, class What>
  future<T> ask_store(What what) {
    return ask<T>([&](detail::core&, promise<T> to, detail::answers& out) {
      calls_.push_back(
          [what = std::move(what), to = std::move(to)]() mutable { what(std::move(to)); });
      out.wake_committer = true;
    });
  }
  // What everybody hears then.
  static error over() { return {error_code::shutting_down, "the server has shut down"}; }
  template <class T>
  static T refusal(std::size_t count) {
    if constexpr (std::is_same_v<T, status>) {
      return status(status::closed);
    } else if constexpr (std::is_constructible_v<T, error>) {
      return T(over());
    } else {
      return T(count, over());
    }
  }

  // With the lock held.
  void release(detail::core& c, lease_ref lease, give_back how, detail::ack_reply to,
               detail::answers& out);

  // On the committer.
  void cancel(job_id id, promise<result<job>> to);
  void kill(job_id id, failure why, promise<result<job>> to);
  void retry(job_id id, promise<result<job>> to);
  void remove(job_id id, promise<void_result> to);
  void wait(job_id id, promise<result<job>> to, wait_limits limits);
  void reload(const job_ptr& trimmed, detail::ack_reply to);
  void lease_job(job_id id, lease_request what, promise<result<leased_job>> to);
  void peek(std::string name, job_state state, promise<result<job>> to);
  void kick(std::string name, std::uint64_t max, promise<result<kicked_jobs>> to);
  void configure(std::string name, queue_patch patch, promise<result<queue_info>> to);
  void purge(std::string name, promise<result<std::uint64_t>> to);

  future<result<batch_receipt>> push_empty_batch(std::shared_ptr<detail::batch_plan> plan);
  void close_batch(job_id id, promise<result<batch_info>> to);
  enum class batch_act : std::uint8_t { cancel, retry };
  void change_batch(job_id id, batch_act act, promise<result<std::uint64_t>> to);

  // On the thread for reading.
  template <class T, class Read>
  future<result<T>> read(Read what);
  future<result<job>> read_job(job_id id);
  future<result<job_page>> read_list(list_request what);
  void reader_failed(const error& why);

  const engine_options options_;
  time_source& time_;
  const std::unique_ptr<store> store_;  // of who has the turn, but for describe()

  mutable mutex mutex_;
  detail::core core_;                            // protected by mutex_
  std::vector<store_call> calls_;                // protected by mutex_
  bool stopping_ = false;                        // protected by mutex_
  bool is_over_ = false;                         // protected by mutex_: the last round is over
  time_point sleeps_until_ = time_point::max();  // protected by mutex_
  histogram commit_times_;

 private:
  struct purge_state;
  struct kick_state;
  struct batch_change;
  // Where a search through the jobs of a queue goes on: those that are due later, or with a larger
  // id.
  struct place_in_queue {
    due_place due{};
    job_id id = 0;
  };
  struct found_jobs {
    std::vector<job> jobs;
    std::optional<place_in_queue> next;  // none: these were the last
  };
  using when_changed = unique_function<void(result<job> how, detail::answers& then)>;
  // Jobs that a round may drop, in the order in which they go.
  struct found_victims {
    std::unordered_map<detail::queue_state*, std::deque<job_ptr>> of;
    std::uint64_t bytes = 0;
  };

  // Calls `what(job, to, answers)` with the lock held, when there is such a job and no other change
  // of it is on its way.
  template <class T, class What>
  void with_job(job_id id, promise<result<T>> to, What what);
  void mark_damaged();
  struct ending {
    job_state state = job_state::cancelled;  // or dead
    std::optional<attempt_error> why{};      // of one that is dead
  };
  void stage_end(job j, detail::lease_state* l, ending as, when_changed told);
  void ended_without_worker(const job& j, detail::answers& then);
  milliseconds keep_after(const detail::queue_state& q, const job_spec& spec, job_state as) const;
  void stage_retry(job j, when_changed told);
  void stage_ready(job j, when_changed told);
  void find_pages(std::shared_ptr<batch_change> b);
  void batch_step(std::shared_ptr<batch_change> b);
  void publish_unless_gone(const job_ptr& it, const error& why);
  job_page running_page(const list_request& what);
  error no_more_reads() const;
  void run();
  enum class who : std::uint8_t { committer, helper };
  // False: there was nothing to do. `then`, when jobs were handed over before they are stored.
  bool round(who by, const between& then = {});
  void gather();
  bool more_may_come() const;  // with both locks held
  bool commits_fast() const;
  void read_windows(const std::vector<detail::queue_state*>& queues, detail::answers& out);
  void read_due(detail::answers& out);
  void make_room(detail::answers& out);
  std::optional<error> make_room_for(detail::push_item& item, found_victims& found);
  void stage_due(const job_ptr& it, unix_time wall);
  void write(detail::commit c, const between& then = {});
  void hand_over(detail::commit& c, const between& then);
  void read_args_of_ends(detail::commit& c);
  result<applied> apply(const batch& changes);
  void store_failed(const error& why, detail::answers& out);
  void announce();
  void forget_saved_leases();
  void probe(time_point now);
  void flush_if_due(time_point now);
  void watch_store(time_point now);
  void read_failed(const error& why, detail::answers& out);
  // The same, without the lock, for a call that ends with it.
  template <class T>
  void answer_failed_read(const error& why, promise<result<T>> to) {
    detail::answers out;
    {
      const std::lock_guard hold(mutex_);
      read_failed(why, out);
    }
    announce();
    out.add(std::move(to), result<T>(why));
    out.deliver();
  }
  time_point next_probe_or_flush() const;
  void finish();
  void purge_step(std::shared_ptr<purge_state> p);
  void stage_purge(const std::shared_ptr<purge_state>& p, const job_ptr& gone);
  change drop_of(const job_ptr& it);
  void touch_queue_of(const job& gone);
  void peek_ready(std::string name, position after, promise<result<job>> to);
  static std::uint64_t count_of(const detail::queue_state& q, job_state state);
  void peek_page(std::string name, job_state state, place_in_queue after, promise<result<job>> to);
  void kick_step(std::shared_ptr<kick_state> k);
  result<found_jobs> find_jobs(queue_number queue, job_state state, place_in_queue after,
                               std::size_t limit);

  // A thread that helps: which engine, and whether it has staged something since it did so last.
  struct helping {
    std::uint64_t whom = 0;  // its number: where an engine was, another one may be later
    bool has_something = false;
    bool has_to_say = false;  // what became of a commit
    time_point said_at{};
  };
  static thread_local helping helps_;
  static std::uint64_t next_number() noexcept;
  const std::uint64_t number_ = next_number();

  event wake_;
  mutex turn_;  // to commit; taken before mutex_
  spin_lock stops_guard_;
  std::vector<std::uint64_t> stops_;  // protected by stops_guard_: waits whose stop_token asked

  // Protected by turn_.
  std::size_t expected_ = 0;  // changes that the next commit has if everybody comes back
  time_point answered_at_{};
  std::chrono::nanoseconds last_commit_{0};
  std::chrono::nanoseconds commit_before_{0};
  std::optional<jobs::health> to_announce_;
  bool has_changed_queue_ = false;  // to be announced, too
  bool has_saved_leases_ = false;   // in the store, of the process before
  time_point probe_at_ = time_point::max();
  time_point flush_at_ = time_point::max();
  time_point watch_at_ = time_point::max();

  std::unique_ptr<store_reader> reader_;  // of the one thread of reads_
  thread_pool reads_;
  mutex ending_;            // of those who stop: one joins, the others wait for that
  seam::thread committer_;  // last: it uses all of the above
};

}  // namespace sluice::jobs
