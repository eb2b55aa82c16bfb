#pragma once

// Where a command reads and writes: standard input, output and error, and what is known about them.
//
// Results go to `out`, all else (questions, progress, complaints) to `err`, so that a pipe gets
// results only.

#include <cstdio>
#include <string>
#include <string_view>

#include "jobs/cli/exit_code.hpp"
#include "jobs/cli/table.hpp"
#include "jobs/model/result.hpp"

namespace sluice::jobs::cli {

class console {
 public:
  struct streams {
    std::FILE* in = stdin;
    std::FILE* out = stdout;
    std::FILE* err = stderr;
  };

  console() : console(streams{}) {}
  explicit console(streams where);

  // Colours on a terminal, unless NO_COLOR is set.
  const text_style& style() const noexcept { return out_style_; }
  bool is_interactive() const noexcept { return interactive_; }  // somebody can answer a question
  bool shows_progress() const noexcept { return err_is_terminal_; }
  std::size_t columns() const noexcept;  // of the terminal that err is; 80 where it is none

  void print(std::string_view text) const;  // as it is
  void line(std::string_view text) const;   // and a line end
  void note(std::string_view text) const;   // a line to err
  // One line that takes the place of the one before; an empty one wipes it. Nothing unless err is a
  // terminal.
  void progress(std::string_view text) const;

  // "sluice: MESSAGE" to err; returns the exit code that belongs to it.
  exit_code complain(exit_code code, std::string_view message) const;
  exit_code complain(const error& why) const;

  // A line from `in` that begins with y or Y.
  bool confirms(std::string_view question) const;
  // Everything that is left in `in`, up to a limit.
  result<std::string> read_all(std::size_t bytes_max) const;
  std::FILE* in() const noexcept { return in_; }

  // What was printed is out; io_error when it could not be written (a full disk, a closed pipe).
  void_result flush() const;

 private:
  std::FILE* in_;
  std::FILE* out_;
  std::FILE* err_;
  bool interactive_;
  bool err_is_terminal_;
  text_style out_style_;
  text_style err_style_;
};

// The whole of a file, up to a limit. not_found, too_large, io_error.
result<std::string> read_file(const std::string& path, std::size_t bytes_max);

}  // namespace sluice::jobs::cli
