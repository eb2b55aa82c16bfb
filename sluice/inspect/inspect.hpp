#pragma once

// Shows what the whole process waits for: every thread, coroutine and actor that waits, on what,
// since when, where in the program, and who could end it. And finds those that wait for each other.
//
// Turn it on at the start of the program, best for all of it; look at any time. `waits()` lists,
// `find_deadlocks()` searches (deadlock.hpp), a `watchdog` does both by itself and says what it
// finds (watchdog.hpp), format.hpp prints as text, JSON, Graphviz or Mermaid.
//
// Guarantees: any thread may call anything at any time, also while the waits that are listed end: a
// wait is shown as it was at one moment. Only what began while inspect was on is known: a lock that
// was taken before has no holder in the list. Looking waits for nothing that a program can hold, so
// it is safe in a process that hangs; of what is looked at it touches only futures, to go from one
// stage to the one before it.
// Names: `{.name = "emails"}` in options, `named("ledger")` for what has none (sync/named.hpp);
// threads have those of the operating system.
// Cost: off, at most one relaxed load at a lock, a push, a pop. On, some 40 ns for a lock that is
// taken and given back, 1 to 2 % of an uncontended push and pop, of which a sample is told, some
// 0.3 us for a wait that sleeps (./bench inspect). Nothing is allocated for any of it, but the name
// of an actor, once, when it first waits, takes something or is waited for, and with `lock_order`:
// that allocates when it sees an order of locks for the first time, inside of a lock call that
// cannot fail, so that there the end of memory is the end of the process. Looking allocates what it
// returns.
// Limits: tables of fixed size hold 2048 locks and permits that are held, 512 queues and 1024
// contended objects. These are totals: they are spread over 32 parts by address, of which one may
// be full before the others. Of those whose end is waited for 4096 are known, of pools that cannot
// grow 8192 threads, both in 8 parts: all children of one scope are in one.
// What is beyond is counted in `left_out()` and not shown; of contended objects the one that was
// waited for least makes room. A coroutine is shown by the outermost task that awaits it. What a
// handler of an actor waits for and takes is put down to the actor, whether it blocks or is
// suspended; what it awaits while it lets others in, to a coroutine. Waits on the standard
// library's locks, and on spin_lock, are not seen. The place of a call is that of the call itself;
// for a std::lock_guard or a select, it is the address of the code that called.
//
//     inspect::enabled on;                                 // in main
//     ...
//     std::cerr << inspect::to_text(inspect::waits());

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sluice/base/clock.hpp"
#include "sluice/inspect/lock_order.hpp"
#include "sluice/sync/call_site.hpp"
#include "sluice/sync/watch.hpp"

namespace sluice::inspect {

struct options {
  // Records the order in which locks are taken, and reports when two are taken both ways round
  // (lock_order.hpp). Costs more at every lock that is taken while others are held.
#if defined(NDEBUG)
  bool lock_order = false;
#else
  bool lock_order = true;
#endif
  // Called by the thread that took the second lock, which it holds: it must take no lock of the
  // program. Without it, or if it throws, a line on standard error.
  std::function<void(const lock_inversion&)> on_inversion{};
  // Null: the real clock. Another is asked at every wait, and by those who began theirs before
  // inspect was turned off and end it after: it must live until none of these is left.
  clock* time = nullptr;
};

// Inspect is on while one of these lives: one at a time.
class enabled {
 public:
  explicit enabled(options o = {});
  enabled(const enabled&) = delete;
  enabled& operator=(const enabled&) = delete;
  ~enabled();
};

bool is_on() noexcept;

// One who waits or holds.
struct party_info {
  watch::party id{};
  std::string name{};  // of the thread or actor; empty: none

  // "thread 3 (emails-1)", "coroutine 0x55d0c0", "actor 7 (desk)"
  std::string text() const;
};

// One who could end a wait: holds a lock or permits, runs what is waited for, is asked, or was seen
// at the other end of the queue.
struct server_info {
  party_info who{};
  std::string how{};   // "holds", "reads", "has 2 permits", "runs", "is asked", "pops", "pushes"
  bool enough = true;  // it alone can end the wait; false: all like it are needed
  std::optional<std::chrono::nanoseconds> held{};
  std::optional<call_site> at{};  // where it took it
  // Of an actor, if they are known: the threads of which it needs one, unless it is in its turn.
  std::vector<party_info> runs_on{};
};

// Something that is waited for.
struct object_info {
  const void* address = nullptr;
  std::string type{};   // "mutex", "bounded_queue"
  std::string name{};   // empty: none
  std::string wants{};  // what the wait wants of it: "lock", "push"
  std::optional<std::size_t> capacity{};
  watch::served_by by = watch::served_by::unknown;
  std::vector<server_info> servers{};
  bool others_could = false;  // the servers may have left it to somebody of whom nothing is known

  // "mutex ledger", "semaphore 0x7ffe40"
  std::string text() const;
};

struct wait_info {
  std::uint64_t number = 0;  // tells it from other waits, for as long as the process lives
  party_info who{};
  std::vector<object_info> on{};  // one; for a select, all of which any ends it
  std::chrono::nanoseconds time{0};
  bool has_deadline = false;    // the wait itself
  bool can_be_stopped = false;  // the same
  // What is waited for ends by a timer or a stop of its own (with_timeout, with_stop).
  bool ends_by_itself = false;
  std::optional<call_site> at{};
  // Who cannot go on either before it ends: the thread that an actor runs on, and others whose work
  // that thread is in the middle of.
  std::vector<party_info> holds_up{};
};

// All waits right now, the oldest first.
std::vector<wait_info> waits();

// One object that was waited for since inspect was turned on: how often, how long.
struct contention_info {
  const void* address = nullptr;  // of an actor: none
  std::string type{};
  std::string name{};
  std::uint64_t waits = 0;          // that slept
  std::uint64_t woken_in_vain = 0;  // and slept again: a convoy when this is many
  std::chrono::nanoseconds waited{0};
  std::chrono::nanoseconds longest{0};
  std::uint32_t waiting = 0;  // right now
  std::uint32_t waiting_most = 0;
};

// Those with the longest time waited in all first. An actor is one, for those who wait for room in
// its mailbox and for its answers. What is gone is not among them, but for futures, which do not
// say so. A fork is gone when it was joined.
std::vector<contention_info> contention();

// A lock, or permits, that somebody has right now.
struct hold_info {
  std::uint64_t number = 0;
  object_info what{};
  party_info who{};
  std::chrono::nanoseconds time{0};
  call_site at{};
};

// The oldest first.
std::vector<hold_info> holds();

// How many reports found no room in the tables.
std::uint64_t left_out() noexcept;

// "app/ledger.cpp:42", or, for a call made by somebody else's header, "transfer+0x1f (app)" as far
// as the program has symbols.
std::string to_string(const call_site& at);

}  // namespace sluice::inspect
