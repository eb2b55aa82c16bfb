#pragma once

// Splits a command's standard error into log lines and progress reports.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "jobs/model/job.hpp"

namespace sluice::jobs {
class job_context;
}

namespace sluice::jobs::detail {

// Parses "sluice:progress 40 resizing". Returns nullopt for any other line, also if the number is
// invalid.
std::optional<progress> progress_of(std::string_view line);

// Returns the text without its progress lines.
std::string without_progress(std::string_view text);

enum class lines_to : std::uint8_t { log, nowhere };

class error_lines {
 public:
  error_lines(job_context& context, lines_to target) : context_(context), target_(target) {}

  void add(std::string_view read);
  void end();  // flushes a last line without a line end

 private:
  void add_line(std::string_view line);

  job_context& context_;
  const lines_to target_;
  std::string rest_;  // of an incomplete line, cut at limits::log_line_bytes_max
};

}  // namespace sluice::jobs::detail
