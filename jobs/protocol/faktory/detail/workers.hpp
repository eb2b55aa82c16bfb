#pragma once

// The workers of this protocol, their connections, and the jobs that each has fetched.
//
// A worker is identified by its wid and may have many connections; any of them may ack a job that
// another fetched. A connection without a wid is a separate worker, which is not listed; since
// clients without a wid may have many connections, too, these may ack each other's jobs. The jobs
// of a worker are returned to the caller, for release, when its last connection leaves, or when its
// beats stop. After that it holds no job, even if it returns with the same wid: another worker may
// have its jobs.
//
// Guarantees: any thread may call any function; one short lock. Bounds: at most one job per lease,
// and one worker per connection.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "jobs/model/faktory_worker.hpp"
#include "jobs/model/requests.hpp"
#include "jobs/protocol/faktory/detail/calls.hpp"
#include "sluice/sync/mutex.hpp"

namespace sluice::jobs::faktory {

struct held_job {
  lease_ref lease{};
  std::uint32_t attempt = 1;  // counted from 1
  std::uint32_t losses = 0;   // consecutive lost workers before this attempt
  bool is_ours = false;       // as of job_facts
  std::optional<std::int64_t> backtrace_lines{};
};

class workers {
 public:
  using connection = std::uint64_t;

  connection enter();
  // Called after HELLO. An empty wid: a separate worker.
  void introduce(connection id, const hello_call& call, unix_time now);
  // Removes a connection. Returns the worker's jobs if it was the last one.
  std::vector<held_job> leave(connection id);

  void add_job(connection id, const std::string& jid, held_job job);
  // Drops the jobs of a worker whose leases expired, if it holds many jobs.
  void forget_ended(connection id, const std::function<bool(job_id)>& is_leased);
  // Finds the job with this jid that the worker holds; of several, the oldest. A worker without a
  // wid then searches the jobs of the other workers without a wid.
  std::optional<held_job> find(connection id, const std::string& jid) const;
  std::optional<held_job> remove_job(connection id, const std::string& jid);
  struct fetched {
    std::string jid{};
    lease_ref lease{};
  };
  // Returns the jobs of all workers.
  std::vector<fetched> all_fetched() const;
  void remove_job(const fetched& job);

  enum class beat_result : std::uint8_t { unknown, known };
  struct beat_answer {
    beat_result is = beat_result::unknown;
    worker_state requested = worker_state::running;  // running: no change requested
  };
  beat_answer beat(const beat_call& call, unix_time now);
  // Returns when the worker of this connection will be lost without a BEAT; none: it has no wid.
  std::optional<unix_time> lost_at(connection id, milliseconds silence) const;
  // Returns the worker's jobs if its beats stopped for `silence`, and removes them.
  std::vector<held_job> lose(connection id, milliseconds silence, unix_time now);

  // Requests a state; returns the worker. None: no such worker.
  std::optional<faktory_worker> set_state(const std::string& wid, worker_state state);
  void set_all_states(worker_state state);  // also of workers that connect later
  bool is_stopping(connection id) const;    // must be quiet or terminate

  // Returns at most `limit` workers with a wid, in the order of wids, from the first behind
  // `after`.
  faktory_worker_page list(const std::string& after = {}, std::size_t limit = 1000) const;
  struct totals {
    std::uint64_t workers = 0;
    std::uint64_t jobs = 0;
    std::uint64_t lost = 0;  // since the start
  };
  totals count() const;

 private:
  static constexpr std::size_t forget_threshold_min = 1024;

  using held_by_jid = std::set<std::pair<std::string, job_id>>;
  struct worker {
    faktory_worker shown{};                          // without its state and its number of jobs
    worker_state requested = worker_state::running;  // by the server; running: no request
    worker_state reported = worker_state::running;   // by the worker's BEAT
    std::size_t connections = 0;
    bool has_beaten = false;
    bool is_lost = false;
    held_by_jid jobs{};
    std::size_t forget_threshold = forget_threshold_min;  // number of jobs for forget_ended
  };
  struct holding {
    held_job job{};
    worker* by = nullptr;
    held_by_jid::iterator at{};  // in by->jobs
  };
  using held_map = std::unordered_map<job_id, holding>;

  held_map::const_iterator find_locked(connection id, const std::string& jid) const;
  void forget(held_map::const_iterator it);
  std::vector<held_job> remove_all(worker& w);
  static void request(worker& w, worker_state state);
  static faktory_worker shown(const worker& w);

  mutable mutex mutex_;
  // Protected by mutex_.
  connection last_ = 0;
  std::unordered_map<connection, std::shared_ptr<worker>> connections_;
  std::map<std::string, std::shared_ptr<worker>, std::less<>> by_wid_;
  held_map held_;
  held_by_jid nameless_;  // the jobs in held_ of workers without a wid
  worker_state initial_state_ = worker_state::running;
  std::uint64_t lost_ = 0;
};

}  // namespace sluice::jobs::faktory
