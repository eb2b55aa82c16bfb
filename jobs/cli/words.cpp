#include "jobs/cli/words.hpp"

#include <array>
#include <chrono>
#include <cstdio>

namespace sluice::jobs::cli {
namespace {

std::string with_one_decimal(double value, const char* unit) {
  std::array<char, 64> text;
  std::snprintf(text.data(), text.size(), "%.1f%s", value, unit);
  return text.data();
}

}  // namespace

std::string grouped(std::uint64_t number) {
  std::string text = std::to_string(number);
  for (std::size_t at = text.size(); at > 3; at -= 3) text.insert(at - 3, 1, ',');
  return text;
}

std::string byte_size(std::uint64_t bytes) {
  static constexpr std::array units = {" kB", " MB", " GB", " TB", " PB"};
  if (bytes < 1024) return std::to_string(bytes) + " B";
  double value = static_cast<double>(bytes) / 1024;
  std::size_t unit = 0;
  for (; value >= 1024 && unit + 1 < units.size(); ++unit) value /= 1024;
  return with_one_decimal(value, units[unit]);
}

std::string short_duration(milliseconds duration) {
  using namespace std::chrono;
  if (duration < 1s) return std::to_string(duration.count()) + "ms";
  if (duration < 10s)
    return with_one_decimal(duration_cast<std::chrono::duration<double>>(duration).count(), "s");
  if (duration < 2min) return std::to_string(duration_cast<seconds>(duration).count()) + "s";
  if (duration < 2h) return std::to_string(duration_cast<minutes>(duration).count()) + "m";
  if (duration < 48h) return std::to_string(duration_cast<hours>(duration).count()) + "h";
  return std::to_string(duration_cast<hours>(duration).count() / 24) + "d";
}

std::string ago(unix_time then, unix_time now) {
  if (then == unix_time{}) return "-";
  return then <= now ? short_duration(now - then) + " ago" : "in " + short_duration(then - now);
}

std::string counted(std::uint64_t number, const char* one, const char* many) {
  return grouped(number) + " " + (number == 1 ? one : many);
}

std::string coloured(job_state state, const text_style& style) {
  const std::string_view word = to_string(state);
  switch (state) {
    case job_state::done:
      return style.green(word);
    case job_state::dead:
      return style.red(word);
    case job_state::retrying:
    case job_state::cancelled:
      return style.yellow(word);
    case job_state::running:
      return style.bold(word);
    case job_state::scheduled:
    case job_state::held:
    case job_state::ready:
      break;
  }
  return std::string(word);
}

std::string shortened(std::string_view text, std::size_t columns) {
  std::string line;
  std::size_t width = 0;
  for (const char c : text) {
    const bool begins = (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
    if (begins && ++width > columns) {
      // Removes the last characters to fit the dots.
      for (int i = 0; i < 3 && !line.empty(); ++i) {
        while ((static_cast<unsigned char>(line.back()) & 0xC0U) == 0x80U) line.pop_back();
        line.pop_back();
      }
      return line + "...";
    }
    line += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return line;
}

}  // namespace sluice::jobs::cli
