#include "benchmarks/harness.hpp"

#include <unistd.h>
#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "benchmarks/line_trip.hpp"
#include "benchmarks/report.hpp"

namespace sluice::bench {

namespace {

std::vector<void (*)(suite&)>& registered() {
  static std::vector<void (*)(suite&)> all;
  return all;
}

std::vector<const on_failure*>& to_clean_up() {
  static std::vector<const on_failure*> all;
  return all;
}

std::mutex& to_clean_up_lock() {
  static std::mutex one;
  return one;
}

// The order in every table, independent of the order of linking: sluice, the baseline, the peers.
int rank(std::string_view who) {
  constexpr std::array<std::string_view, 8> order = {"sluice",     "sluice_", "std", "tbb",
                                                     "moodycamel", "boost",   "caf", "go"};
  for (std::size_t i = 0; i < order.size(); ++i) {
    const bool family = order[i].ends_with('_');
    if (who == order[i] || (family && who.starts_with(order[i]))) {
      return static_cast<int>(i);
    }
  }
  return static_cast<int>(order.size());
}

constexpr std::string_view usage =
    "usage: bench_NAME [--json FILE] [--reps N] [--quick] [--filter WORKLOAD] [--list]\n"
    "                  [--check] [--patient]\n"
    "  --json FILE        also write the medians as JSON\n"
    "  --reps N           repetitions per contender (default 7)\n"
    "  --quick            smoke run: every contender once, briefly; the numbers mean nothing\n"
    "  --filter WORKLOAD  run this workload only\n"
    "  --list             print workloads and contenders, run nothing\n"
    "  --check            exit with 1 if a bar is not met\n"
    "  --patient          wait for an idle machine; repeat runs that other processes disturbed\n";

[[noreturn]] void bad_usage(std::string_view problem) {
  std::cerr << problem << '\n' << usage;
  std::exit(2);
}

settings parse(int argc, char** argv) {
  settings result;
  std::optional<unsigned> repetitions;
  for (int i = 1; i < argc; ++i) {
    const std::string_view flag = argv[i];
    const auto value = [&]() -> std::string {
      if (i + 1 == argc) {
        bad_usage(std::string(flag) + " needs a value");
      }
      return argv[++i];
    };
    if (flag == "--json") {
      result.json_file = value();
    } else if (flag == "--filter") {
      result.filter = value();
    } else if (flag == "--reps") {
      const std::string text = value();
      unsigned n = 0;
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
      if (error != std::errc{} || end != text.data() + text.size() || n == 0 || n > 1000) {
        bad_usage("--reps takes a number from 1 to 1000, not '" + text + "'");
      }
      repetitions = n;
    } else if (flag == "--quick") {
      result.quick = true;
      result.repetitions = 1;
      result.run_time = seconds(0.01);
    } else if (flag == "--list") {
      result.list = true;
    } else if (flag == "--check") {
      result.check = true;
    } else if (flag == "--patient") {
      result.patient = true;
    } else if (flag == "--help" || flag == "-h") {
      std::cout << usage;
      std::exit(0);
    } else {
      bad_usage("unknown argument '" + std::string(flag) + "'");
    }
  }
  result.repetitions = repetitions.value_or(result.repetitions);
  return result;
}

// Shows the current run in one line of a terminal, and erases it at the end. Silent in a log file.
class progress {
 public:
  explicit progress(std::string title) : title_(std::move(title)) {}
  ~progress() {
    if (terminal_) {
      std::cerr << "\r\033[K" << std::flush;
    }
  }
  void show(std::string_view step, std::string_view who) const {
    if (terminal_) {
      std::cerr << "\r\033[K" << title_ << ": " << step << ", " << who << std::flush;
    }
  }
  progress(const progress&) = delete;
  progress& operator=(const progress&) = delete;

