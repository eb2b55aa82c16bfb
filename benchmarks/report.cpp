#include "benchmarks/report.hpp"

#include <sys/resource.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <thread>

namespace sluice::bench {

namespace {

// Formats with `digits` digits after the point. Unlike printf, independent of the locale.
std::string fixed(double value, int digits) {
  std::array<char, 400> text{};  // the largest double has 309 digits before the point
  const auto [end, error] = std::to_chars(text.data(), text.data() + text.size(), value,
                                          std::chars_format::fixed, digits);
  return error == std::errc{} ? std::string(text.data(), end) : "?";
}

// Formats with as few digits as possible: 10, 1.3.
std::string brief(double value) {
  std::array<char, 32> text{};
  const auto [end, error] =
      std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::general, 6);
  return error == std::errc{} ? std::string(text.data(), end) : "?";
}

std::optional<double> median_of(const scoreboard& board, std::string_view who) {
  for (const contender& c : board.contenders) {
    if (c.who == who && !c.values.empty()) {
      return median(c.values);
    }
  }
  return std::nullopt;
}

std::string times(double ratio) {
  return fixed(ratio, ratio < 10 ? 2 : 1) + "x";
}

bool is_ours(std::string_view who) {
  return who.starts_with("sluice");
}

// Warns if the distance of the cores changed: contenders ran under different conditions.
void print_line_trips(std::ostream& out, const scoreboard& board) {
  if (board.line_trips.empty()) return;
  const auto [least, most] = std::ranges::minmax(board.line_trips);
  if (most <= 2 * least) return;
  out << "  FAR APART: a cache line took " << fixed(least, 0) << " to " << fixed(most, 0)
      << " ns to another core and back\n";
}

// "sluice is 14.3x std, 1.21x go", for each of sluice's contenders against each of the others.
void print_ratios(std::ostream& out, const scoreboard& board) {
  for (const contender& ours : board.contenders) {
    const std::optional<double> value = median_of(board, ours.who);
    if (!is_ours(ours.who) || !value) {
      continue;
    }
    std::string line;
    for (const contender& other : board.contenders) {
      const std::optional<double> base = median_of(board, other.who);
      if (!is_ours(other.who) && base && *base > 0) {
        line += (line.empty() ? " " : ", ") + times(*value / *base) + " " + other.who;
      }
    }
    if (!line.empty()) {
      out << "  " << ours.who << " is" << line << '\n';
    }
  }
}

// Whether a claim is about a value and not about a ratio.
bool is_absolute(const bar& claim) {
  return claim.kind == bar::rule::below || claim.kind == bar::rule::above;
}

std::string claim_text(const bar& claim, const std::string& unit) {
  switch (claim.kind) {
    case bar::rule::at_least_times:
      return claim.who + " at least " + brief(claim.limit) + "x " + claim.against;
    case bar::rule::at_most_times:
      return claim.who + " at most " + brief(claim.limit) + "x " + claim.against;
    case bar::rule::below:
      return claim.who + " below " + brief(claim.limit) + " " + unit;
    case bar::rule::above:
      return claim.who + " above " + format_value(claim.limit) + " " + unit;
  }
  std::abort();
}

// The measured left side of the claim: a ratio, or a value.
std::string measured_text(const bar& claim, const scoreboard& board) {
  const double value = *median_of(board, claim.who);
  if (is_absolute(claim)) {
    return format_value(value) + " " + board.spec.unit;
  }
  return times(value / *median_of(board, claim.against));
}

// Whole numbers from 1000; never an exponent.
std::string json_number(double value) {
  return fixed(value, value < 1000 ? 3 : 0);
}

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      result += '\\';
    }
    result += c;
  }
  return result;
}

// Returns the CPU time of all cores since boot.
seconds machine_busy() {
  std::ifstream in("/proc/stat");
  std::string label;
  double user = 0, nice = 0, system = 0, idle = 0, io_wait = 0, irq = 0, soft_irq = 0, steal = 0;
  in >> label >> user >> nice >> system >> idle >> io_wait >> irq >> soft_irq >> steal;
  const double ticks = user + nice + system + irq + soft_irq + steal;
  return seconds(ticks / static_cast<double>(::sysconf(_SC_CLK_TCK)));
}

seconds own_cpu_time() {
  double total = 0;
  for (const auto scope : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage used{};
    ::getrusage(scope, &used);
    total += static_cast<double>(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
             static_cast<double>(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
  }
  return seconds(total);
}

std::string first_value_of(const char* file, std::string_view key) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with(key)) {
      const std::size_t colon = line.find(": ");
      return colon == std::string::npos ? "" : line.substr(colon + 2);
    }
  }
  return "";
}

}  // namespace

