#pragma once

// Finds those who wait for each other in a circle, through locks, semaphores, full queues and
// mailboxes, channels, joins and asks, in any mix.
//
// `find_deadlocks` searches once; a `watchdog` does it again and again (watchdog.hpp).
//
// Who is stuck: one that waits for something that only those can give who are stuck as well. A lock
// is given by who holds it, a shared one by all who hold it; permits, and places in a bulkhead, by
// any who has some; room in a full queue by any who was seen to take from it; a channel without a
// buffer by any who was seen at its other end; a join by all whose end it waits for: the thread
// that runs a fork or the turn of a strand, the children of a scope, the threads of a pool, an
// actor; room in a mailbox by its actor, and an answer by the actor that has the request. An actor
// is stuck when its handler is, be it blocked or suspended, unless that lets others in; a handler
// that has let others in, and wants its actor for itself again, when its actor is; and a thread
// when the actor is in whose turn it is. A select is stuck when all of its cases are, a future of
// several when all of those are.
// Nobody known who could end a wait means that anybody could: events, conditions, and consumers of
// an empty queue are idle, not stuck.
//
// Guarantees: all waits of a deadlock that is reported were the same before and after the search.
// One that `is_certain` did exist, if permits are given back by those who took them and none were
// taken before inspect was on; the others are what can be seen: who uses a queue or a channel is a
// sample, an actor that is asked may have left the answer to another, permits that were awaited go
// back under the name of a thread, and what is queued can be dropped. Waits with a deadline or a
// stop_token count too, because a program that goes on only by timeouts is in trouble all the same,
// but the report says so (`ends_by_itself`).
// Limits: who uses a queue is known by having used it: told are the first uses, some of the later
// ones, and all that wait or serve one who waits. One who is about to use it for the first time is
// not known, so a queue or channel may be reported although somebody new would have helped. A
// coroutine that has ended still counts as a user (a thread or an actor does not), so that a queue
// it took from may be left out; so is one of which more than 12 parties use that side. A semaphore
// that was ever given back by one who had not taken it is a signal, and is left out. A coroutine
// gives back under the name of its thread: while several hold a shared lock or permits and one of
// them has let go, it is not known which, and the object is left out until all have. A future is a
// wait for the thread that runs its function, for the task that was spawned, or for the actor that
// was asked, also through `then`, a timeout or a shared_future, up to 16 stages back; who is to set
// a promise is not known unless it says so (`promise::made_by`). A function that is still queued,
// and an actor that is not in its turn, are for the threads of their executor: known are those of a
// thread_pool that cannot grow, and of a work_stealing_pool without spares, if inspect was on when
// it was made. Of a pool the ends of 128 threads are known, of a scope those of some 512 children:
// a join is not found to be stuck by one beyond. What blocks its thread in a task that was resumed
// is put down to the thread, not to the task. The number by which the actors of two systems are
// told apart comes again after 65,536 systems. Listed, but not part of a circle, because nobody is
// known who could end it: a push into a router, a join of a strand that is not in its turn, of a
// router, a batcher, a pipeline or an actor_system, a when_all of tasks, or of futures of which
// some are done, a function in the line of a strand, limiters, a place for a keyed actor.
//
//     for (const auto& d : inspect::find_deadlocks()) std::cerr << d.text();

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "sluice/inspect/inspect.hpp"

namespace sluice::inspect {

struct deadlock {
  // `wait.who` waits for `object`, which only `holder` (the one of the next step; of the last step,
  // that of the first) and others who are stuck could give.
  struct step {
    wait_info wait{};
    object_info object{};
    server_info holder{};
    // It cannot end, whatever those do of whom nothing is known.
    bool is_certain = false;
  };
  std::vector<step> steps{};

  // True: one of the waits, or what it is for, has a deadline or a stop_token, and so can end.
  bool ends_by_itself() const noexcept;
  // True: it does exist, and will not end. All its waits, and those of all others who could help,
  // are for locks, permits, room in mailboxes and joins of known runners, and none of them has a
  // deadline or a stop_token. False: a queue, a channel, an ask, a pool without a free thread or a
  // limit is part of it.
  bool is_certain() const noexcept;
  // The numbers of its waits, ascending: the same for the same deadlock.
  std::vector<std::uint64_t> waits() const;
  // Several lines, each party with what it waits for, where, and who has it.
  std::string text() const;
};

// Those of which every wait is at least so old. Each party is in one of them at most.
std::vector<deadlock> find_deadlocks(std::chrono::nanoseconds min_wait = {});

}  // namespace sluice::inspect
