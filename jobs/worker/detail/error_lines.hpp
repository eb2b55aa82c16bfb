#pragma once

// What a command writes to standard error, as lines of its log; and its progress, which it says
// there too.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "jobs/model/job.hpp"

namespace sluice::jobs {
class job_context;
}

namespace sluice::jobs::detail {

// "sluice:progress 40 resizing"; none when it is another line. A number that is none is no
// progress, either: the line is an ordinary one.
std::optional<progress> progress_of(std::string_view line);

// A text without the lines that say progress.
std::string without_progress(std::string_view text);

enum class lines_to : std::uint8_t { log, nowhere };

class error_lines {
 public:
  error_lines(job_context& to, lines_to where) : to_(to), where_(where) {}

  void add(std::string_view read);
  void end();  // the last line may have no end

 private:
  void say(std::string_view line);

  job_context& to_;
  const lines_to where_;
  std::string rest_;  // of a line that has not ended; what is beyond its limit is left out
};

}  // namespace sluice::jobs::detail
