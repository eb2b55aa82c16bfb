#pragma once

// What commands and flags the program has, as plain values: what its manual page and its shell
// completion are made of, and what a test holds its documents to. It is read off the parser itself,
// so that none of them can differ from what is understood.

#include <string>
#include <vector>

namespace sluice::jobs::cli {

struct flag_description {
  std::vector<std::string>
      names{};          // "--queue", "-q"; of an argument without a flag its name alone
  std::string value{};  // FILE, DURATION, a|b|c; empty: it takes none
  std::string about{};
  std::string default_value{};  // empty: none, or it is in `about`
  std::string environment{};    // the variable that says the same; empty: none
  bool is_positional = false;
  bool is_required = false;
  bool is_list = false;  // it may be there several times

  // The words that it takes, where it takes one of a few.
  std::vector<std::string> choices() const;
};

struct command_description {
  std::string name{};
  std::string about{};
  std::string examples{};  // and what else help says at its end
  std::vector<flag_description> flags{};
  std::vector<command_description> commands{};
};

command_description describe_program();

}  // namespace sluice::jobs::cli
