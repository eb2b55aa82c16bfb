#pragma once

// The real program as a test meets it: started, spoken to, and held to what it prints and to how it
// ends.

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
// Makes a file with this text; returns its path.
std::string make_file(const temporary_folder& in, const std::string& name, const std::string& text);

struct ended {
  int code = -1;  // as a shell sees it: 128 and the number of a signal that killed it
  std::string out;
  std::string err;
};

struct start_options {
  std::string input{};
  std::string called{};                    // by this path, a link to it; empty: by its own
  std::vector<std::string> environment{};  // NAME=VALUE, beside this program's own
  bool on_terminal = false;                // its standard output is one
  bool has_keyboard = false;               // and its standard input the same: see `type`
  // Listening sockets that it inherits, with their names, as from systemd.
  std::vector<std::pair<std::string, int>> sockets{};
};

// `sluice` with these words, from its start. Killed when it outlives the test.
class program {
 public:
  explicit program(const std::vector<std::string>& words, const start_options& o = {});
  ~program();
  program(const program&) = delete;
  program& operator=(const program&) = delete;

  // Until it was waited for; zero after that.
  pid_t pid() const { return pid_; }
  void signal(int number) const;
  // Writes beyond this size of any file fail from now on; none: they do not.
  void limit_files(std::optional<std::uint64_t> bytes_max) const;
  // Waits for its end, a minute at most (then it is killed and the test has failed).
  ended wait();
  bool has_ended() const;
  // What it has written so far.
  std::string out() const;
  std::string err() const { return text_of(folder_.file("err")); }
  // On its terminal.
  void type(const std::string& keys) const;
  void resize(unsigned short columns, unsigned short rows) const;
  bool terminal_is_raw() const;  // keys come one by one, and are not shown

 private:
  bool wait_for_end(std::string& shown) const;

  temporary_folder folder_;
  pid_t pid_ = 0;
  int handle_ = -1;         // a pidfd: readable when it has ended
  mutable int signal_ = 0;  // the last that was sent
  int terminal_ = -1;       // our end of its standard output
};

// Runs it to its end.
ended run_sluice(const std::vector<std::string>& words, const start_options& o = {});

// `sluice serve` on a free port of this machine, with its data in a folder that outlives it.
class server_program {
 public:
  explicit server_program(const temporary_folder& in, std::vector<std::string> more = {},
                          const start_options& o = {});

  const std::string& url() const { return url_; }
  // Of "beanstalk" or "faktory".
  std::uint16_t port_for(const std::string& protocol) const;
  program& itself() { return program_; }
  // Another command, for this server.
  ended run(std::vector<std::string> words, start_options o = {}) const;
  // SIGTERM, and how it ended.
  ended stop();

 private:
  static std::vector<std::string> words_for(const temporary_folder& in,
                                            const std::vector<std::string>& more);

  std::string port_file_;
  program program_;
  std::string url_;
};

}  // namespace sluice::jobs::cli::testing
