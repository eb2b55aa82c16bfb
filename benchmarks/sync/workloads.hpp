#pragma once

// The workloads of ./bench sync, as templates over the measured type.
//
// "Uncontended" means that one thread uses the object, not that the program has one thread: these
// workloads also run in a second thread, because the C library omits the atomics of std::mutex
// while a process has never had more than one thread.

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "benchmarks/threads.hpp"

namespace sluice::bench {

// Enough to contend on any machine, and more than the cores of a small one, so that a holder can
// lose its core while others wait.
inline constexpr int contending_threads = 4;

// Calls `operation()` repeatedly in one thread. Checks the clock once for 64 calls, because some
// operations take only a nanosecond.
template <class Operation>
tally repeat_alone(seconds duration, Operation operation) {
  return run_threads(duration, 1, [&](int, const run_clock& clock) {
    constexpr std::uint64_t at_a_time = 64;
    std::uint64_t done = 0;
    do {  // at least once: the thread may be scheduled only after the time has passed
      for (std::uint64_t n = 0; n < at_a_time; ++n) operation();
      done += at_a_time;
    } while (!clock.has_ended());
    return done;
  });
}

// About 20 ns of work outside the critical section.
class private_work {
 public:
  explicit private_work(int thread) : state_(static_cast<std::uint64_t>(thread) + 1) {}
  void do_some() {
    for (int i = 0; i < 8; ++i) {
      state_ ^= state_ << 13;
      state_ ^= state_ >> 7;
      state_ ^= state_ << 17;
    }
    keep(state_);
  }

 private:
  std::uint64_t state_;
};

// Mutex: lock, unlock.
template <class Mutex>
tally lock_alone(seconds duration) {
  Mutex mutex;
  std::uint64_t count = 0;
  const tally result = repeat_alone(duration, [&] {
    mutex.lock();
    ++count;
    keep(count);
    mutex.unlock();
  });
  expect_equal(count, result.operations, "increments under the lock");
  return result;
}

template <class Mutex>
tally lock_together(seconds duration) {
  struct {
    Mutex mutex;
    std::uint64_t count = 0;
  } shared;
  const auto body = [&](int thread, const run_clock& clock) {
    private_work own_work(thread);
    std::uint64_t done = 0;
    for (; !clock.has_ended(); ++done) {
      shared.mutex.lock();
      ++shared.count;
      shared.mutex.unlock();
      own_work.do_some();
    }
    return done;
  };
  const tally result = run_threads(duration, contending_threads, body);
  expect_equal(shared.count, result.operations, "increments under the lock");
  return result;
}

// SharedMutex: lock, unlock, lock_shared, unlock_shared. One operation in `write_every` is a
// write; 0 means none.
template <class SharedMutex>
tally read_together(seconds duration, std::uint64_t write_every) {
  struct {
    SharedMutex mutex;
    std::uint64_t count = 0;
  } shared;
  std::atomic<std::uint64_t> writes = 0;
  const auto body = [&](int, const run_clock& clock) {
    std::uint64_t done = 0;
    std::uint64_t my_writes = 0;
    for (; !clock.has_ended(); ++done) {
      if (write_every != 0 && done % write_every == 0) {
        shared.mutex.lock();
        ++shared.count;
        shared.mutex.unlock();
        ++my_writes;
      } else {
        shared.mutex.lock_shared();
        keep(shared.count);
        shared.mutex.unlock_shared();
      }
    }
    writes += my_writes;
    return done;
  };
  const tally result = run_threads(duration, contending_threads, body);
  expect_equal(shared.count, writes, "writes under the lock");
  return result;
}

// Semaphore(permits): acquire, release.
template <class Semaphore>
tally acquire_alone(seconds duration) {
  Semaphore semaphore(1);
  return repeat_alone(duration, [&] {
    semaphore.acquire();
    semaphore.release();
  });
}

// Half as many permits as threads.
template <class Semaphore>
tally acquire_together(seconds duration) {
  constexpr int permits = contending_threads / 2;
  Semaphore semaphore(permits);
  std::atomic<int> inside = 0;
  const auto body = [&](int thread, const run_clock& clock) {
    private_work own_work(thread);
    std::uint64_t done = 0;
    for (; !clock.has_ended(); ++done) {
      semaphore.acquire();
      if (inside.fetch_add(1, std::memory_order_relaxed) >= permits) {
        fail("more threads were inside a semaphore than it had permits");
      }
      inside.fetch_sub(1, std::memory_order_relaxed);
      semaphore.release();
      own_work.do_some();
    }
    return done;
  };
  return run_threads(duration, contending_threads, body);
}

// Queue(capacity): bool try_push(item), bool try_pop(item&). One pair is one operation.
template <class Queue>
tally try_push_try_pop(seconds duration) {
  Queue queue(1024);
  std::uint64_t sent = 0;
  return repeat_alone(duration, [&] {
    std::uint64_t item = 0;
    if (!queue.try_push(++sent) || !queue.try_pop(item) || item != sent) {
      fail("a queue that is not full rejected an item, or did not return it");
    }
  });
}

// Barrier(threads): arrive_and_wait(). Every operation is one phase of all threads.
template <class Barrier>
tally barrier_phases(seconds duration) {
  Barrier barrier(contending_threads);
  // The first thread sets the last phase before it arrives in it. Every thread reads it after that
  // phase, so all threads stop in the same phase and none waits for a stopped thread.
  std::atomic<std::uint64_t> last_phase = UINT64_MAX;
  const auto body = [&](int thread, const run_clock& clock) {
    std::uint64_t phase = 0;
    do {
      ++phase;
      if (thread == 0 && clock.has_ended()) last_phase = phase;
      barrier.arrive_and_wait();
    } while (phase < last_phase.load());
    return thread == 0 ? phase : 0;
  };
  return run_threads(duration, contending_threads, body);
}

// Counter: add(n), and value() once the threads are done.
template <class Counter>
tally add_together(seconds duration) {
  Counter counter;
  const auto body = [&](int, const run_clock& clock) {
    std::uint64_t done = 0;
    for (; !clock.has_ended(); ++done) counter.add(1);
    return done;
  };
  const tally result = run_threads(duration, contending_threads, body);
  expect_equal(counter.value(), result.operations, "value of the counter");
  return result;
}

// A value that is torn when its halves differ.
struct two_halves {
  std::uint64_t left = 0;
  std::uint64_t right = 0;
};

// Cell: publish(two_halves), and read(f), which calls f(const two_halves&). One thread publishes
// a new value after every 1000 of its reads; the others only read.
template <class Cell>
tally read_published(seconds duration) {
  Cell cell;
  const auto check_whole = [](const two_halves& seen) {
    if (seen.left != seen.right) fail("a reader saw half of a published value");
  };
  const auto body = [&](int thread, const run_clock& clock) {
    std::uint64_t done = 0;
    for (; !clock.has_ended(); ++done) {
      if (thread == 0 && done % 1000 == 999) cell.publish({done, done});
      cell.read(check_whole);
    }
    return done;
  };
  return run_threads(duration, contending_threads, body);
}

// Lazy: get() returns a reference to an int that was built by the first call.
template <class Lazy>
tally get_built(seconds duration) {
  Lazy lazy;
  return repeat_alone(duration, [&] { keep(lazy.get()); });
}

}  // namespace sluice::bench
