#pragma once

// Who works: the workers of this protocol with their connections, and what each has fetched.
//
// A worker is known by its wid and may have many connections; one that fetched a job need not be
// the one that acks it. A connection that named no wid is a worker of its own, which nobody lists;
// as clients without one may have many connections, too, any of these may ack what another fetched.
// What a worker holds is handed out to be given back when its last connection leaves, or when it
// has beaten before and then was silent for too long. From then on it holds nothing, also when it
// comes back under the same wid: somebody else may have its jobs by now.
//
// Guarantees: any thread may call anything; one short lock. Bounds: as many jobs as there are
// leases, as many workers as there are connections.

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
  std::uint32_t losses = 0;   // workers that were lost with it, one after the other, before this
  bool is_ours = false;       // as of job_facts
  std::optional<std::int64_t> backtrace_lines{};
};

class workers {
 public:
  using connection = std::uint64_t;

  connection enter();
  // It has said who it is. An empty wid: a worker of its own.
  void introduce(connection who, const hello_call& said, unix_time now);
  // It has gone, and gives back these.
  std::vector<held_job> leave(connection who);

  void took(connection who, const std::string& jid, held_job job);
  // Of a worker that holds many: forgets those whose leases have run out.
  void forget_ended(connection who, const std::function<bool(job_id)>& is_leased);
  // The job that a jid stands for among those that this worker holds; of several the oldest. For
  // one without a name: if it has none, among those of the others without a name.
  std::optional<held_job> find(connection who, const std::string& jid) const;
  std::optional<held_job> put_down(connection who, const std::string& jid);
  struct fetched {
    std::string jid{};
    lease_ref lease{};
  };
  // Everything that anybody holds.
  std::vector<fetched> all_fetched() const;
  void put_down(const fetched& it);

  enum class beat_result : std::uint8_t { unknown, heard };
  struct beat_answer {
    beat_result is = beat_result::unknown;
    worker_state to_be = worker_state::running;  // running: as it is
  };
  beat_answer beat(const beat_call& said, unix_time now);
  // When to look whether the worker of this connection is lost; none: it has no name.
  std::optional<unix_time> lost_at(connection who, milliseconds silence) const;
  // What it gives back, if it is.
  std::vector<held_job> lose(connection who, milliseconds silence, unix_time now);

  // What is known of it then. None: there is none.
  std::optional<faktory_worker> tell(const std::string& wid, worker_state what);
  void tell_all(worker_state what);    // and whoever comes from now on
  bool is_told(connection who) const;  // to be quiet, or to end

  // Those behind this wid, in their order.
  faktory_worker_page list(const std::string& after = {}, std::size_t limit = 1000) const;
  struct totals {
    std::uint64_t workers = 0;
    std::uint64_t jobs = 0;
    std::uint64_t lost = 0;  // since the start
  };
  totals count() const;

 private:
  static constexpr std::size_t looks_at_jobs_first = 1024;

  using held_by_jid = std::set<std::pair<std::string, job_id>>;
  struct worker {
    faktory_worker shown{};  // but its state, which is one of these two, and its jobs
    worker_state told = worker_state::running;  // what the server wants of it; running: nothing
    worker_state said = worker_state::running;  // what it does by itself
    std::size_t connections = 0;
    bool has_beaten = false;
    bool is_lost = false;
    held_by_jid jobs{};                               // what it holds
    std::size_t looks_at_jobs = looks_at_jobs_first;  // when it holds so many: forget_ended
  };
  struct holding {
    held_job job{};
    worker* by = nullptr;
    held_by_jid::iterator at{};  // in what it holds
  };
  using held_map = std::unordered_map<job_id, holding>;

  held_map::const_iterator find_locked(connection who, const std::string& jid) const;
  void forget(held_map::const_iterator it);
  std::vector<held_job> empty_hands(worker& who);
  static void tell(worker& who, worker_state what);
  static faktory_worker shown(const worker& who);

  mutable mutex mutex_;
  // Protected by mutex_.
  connection last_ = 0;
  std::unordered_map<connection, std::shared_ptr<worker>> connections_;
  std::map<std::string, std::shared_ptr<worker>, std::less<>> by_wid_;
  held_map held_;
  held_by_jid nameless_;  // of these, what workers without a name hold
  worker_state for_newcomers_ = worker_state::running;
  std::uint64_t lost_ = 0;
};

}  // namespace sluice::jobs::faktory
