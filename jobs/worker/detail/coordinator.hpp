#pragma once

// The one thread of a worker that decides: when to lease, what to start, when to extend, whom to
// ask to stop, what to tell the source. Everybody else sends it messages, so nothing here is
// locked.

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

// Counted by the coordinator, read by anybody. relaxed throughout: they order nothing.
struct counters {
  atomic<std::uint64_t> succeeded{0}, failed{0}, given_back{0}, lost{0}, abandoned{0};
  atomic<std::uint64_t> running{0}, waiting{0}, unsettled{0};
  atomic<std::uint64_t> lease_calls{0}, ack_calls{0}, extend_calls{0};
};

class coordinator {
 public:
  // All of them outlive `run`.
  coordinator(work_source& from, const worker_options& o, registry& handlers, thread_pool& pool,
              counters& counts, std::shared_ptr<inbox> messages);

  // Until it was closed and all is told.
  void run();
  // After that: until those handlers have ended, too, that were answered for.
  void await_handlers();

 private:
  using assignment_ptr = std::shared_ptr<assignment>;
  using event_kind = worker_event::what;

  void take(leases_came m);
  void take(handler_ended m);
  void take(lease_extended m);
  void take(told m);
  void take(acks_told m);
  void take(noted m);
  void take(notes_told m);
  void take(command c);

  // Leasing.
  std::size_t room() const;
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

  // Keeping leases, and other things that come with time.
  void lease_lasts(assignment& a, unix_time until, time_point from);
  void look_at(const assignment_ptr& a);  // something about it is due
  void extend(assignment& a);
  void give_up(const assignment_ptr& a);
  void lose(assignment& a, std::string why);
  void reschedule(assignment& a);
  deadline next_wake() const;

  // What handlers say while they run.
  void send_notes(assignment& a);

  // Telling the source.
  last_word word_for(const assignment& a, job_outcome outcome) const;
  failure stopped_failure(const assignment& a, const failure* said) const;
  void tell(assignment& a, last_word word);
  void send(assignment& a);
  void send_acks();
  void heard(assignment& a, const void_result& how);
  void settle(assignment& a);
  void forget_if_over(assignment& a);
  void tell_event(event_kind kind, const assignment* about, std::string text = {}) const;

  bool over() const;
  void end_unsettled();
  time_point now() const noexcept { return time_.timers().now(); }
  assignment_ptr find(ticket which) const;

  // Constant after construction.
  work_source& source_;
  const worker_options& options_;
  registry& handlers_;
  thread_pool& pool_;
  counters& counts_;
  time_source& time_;
  const std::shared_ptr<inbox> inbox_;

  std::unordered_map<ticket, assignment_ptr> all_;
  std::set<std::pair<time_point, ticket>> due_;  // one for each that has something due
  std::deque<ticket> waiting_;                   // to be started, in order
  std::vector<ticket> acks_;                     // to be told with the next call
  bool acking_ = false;
  std::size_t running_ = 0;
  std::size_t settling_ = 0;
  ticket last_ticket_ = 0;

  bool closed_ = false;
  bool leasing_ = false;
  std::stop_source stop_leasing_;
  time_point lease_at_{};  // not before: the source was unavailable
  bool unavailable_ = false;
  sluice::retry_policy backoff_;
  std::optional<retry_delays> delays_;
  time_point final_at_ = never;  // then it ends, told or not
  bool gave_up_ = false;         // it has
};

}  // namespace sluice::jobs::detail
