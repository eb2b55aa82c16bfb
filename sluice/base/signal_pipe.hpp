#pragma once

// Brings a signal of the operating system to a thread that may do something about it: a handler may
// hardly do anything, so this one writes a byte to a pipe, and the thread reads it.
//
// One at a time in the process. While it lives the signal has no other effect; at its end it has
// again the one that it had before. Any thread may call anything.
//
//     signal_pipe usr1(SIGUSR1);
//     while (usr1.wait()) print_everything();              // until somebody calls close()

namespace sluice::seam {

class signal_pipe {
 public:
  // A broken contract when there is one already, or the signal cannot be caught.
  explicit signal_pipe(int signal);
  signal_pipe(const signal_pipe&) = delete;
  signal_pipe& operator=(const signal_pipe&) = delete;
  ~signal_pipe();

  // Until the signal has come: true. Several that came at once may count as one. False: closed.
  bool wait() noexcept;
  // Ends all waits.
  void close() noexcept;

 private:
  const int signal_;
  int read_ = -1;
  int write_ = -1;
};

}  // namespace sluice::seam
