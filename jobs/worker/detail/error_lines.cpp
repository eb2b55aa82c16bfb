#include "jobs/worker/detail/error_lines.hpp"

#include <algorithm>
#include <charconv>

#include "jobs/worker/job_context.hpp"

namespace sluice::jobs::detail {
namespace {

constexpr std::string_view prefix = "sluice:progress ";

}  // namespace

std::optional<progress> progress_of(std::string_view line) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  if (!line.starts_with(prefix)) return std::nullopt;
  line.remove_prefix(prefix.size());
  progress parsed;
  const char* const end = line.data() + line.size();
  const auto [after, failed] = std::from_chars(line.data(), end, parsed.percent);
  if (failed != std::errc{} || !(parsed.percent >= 0 && parsed.percent <= 100)) return std::nullopt;
  line.remove_prefix(static_cast<std::size_t>(after - line.data()));
  if (line.starts_with('%')) line.remove_prefix(1);
  if (line.empty()) return parsed;
  if (line.front() != ' ') return std::nullopt;
  parsed.text = line.substr(1);
  return parsed;
}

std::string without_progress(std::string_view text) {
  std::string kept;
  while (!text.empty()) {
    const std::size_t end = std::min(text.size(), text.find('\n'));
    const std::string_view whole = text.substr(0, std::min(text.size(), end + 1));
    if (!progress_of(text.substr(0, end))) kept += whole;
    text.remove_prefix(whole.size());
  }
  return kept;
}

void error_lines::add(std::string_view read) {
  while (!read.empty()) {
    const std::size_t end = std::min(read.size(), read.find('\n'));
    const std::size_t free_bytes = limits::log_line_bytes_max - rest_.size();
    if (end < read.size() && rest_.empty()) {
      add_line(read.substr(0, end));
    } else {
      rest_ += read.substr(0, std::min(end, free_bytes));
      if (end < read.size()) this->end();
    }
    read.remove_prefix(std::min(read.size(), end + 1));
  }
}

void error_lines::end() {
  if (!rest_.empty()) add_line(rest_);
  rest_.clear();
}

void error_lines::add_line(std::string_view line) {
  if (auto update = progress_of(line)) {
    context_.progress(update->percent, std::move(update->text));
  } else if (target_ == lines_to::log) {
    context_.log(line);
  }
}

}  // namespace sluice::jobs::detail
