#pragma once

// The lines of a file or a pipe, one after the other, and whether there is one without waiting: so
// that what arrives in drips is passed on at once, and what arrives in bulk is passed on in bulk.

#include <cstddef>
#include <optional>
#include <string>

#include "jobs/model/result.hpp"

namespace sluice::jobs::cli {

class line_reader {
 public:
  // Of a descriptor that somebody else closes.
  line_reader(int from, std::size_t bytes_max) : from_(from), max_(bytes_max) {}

  // Without its line end; none at the end of the file. too_large, io_error.
  result<std::optional<std::string>> next();
  // Whether `next` would wait for whoever writes.
  bool would_wait();

 private:
  int from_;
  std::size_t max_;
  std::string buffer_;
  std::size_t looked_ = 0;  // no line end before this
  bool ended_ = false;
};

}  // namespace sluice::jobs::cli
