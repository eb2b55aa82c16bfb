#pragma once

// What the demonstration is asked to do: the command line, read and checked.

#include <chrono>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sluice/base/overflow.hpp"

namespace burst {

enum class output { screen, json };

struct settings {
  std::size_t tasks = 50'000;
  std::size_t workers = 8;
  std::size_t capacity = 4'096;
  std::chrono::microseconds arrival{500'000};  // in which all tasks arrive
  std::chrono::microseconds work{200};         // that one task takes a worker
  std::chrono::microseconds idle{1'000'000};   // to look at afterwards
  std::vector<sluice::overflow> policies{sluice::overflow::block, sluice::overflow::reject,
                                         sluice::overflow::drop_newest,
                                         sluice::overflow::drop_oldest, sluice::overflow::latest};
  burst::output output = output::screen;
  bool ascii = false;
};

// What to do after the command line was read: run with the settings, or print the text and end.
struct command {
  settings run_with;
  std::string print;
  std::optional<int> exit_code;
};

command read_command_line(std::span<const char* const> arguments);

}  // namespace burst
