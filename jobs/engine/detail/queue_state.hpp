#pragma once

// State of one queue: its settings, its counts, its jobs in memory, and the calls that wait for a
// job or for capacity.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>

#include "jobs/engine/detail/bucket.hpp"
#include "jobs/engine/detail/waiting.hpp"
#include "jobs/engine/detail/window.hpp"
#include "jobs/model/queue.hpp"
#include "jobs/store/gates.hpp"
#include "jobs/store/store.hpp"

namespace sluice::jobs::detail {

struct queue_state;
class core;

// Touches a queue at a time: when its rate permits the next job, or its pause ends.
class queue_timer final : public timer {
 public:
  explicit queue_timer(queue_state& q) : queue_(q) {}
  bool claim() noexcept override { return true; }
  void fire() noexcept override;

  core* owner = nullptr;  // while it is armed

 private:
  queue_state& queue_;
};

// The leases of one key. The store has already freed the key of a cancelled job, but its worker may
// still run it: the next job of the key is ready in the store and must not start yet.
struct key_leases {
  std::uint32_t all = 0;
  std::uint32_t cancelled = 0;  // leases of cancelled jobs
  // The first job that was not leased because of them, if any.
  std::optional<position> passed_over{};
};

struct queue_state {
  std::string name;
  queue_number number = 0;  // zero: it has waiting calls, and no job was ever pushed to it
  bool is_in_use = false;   // counted in core::used_queues_: not only waiting calls
  bool is_stored = false;
  bool is_staged = false;  // its settings are in an uncommitted change
  queue_options options;
  queue_counts counts;                 // committed; running stays zero here
  std::uint64_t running = 0;           // leased jobs
  std::uint64_t unstored = 0;          // part of `running`: not committed, so not in counts
  std::uint64_t cancelled_leases = 0;  // in addition to `running`
  std::unordered_map<line_number, key_leases> keys;  // keys with a lease
  // Uncommitted pushes: they use capacity and are not in counts. A staged drop frees capacity only
  // when it is committed.
  std::uint64_t staged_jobs = 0;
  std::uint64_t staged_bytes = 0;
  // Jobs dropped in the commit that adds the jobs evicting them.
  std::uint64_t freeing_jobs = 0;
  std::uint64_t freeing_bytes = 0;
  window ready;
  bool wants_refill = false;   // until the read has ended
  bool is_unreadable = false;  // the read failed; retried when the store has recovered
  bool is_touched = false;
  bool is_starved = false;  // in core::starved_
  bool is_stalled = false;  // in core::stalled_
  std::uint32_t pins = 0;   // waiting calls in other lines that refer to this queue
  bucket rate;              // of options.rate
  double virtual_time =
      0;  // virtual time of fair queuing: leased jobs, each 1/weight; see take_fairly
  std::unordered_map<line_number, bucket> key_rates;  // of keys that have started a job recently
  std::size_t key_rates_swept = 0;                    // entries left by the last sweep
  queue_timer rate_timer{*this};                      // armed while only the rate delays its jobs
  time_point paused_until{};       // in addition to options.paused; in memory only
  queue_timer pause_timer{*this};  // armed until paused_until
  waiting::line leases;            // calls that wait for a job
  waiting::line pushes;            // calls that wait for capacity

  std::uint64_t leases_held() const noexcept { return running + cancelled_leases; }
  bool has_capacity(std::uint64_t jobs, std::uint64_t bytes) const noexcept;
};

}  // namespace sluice::jobs::detail
