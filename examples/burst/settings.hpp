#pragma once

// The settings of the demonstration: the command line, parsed and checked.

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
  std::chrono::microseconds work{200};         // of a worker for one task
  std::chrono::microseconds idle{1'000'000};   // of idle workers, measured at the end
  std::vector<sluice::overflow> policies{sluice::overflow::block, sluice::overflow::reject,
                                         sluice::overflow::drop_newest,
                                         sluice::overflow::drop_oldest, sluice::overflow::latest};
  burst::output output = output::screen;
  bool ascii = false;
};

// The result of parsing: settings to run with, or a text to print before exit.
struct command {
  settings run_with;
  std::string print;
  std::optional<int> exit_code;
};

command read_command_line(std::span<const char* const> arguments);

}  // namespace burst
