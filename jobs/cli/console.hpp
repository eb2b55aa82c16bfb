#pragma once

// Standard input, output and error of a command, and their properties (terminal, colours, width).
//
// Results go to `out`, all other output (questions, progress, errors) to `err`, so that a pipe gets
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
  explicit console(streams s);

  // Colours on a terminal, unless NO_COLOR is set.
  const text_style& style() const noexcept { return out_style_; }
  bool is_interactive() const noexcept { return interactive_; }  // questions can be answered
  bool shows_progress() const noexcept { return err_is_terminal_; }
  std::size_t columns() const noexcept;  // of the terminal on err; 80 if err is no terminal

  void print(std::string_view text) const;  // unchanged
  void line(std::string_view text) const;   // with a line end
  void note(std::string_view text) const;   // a line to err
  // Replaces the progress line; an empty text erases it. Does nothing if err is not a terminal.
  void progress(std::string_view text) const;

  // Prints "sluice: MESSAGE" to err and returns the matching exit code.
  exit_code complain(exit_code code, std::string_view message) const;
  exit_code complain(const error& why) const;

  // Prints the question and reads a line from `in`. Returns whether it begins with y or Y.
  bool confirms(std::string_view question) const;
  // Reads `in` to its end, up to a limit.
  result<std::string> read_all(std::size_t bytes_max) const;
  std::FILE* in() const noexcept { return in_; }

  // Flushes the output. Fails with `io_error` if it could not be written (full disk, closed pipe).
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

// Reads a whole file, up to a limit. Fails with `not_found`, `too_large` or `io_error`.
result<std::string> read_file(const std::string& path, std::size_t bytes_max);

}  // namespace sluice::jobs::cli
