#pragma once

// Lists all waits of the process: every thread, coroutine and actor that waits, the object, the
// duration, the line of the program, and the parties that could end the wait. Finds deadlocks.
//
// Enable it at the start of the program, if possible for its whole life; inspect at any time.
// `waits()` lists, `find_deadlocks()` searches (deadlock.hpp), a `watchdog` does both periodically
// and reports (watchdog.hpp), format.hpp prints as text, JSON, Graphviz or Mermaid.
//
// Guarantees: any thread may call anything at any time, also while listed waits end: each wait is a
// snapshot of one moment. Only waits and locks that began while inspect was on are known: a lock
// acquired before has no holder in the list. Inspection waits for nothing that a program can hold,
// so it is safe in a process that hangs. The only inspected objects that it accesses are futures,
// to walk from one stage to the one before it.
// Names: `{.name = "emails"}` in options, `named("ledger")` for types without options
// (sync/named.hpp); threads have their names of the operating system.
// Cost: off, at most one relaxed load per lock, push or pop. On, some 40 ns for each lock that is
// acquired and released, 1 to 2 % of an uncontended push and pop (a sample is recorded), some 0.3
// us for a wait that sleeps (./bench inspect). These allocate nothing, with two exceptions: the
// name of an actor, once, when it first waits, acquires something or is waited for; and with
// `lock_order` an order of locks that is seen for the first time. That happens inside a lock call
// that cannot fail, so running out of memory there terminates the process. Inspection allocates its
// result.
// Limits: tables of fixed size hold 2048 held locks and permits, 512 queues and 1024 contended
// objects, each spread over 32 parts by address: one part may be full before the others. They hold
// 4096 runners whose end is waited for and 8192 threads of pools that cannot grow, each in 8 parts:
// all children of one scope are in one part. `left_out()` counts the records that do not fit; a
// full part of the contended objects replaces the one with the least waiting time. A coroutine is
// listed as the outermost task that awaits it. The waits and locks of an actor's handler are
// attributed to the actor, whether the handler blocks or is suspended; its reentrant waits to a
// coroutine. Waits for the standard library's locks and for spin_lock are not listed. The place is
// the line of the call; for a std::lock_guard or a select it is the address of the calling code,
// resolved by the symbols of the program (sluice::lock_guard has the line).
//
//     inspect::enabled on;                                 // in main
//     work();
//     std::cerr << inspect::to_text(inspect::waits());

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sluice/base/call_site.hpp"
#include "sluice/base/clock.hpp"
#include "sluice/inspect/lock_order.hpp"
#include "sluice/sync/detail/wait_report.hpp"

namespace sluice::inspect {

struct options {
  // Records the order in which locks are acquired, and reports when it is reversed
  // (lock_order.hpp). Costs more at every lock that is acquired while others are held.
#if defined(NDEBUG)
  bool lock_order = false;
#else
  bool lock_order = true;
#endif
  // Called by the thread that acquired the second lock and holds it: must not acquire a lock of the
  // program. If empty, or if it throws, a line is written to standard error.
  std::function<void(const lock_inversion&)> on_inversion{};
  // Null: the real clock. Read at every wait, also by waits that began before inspect was turned
  // off and end after it: the clock must outlive all of them.
  clock* time = nullptr;
};

// Inspect is on during the life of this object; at most one may exist at a time.
class enabled {
 public:
  explicit enabled(options o = {});
  enabled(const enabled&) = delete;
  enabled& operator=(const enabled&) = delete;
  ~enabled();
};

bool is_on() noexcept;

// A party that waits or holds.
struct party_info {
  wait_report::party id{};
  std::string name{};  // of the thread or actor; empty: none

  // "thread 3 (emails-1)", "coroutine 0x55d0c0", "actor 7 (desk)"
  std::string text() const;
};

// A party that could end a wait: holds the lock or permits, runs the function, has the request, or
// was seen at the other end of the queue.
struct server_info {
  party_info party{};
  std::string role{};  // "holds", "reads", "has 2 permits", "runs", "is asked", "pops", "pushes"
  bool is_sufficient = true;  // it can end the wait alone; false: all servers like it are needed
  std::optional<std::chrono::nanoseconds> held{};
  std::optional<call_site> at{};  // of the call that acquired it
  // For an actor, if known: the threads of its executor. Outside its turn it needs one of them.
  std::vector<party_info> runs_on{};
};

// An object that a party waits for.
struct object_info {
  const void* address = nullptr;
  std::string type{};   // "mutex", "bounded_queue"
  std::string name{};   // empty: none
  std::string wants{};  // the operation that waits: "lock", "push"
  std::optional<std::size_t> capacity{};
  wait_report::served_by by = wait_report::served_by::unknown;
  std::vector<server_info> servers{};
  bool others_can_end = false;  // an unknown party could end the wait in place of the servers

  // "mutex ledger", "semaphore 0x7ffe40"
  std::string text() const;
};

struct wait_info {
  std::uint64_t number = 0;  // unique in the process, never reused
  party_info party{};
  std::vector<object_info> on{};  // one object; for a select, all objects: any of them ends it
  std::chrono::nanoseconds time{0};
  bool has_deadline = false;    // of the wait itself
  bool can_be_stopped = false;  // the wait itself has a stop_token
  // The object is a future with a timer or a stop of its own (with_timeout, with_stop).
  bool ends_by_itself = false;
  std::optional<call_site> at{};
  // Parties that are blocked until this wait ends: the thread that runs the actor, and the parties
  // whose work is suspended further down the stack of that thread.
  std::vector<party_info> also_blocked{};
};

// Returns all current waits, the oldest first.
std::vector<wait_info> waits();

// The waits for one object since inspect was turned on.
struct contention_info {
  const void* address = nullptr;  // null for an actor
  std::string type{};
  std::string name{};
  std::uint64_t waits = 0;         // that slept
  std::uint64_t futile_wakes = 0;  // woken, then slept again: many of them are a convoy
  std::chrono::nanoseconds waited{0};
  std::chrono::nanoseconds longest{0};
  std::uint32_t waiting = 0;  // current waits
  std::uint32_t waiting_max = 0;
};

// Returns the contended objects, the one with the longest total time first. An actor is one object
// for the waits for capacity in its mailbox and for its replies. Destroyed objects are removed,
// except futures, which do not report their destruction. A fork is destroyed when it is joined.
std::vector<contention_info> contention();

// A held lock, or held permits.
struct hold_info {
  std::uint64_t number = 0;
  object_info object{};
  party_info party{};
  std::chrono::nanoseconds time{0};
  call_site at{};
};

// Returns the held locks and permits, the oldest first.
std::vector<hold_info> holds();

// Returns the number of records that did not fit into the tables.
std::uint64_t left_out() noexcept;

// Returns "app/ledger.cpp:42" or, for a call made by a header of the library or of the standard
// library, "transfer()+0x1f (app+0x41c1f)" as far as the program has symbols.
std::string to_string(const call_site& at);

}  // namespace sluice::inspect
