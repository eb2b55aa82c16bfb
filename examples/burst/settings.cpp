#include "examples/burst/settings.hpp"

#include <array>
#include <charconv>
#include <string_view>
#include <system_error>

namespace burst {
namespace {

constexpr std::string_view usage =
    R"(burst: many tasks arrive at once at a bounded queue, under each overflow policy in turn

  --tasks N      how many tasks arrive (50000)
  --seconds S    duration of the burst (0.5)
  --workers N    worker threads (8)
  --capacity N   places in the queue (4096)
  --work-us N    how long a task takes a worker, in microseconds (200)
  --policy P     only this one: block, reject, drop_newest, drop_oldest or latest
  --json         print the summary as JSON and nothing else
  --quick        5000 tasks in 0.05 s, 256 places, and a short idle phase
  --ascii        no characters beyond ASCII
  --help         this text

On a terminal the queue is shown live, without colours when NO_COLOR is set; otherwise each
policy is one line. Exit code: 0, or 1 when a task is not accounted for, or 2 for a wrong argument.
)";

struct wrong_argument {
  std::string message;
};

struct limits {
  double least;
  double most;
};

std::string to_text(double number) {
  std::array<char, 32> buffer{};
  const auto end =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), number, std::chars_format::fixed);
  return {buffer.data(), end.ptr};
}

template <class Number>
Number read_number(std::string_view flag, std::string_view text, std::string_view kind,
                   limits allowed) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole_text = error == std::errc{} && end == text.data() + text.size();
  // In this form the check rejects not-a-number, too.
  if (!whole_text || !(static_cast<double>(number) >= allowed.least) ||
      !(static_cast<double>(number) <= allowed.most)) {
    throw wrong_argument{std::string(flag) + " takes " + std::string(kind) + " from " +
                         to_text(allowed.least) + " to " + to_text(allowed.most) + ", not '" +
                         std::string(text) + "'"};
  }
  return number;
}

std::size_t read_count(std::string_view flag, std::string_view text, std::size_t most) {
  return read_number<std::size_t>(flag, text, "a whole number", {1, static_cast<double>(most)});
}

std::chrono::microseconds read_seconds(std::string_view flag, std::string_view text) {
  const auto seconds = read_number<double>(flag, text, "a number", {0.001, 60});
  return std::chrono::round<std::chrono::microseconds>(std::chrono::duration<double>(seconds));
}

sluice::overflow read_policy(std::string_view flag, std::string_view text) {
  std::string known;
  for (const sluice::overflow policy : settings{}.policies) {
    if (to_string(policy) == text) return policy;
    known += (known.empty() ? "" : ", ") + std::string(to_string(policy));
  }
  throw wrong_argument{std::string(flag) + " takes one of " + known + ", not '" +
                       std::string(text) + "'"};
}

bool set_switch(settings& s, std::string_view flag) {
  if (flag == "--json") {
    s.output = output::json;
  } else if (flag == "--quick") {
    // Already applied, so that other arguments override it.
  } else if (flag == "--ascii") {
    s.ascii = true;
  } else {
    return false;
  }
  return true;
}

bool set_value(settings& s, std::string_view flag, std::string_view text) {
  if (flag == "--tasks") {
    s.tasks = read_count(flag, text, 10'000'000);
  } else if (flag == "--workers") {
    s.workers = read_count(flag, text, 1'000);
  } else if (flag == "--capacity") {
    s.capacity = read_count(flag, text, 10'000'000);
  } else if (flag == "--work-us") {
    s.work = std::chrono::microseconds(read_count(flag, text, 1'000'000));
  } else if (flag == "--seconds") {
    s.arrival = read_seconds(flag, text);
  } else if (flag == "--policy") {
    s.policies = {read_policy(flag, text)};
  } else {
    return false;
  }
  return true;
}

bool takes_value(std::string_view flag) {
  static constexpr std::array flags = {"--tasks",   "--workers", "--capacity",
                                       "--work-us", "--seconds", "--policy"};
  for (const std::string_view known : flags) {
    if (flag == known) return true;
  }
  return false;
}

// Removes one flag, with its value if any ("--tasks 10" or "--tasks=10"), from the front.
void read_flag(settings& s, std::span<const char* const>& rest) {
  const std::string_view argument = rest.front();
  rest = rest.subspan(1);
  const auto equals = argument.find('=');
  const auto flag = argument.substr(0, equals);
  if (!takes_value(flag)) {
    if (set_switch(s, argument)) return;
    throw wrong_argument{"unknown argument '" + std::string(argument) + "'"};
  }
  if (equals != std::string_view::npos) {
    set_value(s, flag, argument.substr(equals + 1));
    return;
  }
  if (rest.empty()) throw wrong_argument{std::string(flag) + " needs a value"};
  set_value(s, flag, rest.front());
  rest = rest.subspan(1);
}

settings defaults(std::span<const char* const> arguments) {
  settings s;
  for (const std::string_view argument : arguments) {
    if (argument != "--quick") continue;
    s.tasks = 5'000;
    s.capacity = 256;
    s.arrival = std::chrono::milliseconds(50);
    s.idle = std::chrono::milliseconds(50);
  }
  return s;
}

}  // namespace

command read_command_line(std::span<const char* const> arguments) {
  command result;
  result.run_with = defaults(arguments);
  try {
    while (!arguments.empty()) {
      const std::string_view next = arguments.front();
      if (next == "--help" || next == "-h") return {{}, std::string(usage), 0};
      read_flag(result.run_with, arguments);
    }
  } catch (const wrong_argument& wrong) {
    return {{}, "burst: " + wrong.message + "\nTry: burst --help\n", 2};
  }
  return result;
}

}  // namespace burst
