#pragma once

// Waits for signals in a thread instead of signal handlers.
//
// Construct it before starting any thread: it blocks the signals in the calling thread, and new
// threads inherit that. One thread at a time may wait; any thread may call `interrupt`.
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
    by cause = by::deadline;
    int number = 0;  // of the signal
  };

  explicit signal_watch(std::initializer_list<int> numbers);
  ~signal_watch();  // restores the signal mask; a pending signal is then delivered
  signal_watch(const signal_watch&) = delete;
  signal_watch& operator=(const signal_watch&) = delete;

  woken wait(deadline until = {});
  // Ends the current wait, or the next one.
  void interrupt() noexcept;

 private:
  sigset_t before_{};
  int signals_ = -1;
  int interrupts_ = -1;
};

}  // namespace sluice::jobs
