#pragma once

// Who works: the workers of this protocol with their connections, and what each has fetched.
//
// A worker is known by its wid and may have many connections; one that fetched a job need not be
// the one that acks it. A connection that named no wid is a worker of its own, which nobody lists.
// What a worker holds is handed out to be given back when its last connection leaves, or when it
// has beaten before and then was silent for too long.
//
// Guarantees: any thread may call anything; one short lock. Bounds: as many jobs as there are
// leases, as many workers as there are connections.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "jobs/model/requests.hpp"
#include "jobs/protocol/faktory/detail/calls.hpp"
#include "jobs/protocol/faktory/faktory_server.hpp"
#include "sluice/sync/mutex.hpp"

namespace sluice::jobs::faktory {

struct held_job {
  lease_ref lease{};
  std::uint32_t attempt = 1;  // counted from 1
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
  std::vector<lease_ref> leave(connection who);

  void took(connection who, const std::string& jid, held_job job);
  // Of a worker that holds many: forgets those whose leases have run out.
  void forget_ended(connection who, const std::function<bool(job_id)>& is_leased);
  // The job that a jid stands for: of this worker if it has one of that name, else anybody's.
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
    std::string state{};  // not empty: what the worker is to do
  };
  beat_answer beat(const beat_call& said, unix_time now);
  // When to look whether the worker of this connection is lost; none: it has no name.
  std::optional<unix_time> lost_at(connection who, milliseconds silence) const;
  // What it gives back, if it is.
  std::vector<lease_ref> lose(connection who, milliseconds silence, unix_time now);

  // Tells one, or with an empty wid all. False: there is none.
  bool tell(const std::string& wid, std::string_view state);
  bool is_told(connection who) const;           // to be quiet, or to end
  void tell_newcomers(std::string_view state);  // whoever comes from now on

  std::vector<faktory_server::worker> list() const;
  struct totals {
    std::uint64_t workers = 0;
    std::uint64_t jobs = 0;
    std::uint64_t lost = 0;  // since the start
  };
  totals count() const;

 private:
  static constexpr std::size_t looks_at_jobs_first = 1024;

  struct worker {
    faktory_server::worker shown{};  // but its state, which is one of these two
    std::string told{};              // what the server wants of it; empty: nothing
    std::string said{};              // what it does by itself
    std::size_t connections = 0;
    bool has_beaten = false;
    bool is_lost = false;
    std::unordered_map<job_id, std::string> jids{};   // what it holds
    std::size_t looks_at_jobs = looks_at_jobs_first;  // when it holds so many: forget_ended
  };
  struct holding {
    held_job job{};
    worker* by = nullptr;
  };
  using held_map = std::unordered_multimap<std::string, holding>;

  held_map::iterator find_locked(connection who, const std::string& jid);
  void forget(held_map::iterator it);
  std::vector<lease_ref> empty_hands(worker& who);

  mutable mutex mutex_;
  // Protected by mutex_.
  connection last_ = 0;
  std::unordered_map<connection, std::shared_ptr<worker>> connections_;
  std::map<std::string, std::shared_ptr<worker>, std::less<>> by_wid_;
  held_map held_;
  std::string for_newcomers_;
  std::uint64_t lost_ = 0;
};

}  // namespace sluice::jobs::faktory
