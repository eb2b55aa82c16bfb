#pragma once

// Says why everything has stopped: which handler does not come to an end, and which actors wait for
// each other in a circle.
//
// Use it in every program that blocks in handlers or asks from them: it is meant to be always on.
//
// A handler is slow when it has been on one message for `slow_after`; it is reported once for that
// message. A cycle is actors of which each is in the middle of a message and waits for the next
// one: for room in its mailbox, or for its answer. It is reported once, when each of its waits is
// as old as `cycle_after`. Reports are made every `period`, by the clock's thread, because those of
// a pool may all be stuck; without functions to take them they are lines on standard error.
//
// Guarantees: any thread may call anything; a cycle that is found did exist at one moment. An actor
// that has asked counts as waiting until the answer is there, the ask has failed, or the message in
// which it asked is done with: also when it is still doing something else first. So with a
// `min_wait` of zero two handlers that ask each other, and do not wait for the answers, can look
// like a cycle for as long as they run. One that lets others in (letting_others_in.hpp) does not
// wait. Every actor that is in a cycle is in one of those that are found.
// Limits: waits for other things (locks, queues, futures of others) are not seen, but such a
// handler is slow; nor a wait that is not in the middle of a message, as in a timer's function.
// sluice::inspect sees them all, and circles through both; it needs no watch for that.
// Cost: a lock and a look at the clock when a handler begins, a lock when it ends; about 250 bytes
// for each actor.
//
//     actor_watch watch({.slow_after = 5s,
//                        .on_slow = [](const slow_handler& s) { log(s.text()); },
//                        .on_cycle = [](const actor_cycle& c) { log(c.text()); }});
//     actor_system system(pool, {.observer = &watch});

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

// An actor that has been on one message for long.
struct slow_handler {
  actor_id who = 0;
  std::string name{};
  std::string message{};  // its type
  std::chrono::nanoseconds time{0};
  std::string waits_for{};  // "for room in b", "for an answer from b, c"; empty: it is not known

  // "actor a has been on message pay for 5 s; it waits for an answer from b"
  std::string text() const;
};

// Actors that wait for each other: each for the next, the last for the first.
struct actor_cycle {
  struct step {
    actor_id who = 0;
    std::string name{};
    std::string message{};  // that it is on
    actor_wait what = actor_wait::room;
    std::chrono::nanoseconds time{0};
    std::uint64_t wait = 0;  // its number
  };
  std::vector<step> steps{};  // the one with the smallest number first

  // "a -(full mailbox)-> b -(ask)-> a"
  std::string text() const;
};

struct actor_watch_options {
  std::chrono::nanoseconds period = std::chrono::seconds(1);  // zero: only on demand
  std::chrono::nanoseconds slow_after = std::chrono::seconds(5);
  std::chrono::nanoseconds cycle_after = std::chrono::seconds(1);
  // Called by the clock's thread, which has other timers to serve: they must not wait, nor end the
  // watch.
  // An exception that leaves one is written to standard error.
  std::function<void(const slow_handler&)> on_slow{};
  std::function<void(const actor_cycle&)> on_cycle{};
  clock* time = nullptr;  // null: the real clock
};

class actor_watch final : public actor_observer {
 public:
  using options = actor_watch_options;

  explicit actor_watch(options o = {});
  actor_watch(const actor_watch&) = delete;
  actor_watch& operator=(const actor_watch&) = delete;
  ~actor_watch();

  // On demand; whatever was reported before. In the order of the actors' making.
  std::vector<slow_handler> find_slow(std::chrono::nanoseconds min_time) const;
  std::vector<actor_cycle> find_cycles(std::chrono::nanoseconds min_wait = {}) const;
  // What is done every period: reports what was not reported before.
  void report();

  // ---- for the system

  unsigned note_bits() const noexcept override { return 0; }
  void spawned(actor_id who, actor_id parent, std::string_view name,
               std::string_view type) noexcept override;
  void ended(actor_id who, end_reason why) noexcept override;
  void begun(actor_id who, std::string_view message, std::uint64_t note) noexcept override;
  void handled(actor_id who, std::string_view message, std::uint64_t note) noexcept override;
  void resumed(actor_id who, std::string_view message, std::uint64_t note) noexcept override;
  void waits(actor_id who, actor_id for_whom, actor_wait what,
             std::uint64_t wait) noexcept override;
  void waits_no_more(actor_id who, actor_id for_whom, actor_wait what,
                     std::uint64_t wait) noexcept override;

 private:
  struct pending_wait {
    std::uint64_t number;
    std::uint64_t run;  // in which it began; 0: in none
    actor_id for_whom;
    actor_wait what;
    time_point since;
  };
  // What an actor is on.
  struct state {
    std::uint64_t run = 0;  // counts them
    bool is_on = false;
    bool was_reported = false;
    std::string_view message{};
    time_point since{};
    std::vector<pending_wait> waits{};
  };
  struct edge {
    actor_id who;
    std::string_view message;
    pending_wait wait;
  };
  // Those of each actor, by the actors' numbers and then by whom they wait for.
  std::vector<edge> edges(std::chrono::nanoseconds min_wait) const;
  bool still_waits(const edge& e) const;
  slow_handler describe(actor_id who, const state& s, time_point now) const;
  void report_slow();
  void report_cycles();

  // Constant after construction.
  const options options_;
  clock& time_;

  detail::actor_names names_{0};
  mutable detail::actor_table<state> states_;
  guarded<std::vector<std::vector<std::uint64_t>>> reported_;  // cycles, by their waits
  inline_executor here_;
  future<void> ticking_;
};

}  // namespace sluice