 private:
  std::string title_;
  bool terminal_ = ::isatty(STDERR_FILENO) == 1;
};

struct sample {
  double value;
  double bystander_cores;
};

// Returns when other processes are idle, or after a minute.
void wait_for_quiet() {
  for (int i = 0; i < 300; ++i) {
    const bystanders others;
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    if (others.cores() < noisy_cores) return;
  }
}

// Runs one repetition of one contender. A patient run waits for an idle machine, and is repeated up
// to five times if other processes disturb it.
sample run_once(contender& c, const settings& s) {
  constexpr int patience = 5;
  for (int tries = 1;; ++tries) {
    if (s.patient) wait_for_quiet();
    const bystanders others;
    const double value = c.run(s);
    const double cores = others.cores();
    if (!s.patient || cores < noisy_cores || tries == patience) return {value, cores};
  }
}

void run_board(const std::string& bench, scoreboard& board, const settings& s) {
  const progress line(bench + "/" + board.spec.name);
  const unsigned repetitions = std::min(s.repetitions, board.spec.repetitions_max);
  if (!s.quick) {
    for (contender& c : board.contenders) {
      line.show("warm-up", c.who);
      c.run(s);
    }
  }
  double bystander_cores = 0;
  for (unsigned r = 0; r < repetitions; ++r) {
    const std::string step =
        "repetition " + std::to_string(r + 1) + " of " + std::to_string(repetitions);
    for (std::size_t i = 0; i < board.contenders.size(); ++i) {
      contender& c = board.contenders[(i + r) % board.contenders.size()];
      line.show(step, c.who);
      if (!s.quick) board.line_trips.push_back(line_round_trip_ns());
      const sample taken = run_once(c, s);
      c.values.push_back(taken.value);
      bystander_cores += taken.bystander_cores;
    }
  }
  board.bystander_cores =
      bystander_cores /
      static_cast<double>(repetitions * std::max(std::size_t{1}, board.contenders.size()));
}

}  // namespace

bar at_least(double times, std::string against, std::string who) {
  return {bar::rule::at_least_times, times, std::move(against), std::move(who)};
}

bar at_most(double times, std::string against, std::string who) {
  return {bar::rule::at_most_times, times, std::move(against), std::move(who)};
}

bar below(double limit, std::string who) {
  return {bar::rule::below, limit, "", std::move(who)};
}

bar above(double limit, std::string who) {
  return {bar::rule::above, limit, "", std::move(who)};
}

measure operations_per_second(timed_run run) {
  return [run = std::move(run)](const settings& s) {
    const tally done = run(s.run_time);
    return static_cast<double>(done.operations) / done.took.count();
  };
}

measure nanoseconds_per_operation(timed_run run) {
  return [run = std::move(run)](const settings& s) {
    const tally done = run(s.run_time);
    if (done.operations == 0) fail("a run ended without a single operation");
    return 1e9 * done.took.count() / static_cast<double>(done.operations);
  };
}

registration::registration(void (*add)(suite&)) {
  registered().push_back(add);
}

suite::suite(std::string name) : name_(std::move(name)) {}

void suite::declare(workload declared) {
  boards_.push_back({.spec = std::move(declared), .contenders = {}});
}

void suite::add(std::string_view workload_name, std::string who, measure run) {
  for (scoreboard& board : boards_) {
    if (board.spec.name != workload_name) {
      continue;
    }
    for (const contender& c : board.contenders) {
      if (c.who == who) {
        fail(who + " is twice in workload " + std::string(workload_name));
      }
    }
    board.contenders.push_back({std::move(who), std::move(run)});
    return;
  }
  fail(who + " is added to a workload that does not exist: " + std::string(workload_name));
}

int suite::run(int argc, char** argv) {
  const settings s = parse(argc, argv);
  for (auto* add : registered()) {
    add(*this);
  }
  if (!s.filter.empty()) {
    std::erase_if(boards_, [&](const scoreboard& b) { return b.spec.name != s.filter; });
    if (boards_.empty()) {
      bad_usage("no workload is called '" + s.filter + "'; --list names them");
    }
  }
  for (scoreboard& board : boards_) {
    std::ranges::stable_sort(board.contenders, {},
                             [](const contender& c) { return std::pair(rank(c.who), c.who); });
  }
  if (s.list) {
    for (const scoreboard& board : boards_) {
      for (const contender& c : board.contenders) {
        std::cout << name_ << ' ' << board.spec.name << ' ' << c.who << '\n';
      }
    }
    return 0;
  }
  std::ofstream json;
  if (!s.json_file.empty()) {
    json.open(s.json_file);  // now, so that a wrong path fails before minutes of measurements
    if (!json) {
      bad_usage("cannot write " + s.json_file);
    }
  }

  print_environment(std::cout);
  for (scoreboard& board : boards_) {
    run_board(name_, board, s);
    print_board(std::cout, name_, board);
  }
  const int missed = print_bars(std::cout, boards_);
  if (s.quick) {
    std::cout << "\nThis was a --quick run: a test that the bench works, not a measurement.\n";
  }
  if (json.is_open()) {
    write_json(json, name_, boards_);
    json.close();
    if (!json) {
      fail("could not write " + s.json_file);
    }
  }
  return s.check && missed != 0 ? 1 : 0;
}

on_failure::on_failure(std::function<void()> clean_up) : clean_up_(std::move(clean_up)) {
  const std::scoped_lock lock(to_clean_up_lock());
  to_clean_up().push_back(this);
}

on_failure::~on_failure() {
  const std::scoped_lock lock(to_clean_up_lock());
  std::erase(to_clean_up(), this);
}

void fail(std::string_view why) {
  std::cout.flush();
  std::cerr << "\nbench failed: " << why << std::endl;
  const std::scoped_lock lock(to_clean_up_lock());
  for (const on_failure* each : to_clean_up()) each->clean_up_();
  std::_Exit(3);  // contenders' threads may still run, so no destructors
}

void expect_equal(std::uint64_t actual, std::uint64_t expected, std::string_view quantity) {
  if (actual != expected) {
    fail(std::string(quantity) + ": got " + std::to_string(actual) + ", expected " +
         std::to_string(expected));
  }
}

}  // namespace sluice::bench
