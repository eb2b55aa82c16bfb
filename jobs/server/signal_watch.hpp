#pragma once

// Waits for a signal in one thread, as for anything else: no handler runs in the middle of
// something.
//
// Make one before any other thread is started: the signals are blocked in the calling thread, and
// threads inherit that. One thread waits at a time; any may `interrupt`.
//
//     signal_watch signals({SIGTERM, SIGINT});
//     auto worker = start();                          // its threads never see the signals
//     int number = signals.wait().number;

#include <csignal>
#include <initializer_list>

#include "sluice/base/deadline.hpp"

namespace sluice::jobs {

class signal_watch {
 public:
  struct woken {
    enum class by { signal, interrupt, deadline };
    by what = by::deadline;
    int number = 0;  // of the signal
  };

  explicit signal_watch(std::initializer_list<int> numbers);
  ~signal_watch();  // unblocks them, as they were; one that is pending then does what it does
  signal_watch(const signal_watch&) = delete;
  signal_watch& operator=(const signal_watch&) = delete;

  woken wait(deadline until = {});
  // Ends a wait, or the next one.
  void interrupt() noexcept;

 private:
  sigset_t before_{};
  int signals_ = -1;
  int interrupts_ = -1;
};

}  // namespace sluice::jobs