double median(std::vector<double> values) {
  if (values.empty()) {
    fail("median of no values");
  }
  std::ranges::sort(values);
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

std::string format_value(double value) {
  if (value >= 1e6) {
    return fixed(value / 1e6, value < 1e7 ? 2 : 1) + " M";
  }
  if (value >= 1e4) {
    return fixed(value / 1e3, 1) + " k";
  }
  return fixed(value, value < 10 ? 3 : 1);
}

verdict judge(const bar& claim, const scoreboard& board) {
  const std::optional<double> value = median_of(board, claim.who);
  if (is_absolute(claim)) {
    if (!value) {
      return verdict::not_measured;
    }
    const bool met = claim.kind == bar::rule::below ? *value < claim.limit : *value > claim.limit;
    return met ? verdict::met : verdict::not_met;
  }
  const std::optional<double> base = median_of(board, claim.against);
  if (!value || !base) {
    return verdict::not_measured;
  }
  const bool met = claim.kind == bar::rule::at_least_times ? *value >= claim.limit * *base
                                                           : *value <= claim.limit * *base;
  return met ? verdict::met : verdict::not_met;
}

void print_board(std::ostream& out, std::string_view bench, const scoreboard& board) {
  const bool higher = board.spec.direction == better::higher;
  out << '\n'
      << bench << '/' << board.spec.name << "  [" << board.spec.unit << ", "
      << (higher ? "higher" : "lower") << " is better]\n"
      << "  " << board.spec.summary << '\n';
  if (board.contenders.empty()) {
    out << "  no contender was built\n";
    return;
  }
  out << "  " << std::left << std::setw(14) << "who" << std::right << std::setw(12) << "median"
      << std::setw(14) << "min"
      << " .. " << std::left << "max\n";
  for (const contender& c : board.contenders) {
    const auto [least, most] = std::ranges::minmax(c.values);
    out << "  " << std::left << std::setw(14) << c.who << std::right << std::setw(12)
        << format_value(median(c.values)) << std::setw(14) << format_value(least) << " .. "
        << std::left << format_value(most) << '\n';
  }
  print_ratios(out, board);
  if (board.bystander_cores >= noisy_cores) {
    out << "  NOISY: other processes used " << fixed(board.bystander_cores, 1)
        << " cores meanwhile\n";
  }
  print_line_trips(out, board);
  out.flush();
}

int print_bars(std::ostream& out, const std::vector<scoreboard>& boards) {
  int missed = 0;
  bool titled = false;
  for (const scoreboard& board : boards) {
    for (const bar& claim : board.spec.bars) {
      if (!titled) {
        out << "\nbars\n";
        titled = true;
      }
      out << "  " << std::left << std::setw(21) << board.spec.name << std::setw(40)
          << claim_text(claim, board.spec.unit);
      switch (judge(claim, board)) {
        case verdict::met:
          out << "met: " << measured_text(claim, board) << '\n';
          break;
        case verdict::not_met:
          out << "NOT met: " << measured_text(claim, board) << '\n';
          ++missed;
          break;
        case verdict::not_measured:
          out << "not measured\n";
          break;
      }
    }
  }
  return missed;
}

void write_json(std::ostream& out, std::string_view bench, const std::vector<scoreboard>& boards) {
  out << "[";
  const char* separator = "\n";
  for (const scoreboard& board : boards) {
    for (const contender& c : board.contenders) {
      out << separator << R"(  {"bench": ")" << escaped(bench) << R"(", "workload": ")"
          << escaped(board.spec.name) << R"(", "who": ")" << escaped(c.who) << R"(", "value": )"
          << json_number(median(c.values)) << R"(, "unit": ")" << escaped(board.spec.unit)
          << R"(", "better": ")" << (board.spec.direction == better::higher ? "higher" : "lower")
          << "\"}";
      separator = ",\n";
    }
  }
  out << "\n]\n";
}

void print_environment(std::ostream& out) {
  out << std::thread::hardware_concurrency() << " cores, "
      << first_value_of("/proc/cpuinfo", "model name");
#if defined(__clang__)
  out << ", clang " << __clang_major__ << '.' << __clang_minor__;
#else
  out << ", g++ " << __GNUC__ << '.' << __GNUC_MINOR__;
#endif
  out << '\n';
#if !defined(__OPTIMIZE__) || defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  out << "WARNING: this is not a release build; its numbers mean nothing.\n";
#endif
}

bystanders::bystanders()
    : since_(std::chrono::steady_clock::now()), busy_(machine_busy()), own_(own_cpu_time()) {}

double bystanders::cores() const {
  const seconds passed = std::chrono::steady_clock::now() - since_;
  const seconds others = (machine_busy() - busy_) - (own_cpu_time() - own_);
  return std::max(0.0, others / passed);
}

}  // namespace sluice::bench
