#pragma once

// The single thread of a worker that makes its decisions: when to lease, which jobs to start, which
// leases to extend, which handlers to stop, what to report to the source. All other threads send it
// messages, so its state needs no lock.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "jobs/worker/detail/assignment.hpp"
#include "jobs/worker/detail/inbox.hpp"
#include "jobs/worker/worker.hpp"
#include "sluice/executor/thread_pool.hpp"

namespace sluice::jobs::detail {

struct registry {
  std::map<std::string, job_handler, std::less<>> by_kind;
  std::optional<job_handler> others;

  job_handler* find(std::string_view kind);
};

// Written by the coordinator, read by any thread. relaxed throughout: they order nothing.
struct counters {
  atomic<std::uint64_t> succeeded{0}, failed{0}, given_back{0}, lost{0}, abandoned{0};
  atomic<std::uint64_t> running{0}, waiting{0}, unsettled{0};
  atomic<std::uint64_t> lease_calls{0}, ack_calls{0}, extend_calls{0};
};

class coordinator {
 public:
  // All arguments must outlive `run`.
  coordinator(work_source& from, const worker_options& o, registry& handlers, thread_pool& pool,
              counters& counts, std::shared_ptr<inbox> messages);

  // Returns after `close`, when every end is reported or the time for reporting has passed.
  void run();
  // Called after `run`. Blocks until all handlers have returned, including the abandoned ones.
  void await_handlers();

 private:
  using assignment_ptr = std::shared_ptr<assignment>;
  using event_kind = worker_event::event_kind;

  void take(lease_reply m);
  void take(handler_ended m);
  void take(extend_reply m);
  void take(end_reply m);
  void take(ack_replies m);
  void take(notes_added m);
  void take(notes_reply m);
  void take(command c);

  // Leasing.
  std::size_t free_slots() const;
  bool wants_lease() const;
  void lease_if_needed();
  void adopt(leased_job leased);
  void source_answered();
  void source_failed(const error& why);

  // Running.
  void start_waiting();
  void start(const assignment_ptr& a);
  void refuse_kind(const assignment_ptr& a);
  void ask_to_stop(assignment& a, stop_reason why);
  void drop_waiting(assignment& a);

  // Lease extension and other due times.
  void set_lease_end(assignment& a, unix_time until, time_point from);
  void handle_due(const assignment_ptr& a);
  void extend(assignment& a);
  void give_up(const assignment_ptr& a);
  void lose(assignment& a, std::string why);
  void reschedule(assignment& a);
  deadline next_wake() const;

  // Progress and log lines of running handlers.
  void send_notes(assignment& a);

  // Reporting to the source.
  end_report report_for(const assignment& a, job_outcome outcome) const;
  failure stopped_failure(const assignment& a, const failure* from_handler) const;
  void report_end(assignment& a, end_report report);
  void send(assignment& a);
  void send_acks();
  void take_reply(assignment& a, const void_result& reply);
  void settle(assignment& a);
  void erase_if_finished(assignment& a);
  void emit(event_kind kind, const assignment* a, std::string text = {}) const;

  bool is_finished() const;
  void lose_unsettled();
  time_point now() const noexcept { return time_.timers().now(); }
  assignment_ptr find(assignment_id id) const;

  // Constant after construction.
  work_source& source_;
  const worker_options& options_;
  registry& handlers_;
  thread_pool& pool_;
  counters& counts_;
  time_source& time_;
  const std::shared_ptr<inbox> inbox_;

  std::unordered_map<assignment_id, assignment_ptr> all_;
  std::set<std::pair<time_point, assignment_id>> due_;  // one per assignment with a due time
  std::deque<assignment_id> waiting_;                   // to be started, in order
  std::vector<assignment_id> acks_;                     // for the next ack call
  bool acking_ = false;
  std::size_t running_ = 0;
  std::size_t settling_ = 0;
  assignment_id last_id_ = 0;

  bool closed_ = false;
  bool leasing_ = false;
  std::stop_source stop_leasing_;
  time_point lease_at_{};  // no lease call before: backoff while the source is unavailable
  bool unavailable_ = false;
  sluice::retry_policy backoff_;
  std::optional<retry_delays> delays_;
  time_point final_at_ = never;   // end of reporting
  bool reporting_ended_ = false;  // final_at_ has passed
};

}  // namespace sluice::jobs::detail
