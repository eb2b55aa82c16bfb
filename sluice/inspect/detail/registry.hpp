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
#include "sluice/sync/spin_lock.hpp"
#include "sluice/sync/watch.hpp"

namespace sluice::inspect::detail {

// A wait as it was when it was looked at.
struct seen_wait {
  std::uint64_t number = 0;
  watch::party by{};
  time_point since{};
  bool has_deadline = false;
  bool can_be_stopped = false;
  call_place at{};
  std::vector<watch::subject> on{};      // any one of them ends it
  std::vector<watch::party> holds_up{};  // who cannot go on either before it ends
};

struct seen_hold {
  const void* object = nullptr;
  std::uint64_t number = 0;
  const char* type = "";
  watch::held_as how = watch::held_as::alone;
  watch::party by{};
  std::int64_t count = 0;
  time_point since{};
  call_place at{};
  bool awaited = false;   // by a coroutine, be it of an actor's handler
  bool is_guess = false;  // somebody gave back, and it may have been this one
};

// A thread of an executor that has always the same ones.
struct seen_crew {
  const void* object = nullptr;  // the executor
  watch::party by{};
  std::int64_t count = 0;  // how many there are in all
};

// Who was seen at the two ends of a queue or channel.
struct seen_uses {
  static constexpr std::size_t parties_max = 12;

  const void* object = nullptr;
  std::array<std::array<watch::party, parties_max>, 2> parties{};  // by watch::side
  std::array<bool, 2> more{};                                      // there were others
};

struct seen_contention {
  const void* object = nullptr;  // of an actor: the key of its party
  watch::party actor{};
  const char* type = "";
  std::uint16_t life = 0;  // tells it from others that were in its place
  std::uint64_t waits = 0;
  std::uint64_t in_vain = 0;  // woken, and somebody else had been faster
  std::chrono::nanoseconds waited{0};
  std::chrono::nanoseconds longest{0};
  std::uint32_t waiting = 0;  // right now
  std::uint32_t waiting_most = 0;
};

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
  std::vector<seen_hold> holds();
  std::vector<seen_crew> crews();
  std::vector<seen_uses> uses();
  std::vector<seen_contention> contention();
  // A semaphore that was given back by one who had not taken it tells something: who has its
  // permits says nothing about who will give some.
  bool is_signal(const void* object);
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

  using hold_table = fixed_table<seen_hold, shards, 64>;

  // With the shard of the object locked: the entry that goes when this party gives back.
  static seen_hold* holder_for(hold_table::shard& all, const void* object,
                               watch::party by) noexcept;
  enum class known_as : std::uint8_t { anything, semaphore };
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
  fixed_table<seen_crew, 8, 1024> crews_;  // a pool is in one shard, with all its threads
  fixed_table<seen_uses, shards, 16> uses_;
  fixed_table<seen_contention, shards, 32> contention_;
  fixed_table<signal_mark, shards, 32> signals_;
  lock_graph order_;
};

}  // namespace sluice::inspect::detail
