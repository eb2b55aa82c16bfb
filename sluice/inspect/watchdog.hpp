#pragma once

// Monitors a running process and reports deadlocks, queues and pools that make no progress, and
// locks that are held for long.
//
// Use one in every server. It has one thread of its own, which sleeps between scans.
//
// Reports, each once: a deadlock all of whose waits are at least `deadlock_after` old; a watched
// object (`watch`) that had work but finished none of it for `stalled_after`; a lock held for
// longer than `held_after`. Reports go to `on_report` or, without it, to standard error.
// `print_on_signal`: when the process receives that signal (SIGUSR1, for example), all waits and
// the most contended objects are reported. The signal handler only writes one byte to a pipe.
//
// Guarantees: any thread may call anything, also from inside the watchdog's callbacks. Reports are
// made one at a time, without a lock, by the thread that scanned or, if another thread is
// reporting, by that one afterwards. An exception of a callback is written to standard error.
// `on_report` may take long, but must not wait for a deadlocked party and must not destroy the
// watchdog. A `get_progress` that does not return blocks the scans, not `print`. The watchdog turns
// inspect on if it is off, and off again when it is destroyed. `deadlock_action::abort` aborts the
// process after the report of a certain deadlock (`deadlock::is_certain`); a deadlock through a
// queue, a channel or an ask, or with a limit, is only reported. The destructor joins the thread.
// Cost: one scan per `period`, which grows with the number of waits and holds.
// Limits: only one watchdog at a time may print on a signal; the clock must outlive the watchdog
// and, if the watchdog turned inspect on, also the waits named at `inspect::options::time`.
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

// The action after the report of a certain deadlock.
enum class deadlock_action : std::uint8_t { none, abort };

struct report {
  enum class kind : std::uint8_t { deadlock, stall, long_hold, overview };
  kind type = kind::overview;
  std::string text{};
};

struct watchdog_options {
  std::chrono::nanoseconds period = std::chrono::seconds(1);  // between scans; zero: only `scan()`
  std::chrono::nanoseconds deadlock_after = std::chrono::seconds(1);
  std::chrono::nanoseconds stalled_after = std::chrono::seconds(30);
  std::chrono::nanoseconds held_after = std::chrono::seconds(5);
  int print_on_signal = 0;  // 0: none
  deadlock_action on_deadlock = deadlock_action::none;
  std::function<void(const deadlock&)> deadlock_found{};  // before the report
  std::function<void(const report&)> on_report{};
  options inspecting{};   // for inspect, if the watchdog turns it on
  clock* time = nullptr;  // null: the real clock
};

class watchdog {
 public:
  using options = watchdog_options;

  explicit watchdog(options o = {});
  watchdog(const watchdog&) = delete;
  watchdog& operator=(const watchdog&) = delete;
  ~watchdog();

  // The object is watched for the life of its registration. The watchdog must outlive it.
  class [[nodiscard("the object is watched only while the registration lives")]] registration {
   public:
    registration(registration && other) noexcept
        : dog_(std::exchange(other.dog_, nullptr)), number_(other.number_) {}
    registration& operator=(registration&&) = delete;
    ~registration() {
      if (dog_ != nullptr) dog_->forget(number_);
    }

   private:
    friend class watchdog;
    registration(watchdog & dog, std::uint64_t number) noexcept : dog_(&dog), number_(number) {}
    watchdog* dog_;
    std::uint64_t number_;
  };

  // Calls `get_progress` on the thread that scans until the registration is destroyed. Its
  // destructor waits for a call in progress, unless it runs inside `get_progress`.
  registration watch(std::string name, std::function<progress()> get_progress);
  // A queue stalls if it has items and none is popped, an executor if work is running or queued and
  // none finishes (progress.hpp). The object must outlive the registration.
  template <class T>
  registration watch(const T& object) {
    static_assert(
        reports_progress<T>,
        "the progress of this type is unknown (a delay_queue does not count its due items): use "
        "watch(name, get_progress) with a function that returns its progress");
    return watch(progress_name(object), [&object] { return progress_of(object); });
  }

  // Scans on the calling thread and reports new findings. Does nothing inside `get_progress`.
  void scan();
  // Reports all waits and the most contended objects.
  void print();

 private:
  class impl;
  void forget(std::uint64_t number) noexcept;
  std::unique_ptr<impl> impl_;
};

}  // namespace sluice::inspect
