#pragma once

// Runs the real `sluice` program in a test: starts it, sends input and signals, and returns its
// output and exit code.

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sluice/base/testing/temporary_folder.hpp"

namespace sluice::jobs::cli::testing {

using sluice::testing::temporary_folder;

std::string text_of(const std::string& file);
// Creates a file with this text; returns its path.
std::string make_file(const temporary_folder& in, const std::string& name, const std::string& text);

struct ended {
  int code = -1;  // as in a shell: 128 + the signal number if a signal killed it
  std::string out;
  std::string err;
};

struct start_options {
  std::string input{};
  std::string called{};                    // path of a link to start it by; empty: its own path
  std::vector<std::string> environment{};  // NAME=VALUE, added to this program's own
  bool on_terminal = false;                // standard output is a terminal
  bool has_keyboard = false;               // standard input is that terminal, too: see `type`
  // Listening sockets to inherit, with their names, as from systemd.
  std::vector<std::pair<std::string, int>> sockets{};
};

// A running `sluice` with these arguments. The destructor kills it.
class program {
 public:
  explicit program(const std::vector<std::string>& words, const start_options& o = {});
  ~program();
  program(const program&) = delete;
  program& operator=(const program&) = delete;

  // Zero after `wait`.
  pid_t pid() const { return pid_; }
  void signal(int number) const;
  // Makes writes beyond this file size fail; unset: removes the limit.
  void limit_files(std::optional<std::uint64_t> bytes_max) const;
  // Waits up to a minute for its end; then kills it and fails the test.
  ended wait();
  bool has_ended() const;
  // Returns its output so far.
  std::string out() const;
  std::string err() const { return text_of(folder_.file("err")); }
  // Functions of its terminal.
  void type(const std::string& keys) const;
  void resize(unsigned short columns, unsigned short rows) const;
  bool terminal_is_raw() const;  // keys arrive one by one, without echo

 private:
  bool wait_for_end(std::string& shown) const;

  temporary_folder folder_;
  pid_t pid_ = 0;
  int handle_ = -1;         // a pidfd: readable when the program has ended
  mutable int signal_ = 0;  // the last signal sent
  int terminal_ = -1;       // the test's end of its terminal
};

// Runs the program to its end.
ended run_sluice(const std::vector<std::string>& words, const start_options& o = {});

// `sluice serve` on a free loopback port, with its data in a folder that outlives it.
class server_program {
 public:
  explicit server_program(const temporary_folder& in, std::vector<std::string> more = {},
                          const start_options& o = {});

  const std::string& url() const { return url_; }
  // `protocol` is "beanstalk" or "faktory".
  std::uint16_t port_for(const std::string& protocol) const;
  program& itself() { return program_; }
  // Runs another command against this server.
  ended run(std::vector<std::string> words, start_options o = {}) const;
  // Sends SIGTERM and waits for the end.
  ended stop();

 private:
  static std::vector<std::string> words_for(const temporary_folder& in,
                                            const std::vector<std::string>& more);

  std::string port_file_;
  program program_;
  std::string url_;
};

}  // namespace sluice::jobs::cli::testing
