#pragma once

// Describes the program's commands and flags as plain values, for the manual page, shell completion
// and the tests of the documents. It is read from the parser itself, so they cannot differ.

#include <string>
#include <vector>

namespace sluice::jobs::cli {

struct flag_description {
  std::vector<std::string> names{};  // "--queue", "-q"; only the name for a positional argument
  std::string value{};               // FILE, DURATION, a|b|c; empty: takes no value
  std::string summary{};
  std::string default_value{};  // empty: none, or part of `about`
  std::string environment{};    // the variable with the same meaning; empty: none
  bool is_positional = false;
  bool is_required = false;
  bool is_list = false;  // may be repeated

  // Returns the allowed words if `value` is a list of words, else an empty list.
  std::vector<std::string> choices() const;
};

struct command_description {
  std::string name{};
  std::string summary{};
  std::string examples{};  // and further text at the end of the help
  std::vector<flag_description> flags{};
  std::vector<command_description> commands{};
};

command_description describe_program();

}  // namespace sluice::jobs::cli
