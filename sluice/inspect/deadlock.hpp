#pragma once

// Finds deadlocks: parties that wait for each other in a cycle, through locks, semaphores, full
// queues and mailboxes, channels, joins and asks, in any mix.
//
// `find_deadlocks` searches once; a `watchdog` searches periodically (watchdog.hpp).
//
// A party is deadlocked if every party that could end its wait is deadlocked:
// - A lock is released by its holder, a shared lock by all its holders; permits and places in a
//   bulkhead by any holder. A semaphore that was released by a party that had not acquired it is a
//   signal, and is excluded.
// - Capacity in a full queue: any party that was seen to pop. A rendezvous: any party at the other
//   end. A side with more than 12 parties is excluded; a coroutine that has ended still counts.
// - A join: all whose end it waits for (the thread that runs a fork or the turn of a strand, the
//   children of a scope, the threads of a pool, an actor).
// - Capacity in a mailbox: its actor. A reply: the actor that has the request. An actor is
//   deadlocked if its handler is, unless that waits reentrantly; a handler that needs the exclusive
//   turn again, if its actor is; a thread, if the actor whose turn it runs is.
// - A future: the thread that runs its function, its task, its actor, or `promise::made_by`; also
//   through `then`, a timeout or a shared_future, up to 16 stages back.
// - A queued function, or an actor outside its turn: any thread of its executor. Known for a
//   thread_pool that cannot grow and a work_stealing_pool without spares, made while inspect was
//   on.
// - A select is deadlocked if all its cases are; a future of several, if all of these are.
// A wait that no known party could end (an event, a condition, an empty queue) is idle.
//
// Guarantees: all waits of a reported deadlock were the same before and after the search. If
// `is_certain`, it did exist, provided that permits are released by the parties that acquired them
// and none were acquired before inspect was on. The others are probable: the users of a queue are a
// sample, an actor may have delegated a reply, awaited permits are released under the name of a
// thread, queued work can be dropped. Waits with a deadline or stop_token count, but are marked
// (`ends_by_itself`): a program that proceeds only by timeouts has a defect too.
// Limits: of the users of a queue the first, some later ones and all that meet a waiter are known,
// not one about to use it first. A coroutine releases under the name of its thread: after one of
// several holders has released, the object is excluded until all have. Known are the ends of 128
// threads of a pool and about 512 children of a scope. A task that was resumed and blocks its
// thread is listed as the thread. Actor system ids repeat after 65,536 systems. Listed, but never
// part of a cycle: a push into a router; the join of an idle strand, a router, batcher, pipeline or
// actor_system; a when_all of tasks or of partly completed futures; a function queued in a strand;
// limiters; a place for a keyed actor.
//
//     for (const auto& d : inspect::find_deadlocks()) std::cerr << d.text();

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "sluice/inspect/inspect.hpp"

namespace sluice::inspect {

struct deadlock {
  // `wait.party` waits for `object`, which only `holder` and other deadlocked parties could
  // release. `holder` is the party of the next step; in the last step, of the first.
  struct step {
    wait_info wait{};
    object_info object{};
    server_info holder{};
    // The wait cannot end, regardless of the unknown parties.
    bool is_certain = false;
  };
  std::vector<step> steps{};

  // Returns true if a deadline or stop_token of a wait, or of the future waited for, can end it.
  bool ends_by_itself() const noexcept;
  // Returns true if the deadlock exists and will not end: all its waits, and those of all parties
  // that could end them, are for locks, permits, capacity in mailboxes and joins of known runners,
  // without a deadline or stop_token. Returns false if a queue, a channel, an ask, a pool without a
  // free thread or a limit is part of it.
  bool is_certain() const noexcept;
  // Returns the numbers of its waits, ascending: they identify the deadlock.
  std::vector<std::uint64_t> waits() const;
  // Returns several lines: each party with its operation, object, place, and the holder.
  std::string text() const;
};

// Returns the deadlocks of which every wait is at least `min_wait` old. A party is in at most one.
std::vector<deadlock> find_deadlocks(std::chrono::nanoseconds min_wait = {});

}  // namespace sluice::inspect
