#pragma once

// Looks after a running process by itself, and speaks up when something does not go on: a deadlock,
// a queue or pool that makes no progress, a lock that is held for long.
//
// Use one in every server. It has one thread of its own, which sleeps between looks.
//
// What it reports, each once: a deadlock all of whose waits are as old as `deadlock_after`;
// something watched (`watch`) that had work all the time but finished none of it for
// `stalled_after`; a lock held for longer than `held_after`. `on_report` hears each; without it,
// standard error does.
// `print_on_signal`: when the process gets that signal (SIGUSR1, say) all waits, and the most
// contended objects, are printed as a report of their own. The handler of the signal writes one
// byte to a pipe and nothing else.
//
// Guarantees: any thread may call anything, also from inside of what the watchdog calls. Reports
// are made one at a time, by the thread that looked or, if another is making one, by that one after
// it; no lock is held meanwhile. An exception of a callback is written to standard error.
// `on_report` may take long, but must not wait for a stuck party, and must not destroy the
// watchdog. A `how_far` that does not answer holds up the looks, not the print. It turns inspect on
// if it is not on, and off again at its end. `deadlock_action::abort` ends the process after the
// report of a deadlock that is certain (`deadlock::is_certain`): one through a queue, a channel or
// an ask, or one that can end by itself, is reported and no more. Destroying it ends the thread.
// Cost: a look takes time with the number of waits and holds, once a `period`. Limits: one watchdog
// at a time prints on a signal; the clock must outlive the watchdog and, if that turned inspect on,
// what is said of it in `inspect::options::time` holds for it as well.
//
//     inspect::watchdog dog({.held_after = 2s, .print_on_signal = SIGUSR1});
//     const auto mail = dog.watch(emails);                 // a queue or an executor

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "sluice/base/clock.hpp"
#include "sluice/inspect/deadlock.hpp"
#include "sluice/inspect/progress.hpp"

namespace sluice::inspect {

// What is done beside the report.
enum class deadlock_action : std::uint8_t { none, abort };

struct report {
  enum class kind : std::uint8_t { deadlock, stall, long_hold, overview };
  kind what = kind::overview;
  std::string text{};
};

struct watchdog_options {
  std::chrono::nanoseconds period = std::chrono::seconds(1);  // between looks; zero: only `look`
  std::chrono::nanoseconds deadlock_after = std::chrono::seconds(1);
  std::chrono::nanoseconds stalled_after = std::chrono::seconds(30);
  std::chrono::nanoseconds held_after = std::chrono::seconds(5);
  int print_on_signal = 0;  // 0: none
  deadlock_action on_deadlock = deadlock_action::none;
  std::function<void(const deadlock&)> deadlock_found{};  // before the report
  std::function<void(const report&)> on_report{};
  options inspecting{};   // with which inspect is turned on, unless it is on
  clock* time = nullptr;  // null: the real clock
};

class watchdog {
 public:
  using options = watchdog_options;

  explicit watchdog(options o = {});
  watchdog(const watchdog&) = delete;
  watchdog& operator=(const watchdog&) = delete;
  ~watchdog();

  // While the result lives, what it names is looked after. The watchdog must outlive it.
  class [[nodiscard("without it, nothing is looked after")]] looking_after {
   public:
    looking_after(looking_after && other) noexcept
        : dog_(std::exchange(other.dog_, nullptr)), number_(other.number_) {}
    looking_after& operator=(looking_after&&) = delete;
    ~looking_after() {
      if (dog_ != nullptr) dog_->forget(number_);
    }

   private:
    friend class watchdog;
    looking_after(watchdog & dog, std::uint64_t number) noexcept : dog_(&dog), number_(number) {}
    watchdog* dog_;
    std::uint64_t number_;
  };

  // `how_far` is called by the watchdog's thread, until the result is destroyed: that waits for one
  // that is under way.
  looking_after watch(std::string name, std::function<progress()> how_far);
  // A queue stalls when nothing is popped although there is something to pop, an executor when
  // nothing is finished although something is running or queued (progress.hpp).
  template <class T>
  looking_after watch(const T& what) {
    static_assert(
        tells_progress<T>,
        "nothing is known of how far this type has come (or, of a delay_queue, of what is "
        "due): use watch(name, how_far), with a function that returns its progress");
    return watch(progress_name(what), [&what] { return progress_of(what); });
  }

  // Looks now, on this thread, and reports what is new. Does nothing inside of `how_far`.
  void look();
  // Reports all waits and the most contended objects.
  void print();

 private:
  class impl;
  void forget(std::uint64_t number) noexcept;
  std::unique_ptr<impl> impl_;
};

}  // namespace sluice::inspect
