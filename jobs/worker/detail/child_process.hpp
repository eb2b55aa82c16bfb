#pragma once

// A program started with its standard input and with pipes for its standard output and error. Can
// signal its process group and waits for its end.
//
// Guarantees: the destructor kills the process group and reaps the program. The process group is
// signalled only while the program has not been reaped, so its number cannot have been reused. If
// other code reaps the program (the kernel does while SIGCHLD is ignored), its end is `unknown`,
// which is not a success.
// known, and that is no success.

#include <signal.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "jobs/model/result.hpp"
#include "jobs/worker/detail/unique_fd.hpp"

namespace sluice::jobs::detail {

struct child_start {
  std::string file;                      // a path
  std::vector<std::string> argv;         // with the name first
  std::vector<std::string> environment;  // NAME=value, complete
  std::string directory;                 // empty: the current one
  std::string_view input;                // standard input
};

struct child_end {
  enum class kind : std::uint8_t { exit, signal, unknown };
  kind ended_by = kind::unknown;
  int code = 0;  // exit code, signal number, or the errno of waitid
  bool dumped_core = false;

  bool is_success() const noexcept { return ended_by == kind::exit && code == 0; }
};
std::string describe(const child_end& end);  // "exit code 3", "signal SIGSEGV"

// Reads a pipe and keeps the first or the last `most` bytes.
class pipe_reader {
 public:
  enum class keep : std::uint8_t { first, last };
  pipe_reader(keep kept_part, std::size_t most) : kept_part_(kept_part), most_(most) {}

  // `callback` is called with each piece read.
  void on_read(std::function<void(std::string_view)> callback) { on_read_ = std::move(callback); }
  void read_from(unique_fd from) { fd_ = std::move(from); }
  int fd() const noexcept { return fd_.get(); }  // -1: end of file
  // Reads up to `up_to` available bytes. Returns false if there were none.
  bool read_some(std::size_t up_to);
  // Reads the available bytes, at most the pipe's capacity, then closes it. Does not wait for other
  // writers.
  void read_rest();

  bool was_cut() const noexcept { return cut_; }
  const std::string& kept() const noexcept { return kept_; }

 private:
  void add(std::string_view read);

  unique_fd fd_;
  const keep kept_part_;
  const std::size_t most_;
  std::function<void(std::string_view)> on_read_;
  std::string kept_;
  bool cut_ = false;
};

class child_process {
 public:
  // Fails with `io_error` if the program cannot be started.
  static result<child_process> start(const child_start& settings, pipe_reader& out,
                                     pipe_reader& err);
  child_process(child_process&& other) noexcept;
  child_process& operator=(child_process&&) = delete;
  ~child_process();

  // Becomes readable when the program ends.
  int pidfd() const noexcept { return pidfd_.get(); }
  void signal_group(int signal) const noexcept;
  // Waits for the end and reaps the program. `unknown` if other code has reaped it.
  child_end reap();

 private:
  // waitid on this program only; returns zero or errno.
  int wait_for_end(siginfo_t& info, int options) const noexcept;
  child_process(pid_t pid, unique_fd pidfd) noexcept : pid_(pid), pidfd_(std::move(pidfd)) {}

  pid_t pid_;  // zero if reaped or moved from
  unique_fd pidfd_;
};

}  // namespace sluice::jobs::detail
