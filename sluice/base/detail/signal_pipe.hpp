#pragma once

// Delivers a signal of the operating system to a waiting thread. A signal handler may do very
// little, so this one writes a byte to a pipe, which the thread reads.
//
// Guarantees: replaces the signal's handler; the destructor restores the previous one. Any thread
// may call any function. Limits: one instance at a time in the process.
//
//     signal_pipe usr1(SIGUSR1);
//     while (usr1.wait()) print_everything();              // until close()

namespace sluice::seam {

class signal_pipe {
 public:
  // It is a broken contract if another instance exists or the signal cannot be caught.
  explicit signal_pipe(int signal);
  signal_pipe(const signal_pipe&) = delete;
  signal_pipe& operator=(const signal_pipe&) = delete;
  ~signal_pipe();

  // Blocks until the signal arrives and returns true; signals that arrive together may count as
  // one. Returns false once closed.
  bool wait() noexcept;
  // Ends all current and later waits.
  void close() noexcept;

 private:
  const int signal_;
  int read_ = -1;
  int write_ = -1;
};

}  // namespace sluice::seam
