#pragma once

// Tells whether a job server that was killed, cut off or starved has kept its word: a record of all
// that clients asked for, were told and were given, and a judgement on it.
//
// A client makes a token for every job, tells the ledger before it asks the server for anything and
// again when the answer is there, and, after the last restart, takes and acknowledges whatever the
// server still has (`verdict` is asked then). From that the ledger knows:
//
//   lost        a push was acknowledged; the job was not given out again after its last open lease,
//               was not acknowledged as done, nor could have been (no ack is without an answer)
//   unexpected  a job came that nobody pushed, whose push was refused, or with other contents
//   doubled     given out while another lease on it was open, in one life of the server, or ended
//               by a worker after another had been given it
//   revived     given out again, or found not to be there, after its end had been acknowledged;
//               or asked for and given out after it was acknowledged as cancelled or deleted
//   early       given out before its time, before the pause of a failure was over, or before
//               anybody had ended a job that it waits for
//   twins       a unique key was given to two jobs at a time
//   denied      a push was called a duplicate while no job could have held its key
//
// None of these may happen. What may: a job that was leased when the server went down, or whose ack
// was never answered, comes again (`redelivered`), as does one whose lease can have run out
// (`expired`). Of keys that are not held to the job's end, only twins are judged.
//
// Guarantees: any thread may call anything. Clients must have stopped when `crashed` is called.

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

// How a request ended, as its client knows.
enum class answer : std::uint8_t {
  none,  // the connection broke, or the answer left it open: it may have been done or not
  yes,
  no  // it was not done, and will not be
};

using jobs::unix_time;

inline constexpr unix_time never{std::numeric_limits<std::int64_t>::max()};

// What a push asks for, beside its contents.
struct push_terms {
  std::string key{};
  jobs::unique_until until = jobs::unique_until::done;
  unix_time not_before{};
  unix_time key_until{};       // for `elapsed`: held until then at least, if the push is accepted
  std::vector<token> after{};  // that must have ended before it is given out
};

// One lease: when it was asked for (in calls of the ledger), when the job came, and how long it is
// surely held. Times of day are those of the server's own clock.
struct lease_terms {
  std::uint64_t asked = 0;
  unix_time came{};
  unix_time held_until = never;
  // Of the job, from 1: which of two leases was first, whoever tells of his first. 0: not known.
  std::uint32_t attempt = 0;
};
using lease_number = std::uint64_t;  // zero: the one that is open

struct verdict {
  std::uint64_t attempted = 0, acknowledged = 0, refused = 0, unanswered = 0;  // pushes
  std::uint64_t leases = 0, redelivered = 0, done = 0, failed = 0, dead = 0, crashes = 0;
  std::uint64_t expired = 0, extended = 0, called_off = 0, retried = 0, results = 0;
  std::uint64_t duplicates = 0;  // pushes, which are among the refused
  std::uint64_t called = 0;      // jobs that had waited for others, and came
  std::uint64_t lost = 0, unexpected = 0, doubled = 0, revived = 0, twins = 0, denied = 0;
  std::uint64_t early = 0;
  std::vector<token> lost_jobs;
  std::vector<std::string> findings;  // the first of what may not happen, for people

  bool ok() const noexcept {
    return lost + unexpected + doubled + revived + twins + denied + early == 0;
  }
  std::string to_string() const;
  // The counts and findings of another one, on top.
  void add(const verdict& more);
};

namespace detail {

enum class ledger_stage : std::uint8_t { waiting, leased, acking, failing, burying, done, dead };

// Times are counted in calls of the ledger.
struct ledger_record {
  std::string contents;
  push_terms terms;
  std::string result;             // with which its ack was acknowledged
  std::uint64_t asked_at = 0;     // for the push
  std::uint64_t answered_at = 0;  // yes to the push
  std::uint64_t ending_at = 0;    // its end was asked for, first time
  std::uint64_t ended_at = 0;     // its end was acknowledged
  answer push = answer::none;
  ledger_stage now = ledger_stage::waiting;
  std::uint32_t life = 0;       // of the server, in which `now` began
  bool end_unanswered = false;  // an ack or a burial had no answer, so it may be gone
  bool found_dead = false;
  bool found_result = false;
  bool retry_unanswered = false;  // so it may be dead still

  lease_number lease = 0;
  std::uint64_t first_asked = 0;  // for the first lease
  std::uint32_t attempt = 0;      // of the lease
  unix_time came{};
  unix_time held_until = never;
  unix_time not_before{};
  unix_time pause_until{};  // if the failure under way is taken

  bool off_asked = false;       // cancelled or deleted
  bool off_unanswered = false;  // so it may be gone
  bool deleted = false;
  std::uint64_t off_at = 0;  // acknowledged
  std::uint32_t off_life = 0;
};
struct ledger_state {
  std::vector<ledger_record> records;
  std::unordered_map<std::string, std::vector<token>> by_key;
  verdict so_far;
  std::uint64_t clock = 0;
  std::uint32_t life = 1;

  ledger_record& of(token it);
  void object(std::uint64_t& count, token it, std::string_view what);
  void begin_end(token it, lease_number by, ledger_stage to);
  void finish_end(token it, lease_number by, answer how, ledger_stage to);
  void check_twins(token it, unix_time now);
  std::uint64_t count_started_twins(token it) const;
  bool came_rightly(token it, std::string_view contents);
  void check_after(token it);
};

}  // namespace detail

class ledger {
 public:
  // A push is about to be asked for. `contents` is all that must come back with the job.
  token new_token();
  void pushing(token it, std::string contents, push_terms terms = {});
  // `at`: when the answer was there, no earlier.
  void pushed(token it, answer how, unix_time at = never);
  // The server said that another job has the key.
  void was_duplicate(token it);

  // A worker is about to ask for jobs: for lease_terms::asked.
  std::uint64_t asking();
  // A worker was given a job.
  lease_number leased(token it, std::string_view contents, lease_terms how = {});
  // A worker is about to say that it is done, that it failed and is to be tried again (not before
  // the pause is over), or that it failed for good; and the answer.
  void acking(token it, lease_number by = 0);
  void acked(token it, answer how, lease_number by = 0, std::string result = {});
  void failing(token it, lease_number by = 0, unix_time pause_until = {});
  void failed(token it, answer how, lease_number by = 0);
  void burying(token it, lease_number by = 0);
  void buried(token it, answer how, lease_number by = 0);
  // A worker is about to ask for more time: the lease is surely held until then if it gets it.
  void extending(token it, unix_time until, lease_number by = 0);
  void extended(token it, answer how, unix_time until, lease_number by = 0);

  // Somebody is about to cancel or to delete a job; and the answer.
  void calling_off(token it);
  void called_off(token it, answer how, bool deleted);
  // A dead job was told to be tried again, while nobody else had anything to do with it.
  void retried(token it, answer how);

  // The server has gone down without notice; every lease is over.
  void crashed();
  // Found among the dead at the end.
  void found_dead(token it, std::string_view contents);
  // Found among the done at the end.
  void found_done(token it, std::string_view contents, std::string_view result);

  // After everything that was left has been taken and acknowledged.
  verdict judge() const;

 private:
  using stage = detail::ledger_stage;
  using record = detail::ledger_record;
  using state = detail::ledger_state;

  guarded<state> state_;
};

}  // namespace sluice::crash
