#pragma once

// The records of inspect while it is on: all waits, the holders of locks and permits, the users of
// each end of a queue, the contention of each object.
//
// One per process, constructed when inspect is first turned on and never destroyed: a reported wait
// may end after inspect was turned off.

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "sluice/base/atomic.hpp"
#include "sluice/base/clock.hpp"
#include "sluice/base/intrusive_list.hpp"
#include "sluice/inspect/detail/fixed_table.hpp"
#include "sluice/inspect/detail/lock_graph.hpp"
#include "sluice/inspect/detail/seen.hpp"
#include "sluice/inspect/detail/wait_copies.hpp"
#include "sluice/sync/detail/wait_report.hpp"
#include "sluice/sync/spin_lock.hpp"

namespace sluice::inspect::detail {

class registry final : public wait_report::observer {
 public:
  // Constructed by the first call.
  static registry& get();

  // Calls must alternate. `time` must outlive all its uses.
  void turn_on(clock& time, bool with_lock_order, inversion_report report);
  void turn_off();
  bool is_on() const noexcept { return on_.load(relaxed); }

  time_point now() const noexcept { return clock_.load(acquire)->now(); }
  std::vector<seen_wait> waits();
  std::vector<seen_hold> holds();  // locks and permits
  std::vector<seen_hold> runners();
  std::vector<seen_crew> crews();
  std::vector<seen_uses> uses();
  std::vector<seen_contention> contention();
  // Returns true for a semaphore that was released by a party that had not acquired it: its holders
  // are not the parties that will release it.
  bool is_signal(const void* object);
  // Removes a user that has ended, which frees its entry for another one.
  void forget_user(const void* object, wait_report::side which, wait_report::party by) noexcept;
  // Returns the number of records that did not fit into the tables.
  std::uint64_t left_out() const noexcept { return left_out_.load(relaxed); }

  // ---- wait_report::observer

  void wait_started(wait_report::wait_record& w) noexcept override;
  void wait_ended(wait_report::wait_record& w) noexcept override;
  void took(const wait_report::hold& h) noexcept override;
  void gave(const void* object, wait_report::party by, std::int64_t count) noexcept override;
  void used(const void* object, wait_report::side which, wait_report::party by) noexcept override;
  void destroyed(const void* object) noexcept override;

 private:
  registry();

  struct alignas(64) wait_shard {
    spin_lock guard;
    intrusive_list<wait_report::wait_record> all;  // protected by guard
  };
  struct signal_mark {
    const void* object = nullptr;
    std::uint64_t number = 0;
    bool is_semaphore = false;
  };
  static constexpr std::size_t shards = 32;
  static bool copy(wait_shard& from, wait_copies& copies);  // false: capacity too small

  using hold_table = fixed_table<seen_hold, shards, 64>;
  // Separate from the locks: a scope with many children would leave them no capacity.
  using runner_table = fixed_table<seen_hold, 8, 512>;

  // Must hold the lock of the object's shard. Returns the entry that a release by this party ends.
  static seen_hold* holder_for(hold_table::shard& all, const void* object,
                               wait_report::party by) noexcept;
  enum class known_as : std::uint8_t { anything, semaphore };
  void begin_job(const wait_report::hold& h) noexcept;
  // Returns false if no runner of the object is known.
  bool end_job(const void* object, wait_report::party by) noexcept;
  void join_crew(const wait_report::hold& h) noexcept;
  bool leave_crew(const void* executor, wait_report::party by) noexcept;
  void mark_signal(const void* object, known_as known) noexcept;
  void is_semaphore(const void* object) noexcept;  // keeps an existing mark from being evicted
  void count_wait(wait_report::wait_record& w, bool again) noexcept;
  void count_end(const wait_report::wait_record& w) noexcept;
  void leave_out() noexcept { left_out_.fetch_add(1, relaxed); }

  atomic<bool> on_{false};
  atomic<clock*> clock_;  // stored with release: now() must see the clock's contents
  atomic<bool> with_order_{false};
  atomic<std::uint64_t> numbers_{1};
  atomic<std::uint64_t> left_out_{0};
  std::array<wait_shard, shards> waits_{};
  hold_table holds_;
  runner_table runners_;
  fixed_table<seen_crew, 8, 1024> crews_;  // all threads of a pool are in one shard
  fixed_table<seen_uses, shards, 16> uses_;
  fixed_table<seen_contention, shards, 32> contention_;
  fixed_table<signal_mark, shards, 32> signals_;
  lock_graph order_;
};

}  // namespace sluice::inspect::detail
