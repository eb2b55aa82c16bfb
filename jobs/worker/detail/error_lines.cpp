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
  progress said;
  const char* const end = line.data() + line.size();
  const auto [after, failed] = std::from_chars(line.data(), end, said.percent);
  if (failed != std::errc{} || !(said.percent >= 0 && said.percent <= 100)) return std::nullopt;
  line.remove_prefix(static_cast<std::size_t>(after - line.data()));
  if (line.starts_with('%')) line.remove_prefix(1);
  if (line.empty()) return said;
  if (line.front() != ' ') return std::nullopt;
  said.text = line.substr(1);
  return said;
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
    const std::size_t room = limits::log_line_bytes_max - rest_.size();
    if (end < read.size() && rest_.empty()) {
      say(read.substr(0, end));
    } else {
      rest_ += read.substr(0, std::min(end, room));
      if (end < read.size()) this->end();
    }
    read.remove_prefix(std::min(read.size(), end + 1));
  }
}

void error_lines::end() {
  if (!rest_.empty()) say(rest_);
  rest_.clear();
}

void error_lines::say(std::string_view line) {
  if (auto how_far = progress_of(line)) {
    to_.progress(how_far->percent, std::move(how_far->text));
  } else if (where_ == lines_to::log) {
    to_.log(line);
  }
}

}  // namespace sluice::jobs::detail
