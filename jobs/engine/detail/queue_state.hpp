#pragma once

// What the engine knows of one queue: its settings, its counts, the jobs of it that are in memory,
// and those who wait for a job or for room.

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

// Looks at a queue again at a time: when its rate lets the next job start, or its pause is over.
class queue_timer final : public timer {
 public:
  explicit queue_timer(queue_state& q) : queue_(q) {}
  bool claim() noexcept override { return true; }
  void fire() noexcept override;

  core* owner = nullptr;  // while it is armed

 private:
  queue_state& queue_;
};

// The leases of one key. A cancelled job has left its place under the key in the store, but its
// worker may still run it: the next job of the key is ready in the store and must not start yet.
struct key_leases {
  std::uint32_t all = 0;
  std::uint32_t cancelled = 0;            // leases of cancelled jobs
  std::optional<position> passed_over{};  // the first job that was kept from starting, if any
};

struct queue_state {
  std::string name;
  queue_number number = 0;  // zero: only waited for, nothing was ever pushed
  bool is_in_use = false;   // counted in core::used_queues_: more than waited for
  bool is_stored = false;
  bool is_staged = false;  // its settings are on their way to the store
  queue_options options;
  queue_counts counts;  // committed; running stays zero here
  std::uint64_t running = 0;
  std::uint64_t unstored = 0;                        // part of `running`, not counted yet
  std::uint64_t cancelled_leases = 0;                // beside those of `running`
  std::unordered_map<line_number, key_leases> keys;  // that have a lease
  // On their way to the store: they take up room, and are not counted yet. A drop that is staged
  // makes room only when it is committed.
  std::uint64_t staged_jobs = 0;
  std::uint64_t staged_bytes = 0;
  // Of jobs that are dropped in the same commit that adds the ones they make room for.
  std::uint64_t freeing_jobs = 0;
  std::uint64_t freeing_bytes = 0;
  window ready;
  bool wants_refill = false;   // until it was read
  bool is_unreadable = false;  // it could not be read; tried again when the store has recovered
  bool is_touched = false;
  bool is_starved = false;  // in core::starved_
  bool is_stalled = false;  // in core::stalled_
  std::uint32_t pins = 0;   // calls that wait elsewhere with something for this queue
  bucket rate;              // of options.rate
  double passed = 0;        // jobs that were taken from it, each by its weight; see take_fairly
  std::unordered_map<line_number, bucket> key_rates;  // of keys that have started one lately
  std::size_t key_rates_swept = 0;                    // how many were left by the last sweep
  queue_timer wakes{*this};    // armed while its rate is all that its jobs wait for
  time_point paused_until{};   // besides options.paused; in memory only
  queue_timer resumes{*this};  // armed until then
  waiting::line leases;        // calls that wait for a job
  waiting::line pushes;        // calls that wait for room

  std::uint64_t leases_held() const noexcept { return running + cancelled_leases; }
  bool has_room(std::uint64_t jobs, std::uint64_t bytes) const noexcept;
};

}  // namespace sluice::jobs::detail
