#pragma once

// Finds out why all progress has stopped: reports handlers that do not end, and cycles of actors
// that wait for each other.
//
// Use it in every program whose handlers block or ask; it is meant to be always on.
//
// A handler is slow when it has been handling one message for `slow_after`; it is reported once for
// that message. In a cycle each actor is handling a message and waits for the next actor: for
// capacity in its mailbox, or for its reply. A cycle is reported once, when each of its waits is as
// old as `cycle_after`. Reports are made every `period` by the clock's thread, because all threads
// of a pool may be stuck; without functions for them they are lines on standard error.
//
// Guarantees: any thread may call anything; a reported cycle did exist at one moment. An asker
// counts as waiting until the reply arrives, the ask fails, or the message in which it asked is
// finished, even while it still does other work. So with a `min_wait` of zero, two handlers that
// ask each other and do not wait for the replies can look like a cycle while they run. A
// `reentrant` wait (reentrant.hpp) does not count. Every actor that is in a cycle is in one of the
// reported cycles.
// Limits: waits for locks, queues and other futures are not seen, but such a handler is reported as
// slow; nor are waits outside a message, as in a timer's function. sluice::inspect sees all of
// them, and cycles through them, and needs no stall_detector.
// Cost: a lock and a clock reading when a handler begins, a lock when it ends; about 250 bytes for
// each actor.
//
//     stall_detector detector({.slow_after = 5s,
//                              .on_slow = [](const slow_handler& s) { log(s.text()); },
//                              .on_cycle = [](const actor_cycle& c) { log(c.text()); }});
//     actor_system system(pool, {.observer = &detector});

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/actor/actor_observer.hpp"
#include "sluice/actor/detail/actor_names.hpp"
#include "sluice/actor/detail/actor_table.hpp"
#include "sluice/base/clock.hpp"
#include "sluice/executor/inline_executor.hpp"
#include "sluice/future/future.hpp"
#include "sluice/sync/guarded.hpp"

namespace sluice {

// An actor that has been handling one message for long.
struct slow_handler {
  actor_id id = 0;
  std::string name{};
  std::string message{};  // its type
  std::chrono::nanoseconds time{0};
  std::string waits_for{};  // "for capacity in b", "for an answer from b, c"; empty: unknown

  // "actor a has been on message pay for 5 s; it waits for an answer from b"
  std::string text() const;
};

// Actors that wait for each other: each waits for the next, and the last for the first.
struct actor_cycle {
  struct step {
    actor_id id = 0;
    std::string name{};
    std::string message{};  // the type of its current message
    actor_wait reason = actor_wait::capacity;
    std::chrono::nanoseconds time{0};
    std::uint64_t wait = 0;  // the number of the wait
  };
  std::vector<step> steps{};  // the actor with the smallest number first

  // "a -(full mailbox)-> b -(ask)-> a"
  std::string text() const;
};

struct stall_detector_options {
  std::chrono::nanoseconds period = std::chrono::seconds(1);  // zero: only on demand
  std::chrono::nanoseconds slow_after = std::chrono::seconds(5);
  std::chrono::nanoseconds cycle_after = std::chrono::seconds(1);
  // Called by the clock's thread, which serves other timers: they must not wait, nor destroy the
  // stall_detector. An exception that leaves one of them is written to standard error.
  std::function<void(const slow_handler&)> on_slow{};
  std::function<void(const actor_cycle&)> on_cycle{};
  clock* time = nullptr;  // null: the real clock
};

class stall_detector final : public actor_observer {
 public:
  using options = stall_detector_options;

  explicit stall_detector(options o = {});
  stall_detector(const stall_detector&) = delete;
  stall_detector& operator=(const stall_detector&) = delete;
  ~stall_detector();

  // Finds them on demand, whether or not they were reported before, in the order of spawning.
  std::vector<slow_handler> find_slow(std::chrono::nanoseconds min_time) const;
  std::vector<actor_cycle> find_cycles(std::chrono::nanoseconds min_wait = {}) const;
  // Reports the findings that were not reported before. Called every period.
  void report();

  // ---- for the system

  unsigned note_bits() const noexcept override { return 0; }
  void spawned(actor_id id, actor_id parent, std::string_view name,
               std::string_view type) noexcept override;
  void ended(actor_id id, end_reason why) noexcept override;
  void begun(actor_id id, std::string_view message, std::uint64_t note) noexcept override;
  void handled(actor_id id, std::string_view message, std::uint64_t note) noexcept override;
  void resumed(actor_id id, std::string_view message, std::uint64_t note) noexcept override;
  void wait_begun(actor_id id, actor_id target, actor_wait reason,
                  std::uint64_t wait) noexcept override;
  void wait_ended(actor_id id, actor_id target, actor_wait reason,
                  std::uint64_t wait) noexcept override;

 private:
  struct pending_wait {
    std::uint64_t number;
    std::uint64_t run;  // the run in which it began; 0: none
    actor_id target;
    actor_wait reason;
    time_point since;
  };
  // The current message of an actor.
  struct state {
    std::uint64_t run = 0;  // counts the messages and resumptions
    bool is_on = false;
    bool was_reported = false;
    std::string_view message{};
    time_point since{};
    std::vector<pending_wait> waits{};
  };
  struct edge {
    actor_id id;
    std::string_view message;
    pending_wait wait;
  };
  // Returns the waits, sorted by waiter and then by target.
  std::vector<edge> edges(std::chrono::nanoseconds min_wait) const;
  bool still_waits(const edge& e) const;
  slow_handler describe(actor_id id, const state& s, time_point now) const;
  void report_slow();
  void report_cycles();

  // Constant after construction.
  const options options_;
  clock& time_;

  detail::actor_names names_{0};
  mutable detail::actor_table<state> states_;
  // The reported cycles, each as the numbers of its waits.
  guarded<std::vector<std::vector<std::uint64_t>>> reported_;
  inline_executor here_;
  future<void> ticking_;
};

}  // namespace sluice
