#pragma once

// Reads the lines of a file or a pipe, and can check whether a line is available without blocking,
// so that slow input is forwarded at once and fast input in bulk.

#include <cstddef>
#include <optional>
#include <string>

#include "jobs/model/result.hpp"

namespace sluice::jobs::cli {

class line_reader {
 public:
  // The descriptor is not owned.
  line_reader(int from, std::size_t bytes_max) : from_(from), max_(bytes_max) {}

  // Returns the next line without its line end; nullopt at the end of the file. Fails with
  // `too_large` or `io_error`.
  result<std::optional<std::string>> next();
  // Returns whether `next` would block.
  bool would_wait();

 private:
  int from_;
  std::size_t max_;
  std::string buffer_;
  std::size_t searched_ = 0;  // no line end before this position
  bool ended_ = false;
};

}  // namespace sluice::jobs::cli
