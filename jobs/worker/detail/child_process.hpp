#pragma once

// A program that was started with a text to read and two pipes to write to: sleeps until something
// happens to it, ends it with all it started, and leaves nothing behind.
//
// Guarantees: destroyed, it kills the process group and waits for the program. Its process group is
// signalled only while the program has not been reaped: until then nobody else can have its number.
// Where somebody else reaps it (the system does, while SIGCHLD is ignored), how it ended is not
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
  std::vector<std::string> argv;         // the name first
  std::vector<std::string> environment;  // NAME=value; all of it
  std::string directory;                 // empty: here
  std::string_view input;                // its standard input
};

struct child_end {
  enum class kind : std::uint8_t { exit, signal, unknown };
  kind how = kind::unknown;
  int code = 0;  // the exit code, the signal, or the errno that says why it is not known
  bool dumped_core = false;

  bool is_success() const noexcept { return how == kind::exit && code == 0; }
};
std::string describe(const child_end& end);  // "exit code 3", "signal SIGSEGV"

// Keeps the first so many bytes of a pipe, or the last.
class pipe_reader {
 public:
  enum class keep : std::uint8_t { first, last };
  pipe_reader(keep which, std::size_t most) : which_(which), most_(most) {}

  // Called with whatever is read, as it is read.
  void tell(std::function<void(std::string_view)> hear) { hear_ = std::move(hear); }
  void read_from(unique_fd from) { fd_ = std::move(from); }
  int fd() const noexcept { return fd_.get(); }  // -1: at its end
  // Reads what is there, up to so many bytes. False: nothing was.
  bool read_some(std::size_t up_to);
  // Reads what is there now, up to what a pipe can hold: whoever still writes is not waited for.
  void read_rest();

  bool was_cut() const noexcept { return cut_; }
  const std::string& kept() const noexcept { return kept_; }

 private:
  void add(std::string_view read);

  unique_fd fd_;
  const keep which_;
  const std::size_t most_;
  std::function<void(std::string_view)> hear_;
  std::string kept_;
  bool cut_ = false;
};

class child_process {
 public:
  // io_error: it could not be started, and why.
  static result<child_process> start(const child_start& how, pipe_reader& out, pipe_reader& err);
  child_process(child_process&& other) noexcept;
  child_process& operator=(child_process&&) = delete;
  ~child_process();

  // Becomes readable when the program has ended.
  int pidfd() const noexcept { return pidfd_.get(); }
  void signal_group(int signal) const noexcept;
  // Once it has ended: reaps it. Unknown when somebody else has.
  child_end reap();

 private:
  // waitid on it and on nobody else; zero, or errno.
  int wait_for_end(siginfo_t& about, int options) const noexcept;
  child_process(pid_t pid, unique_fd pidfd) noexcept : pid_(pid), pidfd_(std::move(pidfd)) {}

  pid_t pid_;  // zero: reaped, or moved from
  unique_fd pidfd_;
};

}  // namespace sluice::jobs::detail
