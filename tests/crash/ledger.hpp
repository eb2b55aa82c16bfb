#pragma once

// Checks that a job server that was killed or lost its disk kept its guarantees: records all
// requests, answers and leases of the clients, and judges them.
//
// A client gets a token for every job, and calls the ledger before each request and again after its
// answer. After the last restart it leases and acks all remaining jobs; then `judge` counts:
//
//   lost        an acknowledged job was not delivered after its last open lease, although no ack of
//               it was acknowledged, nor could have been (no ack is unanswered)
//   unexpected  a delivered job was never pushed, or its push was rejected, or its contents differ
//   doubled     delivered while another lease on it was open, in one life of the server, or ended
//               by a worker after it had been delivered to another
//   revived     delivered again, or missing, after its end had been acknowledged; or requested and
//               delivered after its cancellation or deletion had been acknowledged
//   early       delivered before its time, before the pause of a failure had passed, or before the
//               end of a job that it waits for had been requested
//   twins       two jobs held a unique key at a time
//   denied      a push was rejected as a duplicate while no job could have held its key
//
// These are violations. A job may be delivered again if it was leased when the server ended or its
// ack was never answered (`redelivered`), or if its lease may have expired (`expired`). For keys
// that are not held until the job's end, only twins are judged.
//
// Guarantees: any thread may call any function. Clients must have stopped when `crashed` is called.

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "jobs/model/job.hpp"
#include "sluice/sync/guarded.hpp"

namespace sluice::crash {

using token = std::uint64_t;  // counts from 1

// The outcome of a request, as seen by its client.
enum class answer : std::uint8_t {
  none,  // unknown: the connection broke, or the error leaves it open
  yes,
  no  // it was not executed, and will not be
};

using jobs::unix_time;

inline constexpr unix_time never{std::numeric_limits<std::int64_t>::max()};

// The terms of a push, in addition to its contents.
struct push_terms {
  std::string key{};
  jobs::unique_until until = jobs::unique_until::done;
  unix_time not_before{};
  unix_time key_until{};       // for `elapsed`: held at least until then, if the push is accepted
  std::vector<token> after{};  // jobs that must end before this one is delivered
};

// One lease: when it was requested (in calls of the ledger), when the job was delivered, and until
// when it is certainly held. Times of day are those of the server's clock.
struct lease_terms {
  std::uint64_t asked = 0;
  unix_time came{};
  unix_time held_until = never;
  // The job's attempt, from 1. Orders leases that are recorded in the wrong order. 0: unknown.
  std::uint32_t attempt = 0;
};
using lease_number = std::uint64_t;  // zero: the open lease

struct verdict {
  std::uint64_t attempted = 0, acknowledged = 0, refused = 0, unanswered = 0;  // pushes
  std::uint64_t leases = 0, redelivered = 0, done = 0, failed = 0, dead = 0, crashes = 0;
  std::uint64_t expired = 0, extended = 0, called_off = 0, retried = 0, results = 0;
  std::uint64_t duplicates = 0;  // pushes, also counted as refused
  std::uint64_t called = 0;      // delivered jobs that had waited for others
  std::uint64_t lost = 0, unexpected = 0, doubled = 0, revived = 0, twins = 0, denied = 0;
  std::uint64_t early = 0;
  std::vector<token> lost_jobs;
  std::vector<std::string> findings;  // descriptions of the first violations

  bool ok() const noexcept {
    return lost + unexpected + doubled + revived + twins + denied + early == 0;
  }
  std::string to_string() const;
  // Adds the counts and findings of `more`.
  void add(const verdict& more);
};

namespace detail {

enum class ledger_stage : std::uint8_t { waiting, leased, acking, failing, burying, done, dead };

// Times are numbers of ledger calls, unless they are of type unix_time.
struct ledger_record {
  std::string contents;
  push_terms terms;
  std::string result;             // of the acknowledged ack
  std::uint64_t asked_at = 0;     // the push was requested
  std::uint64_t answered_at = 0;  // the push was acknowledged
  std::uint64_t ending_at = 0;    // its end was first requested
  std::uint64_t ended_at = 0;     // its end was acknowledged
  answer push = answer::none;
  ledger_stage now = ledger_stage::waiting;
  std::uint32_t life = 0;       // of the server, in which `now` began
  bool end_unanswered = false;  // an ack or a bury had no answer, so the job may have ended
  bool found_dead = false;
  bool found_result = false;
  bool retry_unanswered = false;  // so the job may still be dead

  lease_number lease = 0;
  std::uint64_t first_asked = 0;  // the first lease was requested
  std::uint32_t attempt = 0;      // of the lease
  unix_time came{};
  unix_time held_until = never;
  unix_time not_before{};
  unix_time pause_until{};  // if the pending failure is accepted

  bool off_asked = false;       // a cancel or delete was requested
  bool off_unanswered = false;  // so the job may be cancelled or deleted
  bool deleted = false;
  std::uint64_t off_at = 0;  // the cancel or delete was acknowledged
  std::uint32_t off_life = 0;
};
struct ledger_state {
  std::vector<ledger_record> records;
  std::unordered_map<std::string, std::vector<token>> by_key;
  verdict so_far;
  std::uint64_t clock = 0;
  std::uint32_t life = 1;

  ledger_record& of(token id);
  void object(std::uint64_t& count, token id, std::string_view finding);
  void begin_end(token id, lease_number by, ledger_stage next);
  void finish_end(token id, lease_number by, answer outcome, ledger_stage next);
  void check_twins(token id, unix_time now);
  std::uint64_t count_started_twins(token id) const;
  bool is_expected(token id, std::string_view contents);
  void check_prerequisites(token id);
};

}  // namespace detail

class ledger {
 public:
  // Called before a push. `contents` is all that must come back with the job.
  token new_token();
  void pushing(token id, std::string contents, push_terms terms = {});
  // Called with the answer. `at`: a time not before the answer was read.
  void pushed(token id, answer outcome, unix_time at = never);
  // Called if the server rejected the push because another job holds the key.
  void was_duplicate(token id);

  // Called before a lease request. Returns the value for lease_terms::asked.
  std::uint64_t asking();
  // Called with a leased job.
  lease_number leased(token id, std::string_view contents, lease_terms terms = {});
  // Called before and after an ack, a failure to be retried (not before `pause_until`), and a
  // permanent failure.
  void acking(token id, lease_number by = 0);
  void acked(token id, answer outcome, lease_number by = 0, std::string result = {});
  void failing(token id, lease_number by = 0, unix_time pause_until = {});
  void failed(token id, answer outcome, lease_number by = 0);
  void burying(token id, lease_number by = 0);
  void buried(token id, answer outcome, lease_number by = 0);
  // Called before and after an extension: if granted, the lease is certainly held until `until`.
  void extending(token id, unix_time until, lease_number by = 0);
  void extended(token id, answer outcome, unix_time until, lease_number by = 0);

  // Called before and after a cancel or delete.
  void calling_off(token id);
  void called_off(token id, answer outcome, bool deleted);
  // Called after a retry of a dead job, while no other client works with that job.
  void retried(token id, answer outcome);

  // Called when the server has ended without notice: closes every lease.
  void crashed();
  // Called with each dead job at the end.
  void found_dead(token id, std::string_view contents);
  // Called with each done job at the end.
  void found_done(token id, std::string_view contents, std::string_view result);

  // Returns the verdict. Called after all remaining jobs have been leased and acked.
  verdict judge() const;

 private:
  using stage = detail::ledger_stage;
  using record = detail::ledger_record;
  using state = detail::ledger_state;

  guarded<state> state_;
};

}  // namespace sluice::crash
