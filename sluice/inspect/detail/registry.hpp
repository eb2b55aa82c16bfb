#pragma once

// What is known of the program while inspect is on: all waits, who holds what, who uses which queue
// from which side, how often each object was waited for.
//
// There is one for the process, made when inspect is first turned on and never destroyed: a wait
// that was reported may outlast the time for which it is on.

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
#include "sluice/sync/spin_lock.hpp"
#include "sluice/sync/watch.hpp"

namespace sluice::inspect::detail {

class registry final : public watch::observer {
 public:
  // Made by the first call.
  static registry& get();

  // One after the other. `time` must outlive its use.
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
  // A semaphore that was given back by one who had not taken it tells something: who has its
  // permits says nothing about who will give some.
  bool is_signal(const void* object);
  // It has ended: somebody else finds room in its place.
  void forget_user(const void* object, watch::side which, watch::party by) noexcept;
  // What did not fit into the tables.
  std::uint64_t left_out() const noexcept { return left_out_.load(relaxed); }

  // ---- watch::observer

  void waits(watch::wait_record& w) noexcept override;
  void waits_no_more(watch::wait_record& w) noexcept override;
  void took(const watch::hold& h) noexcept override;
  void gave(const void* object, watch::party by, std::int64_t count) noexcept override;
  void used(const void* object, watch::side which, watch::party by) noexcept override;
  void gone(const void* object) noexcept override;

 private:
  registry();

  struct alignas(64) wait_shard {
    spin_lock guard;
    intrusive_list<watch::wait_record> all;  // protected by guard
  };
  struct signal_mark {
    const void* object = nullptr;
    std::uint64_t number = 0;
    bool is_semaphore = false;
  };
  static constexpr std::size_t shards = 32;
  static bool copy(wait_shard& from, wait_copies& to);  // false: there was too little room

  using hold_table = fixed_table<seen_hold, shards, 64>;
  // Apart from the locks, which a scope of many children would leave no room.
  using runner_table = fixed_table<seen_hold, 8, 512>;

  // With the shard of the object locked: the entry that goes when this party gives back.
  static seen_hold* holder_for(hold_table::shard& all, const void* object,
                               watch::party by) noexcept;
  enum class known_as : std::uint8_t { anything, semaphore };
  void begin_job(const watch::hold& h) noexcept;
  bool end_job(const void* object, watch::party by) noexcept;  // false: nobody runs it
  void join_crew(const watch::hold& h) noexcept;
  bool leave_crew(const void* executor, watch::party by) noexcept;
  void mark_signal(const void* object, known_as what) noexcept;
  void is_semaphore(const void* object) noexcept;  // if it is marked, it is no promise
  void count_wait(watch::wait_record& w, bool again) noexcept;
  void count_end(const watch::wait_record& w) noexcept;
  void leave_out() noexcept { left_out_.fetch_add(1, relaxed); }

  atomic<bool> on_{false};
  atomic<clock*> clock_;  // changed with release, so that its clock is seen whole
  atomic<bool> with_order_{false};
  atomic<std::uint64_t> numbers_{1};
  atomic<std::uint64_t> left_out_{0};
  std::array<wait_shard, shards> waits_{};
  hold_table holds_;
  runner_table runners_;
  fixed_table<seen_crew, 8, 1024> crews_;  // a pool is in one shard, with all its threads
  fixed_table<seen_uses, shards, 16> uses_;
  fixed_table<seen_contention, shards, 32> contention_;
  fixed_table<signal_mark, shards, 32> signals_;
  lock_graph order_;
};

}  // namespace sluice::inspect::detail
