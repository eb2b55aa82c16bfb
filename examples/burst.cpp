// The burst demonstration: 50,000 tasks arrive within half a second at a bounded queue with eight
// workers. The outcome depends on the queue's overflow policy; the program tries each in turn.
//
//   burst --help
//
// burst/burst.cpp has the queue, the producer and the workers; the rest is command line and screen.
#include "examples/burst/burst.hpp"

#include <csignal>
#include <cstdio>
#include <stop_token>
#include <string>
#include <vector>

#include "examples/burst/format.hpp"
#include "examples/burst/screen.hpp"
#include "examples/burst/settings.hpp"
#include "examples/burst/summary.hpp"
#include "examples/burst/terminal.hpp"

namespace {

volatile std::sig_atomic_t interrupted = 0;

extern "C" void on_interrupt(int) {
  interrupted = 1;
}

void print(const std::string& text) {
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
}

std::string introduction(const burst::settings& s) {
  return burst::grouped(s.tasks) + " tasks arrive within " + burst::readable(s.arrival) +
         " at a queue with " + burst::grouped(s.capacity) + " places;\n" +
         burst::grouped(s.workers) + " workers take " + burst::readable(s.work) + " for each.\n\n";
}

std::string conclusion(const burst::settings& s, const std::vector<burst::report>& reports) {
  burst::nanoseconds idle_for{};
  burst::nanoseconds idle_cpu{};
  for (const burst::report& r : reports) {
    idle_for += r.idle_for;
    idle_cpu += r.idle_cpu;
  }
  return "\nEvery task is accounted for: arrived = done + rejected + dropped.\n"
         "With nothing to do, the " +
         burst::grouped(s.workers) + " workers used " + burst::readable(idle_cpu) + " of CPU in " +
         burst::fixed(burst::in_seconds(idle_for), 1, " s") + ".\n";
}

std::vector<burst::report> run_all(const burst::settings& s, const burst::terminal& terminal) {
  const bool shows_table = s.output == burst::output::screen;
  const bool shows_live = shows_table && terminal.is_live();
  std::stop_source stop;
  burst::screen screen(terminal, s);
  std::vector<burst::report> reports;

  if (shows_table) print(introduction(s) + burst::table_head(terminal));
  for (const sluice::overflow policy : s.policies) {
    screen.begin(policy, reports.size() + 1);
    reports.push_back(burst::run(s, policy, stop.get_token(), [&](const burst::moment& now) {
      if (interrupted != 0) stop.request_stop();
      if (shows_live) screen.show(now);
    }));
    screen.clear();
    if (reports.back().interrupted) break;
    if (shows_table) print(burst::table_row(reports.back(), terminal));
  }
  return reports;
}

int run(const burst::settings& s) {
  const burst::terminal terminal(s.ascii);
  const auto reports = run_all(s, terminal);
  if (reports.back().interrupted) {
    std::fputs("burst: interrupted\n", stderr);
    return 130;
  }
  bool all_add_up = true;
  for (const burst::report& r : reports) {
    const std::string error = burst::find_error(r, s.tasks);
    if (error.empty()) continue;
    std::fprintf(stderr, "burst: the accounts do not add up: %s\n", error.c_str());
    all_add_up = false;
  }
  if (!all_add_up) return 1;
  print(s.output == burst::output::json ? burst::to_json(s, reports) : conclusion(s, reports));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<const char*> arguments(argv + 1, argv + argc);
  const burst::command command = burst::read_command_line(arguments);
  if (command.exit_code.has_value()) {
    std::fputs(command.print.c_str(), *command.exit_code == 0 ? stdout : stderr);
    return *command.exit_code;
  }
  std::signal(SIGINT, on_interrupt);
  std::signal(SIGTERM, on_interrupt);
  return run(command.run_with);
}
