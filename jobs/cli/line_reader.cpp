#include "jobs/cli/line_reader.hpp"

#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

namespace sluice::jobs::cli {

result<std::optional<std::string>> line_reader::next() {
  std::array<char, 65536> part;
  for (;;) {
    const std::size_t end = buffer_.find('\n', searched_);
    if (end != std::string::npos) {
      std::string line = buffer_.substr(0, end);
      if (line.ends_with('\r')) line.pop_back();
      buffer_.erase(0, end + 1);
      searched_ = 0;
      return std::optional(std::move(line));
    }
    searched_ = buffer_.size();
    if (buffer_.size() > max_) {
      return error{error_code::too_large,
                   "a line is longer than the limit of " + std::to_string(max_) + " bytes"};
    }
    if (ended_) {
      if (buffer_.empty()) return std::optional<std::string>();
      searched_ = 0;
      return std::optional(std::exchange(buffer_, {}));
    }
    const ssize_t n = ::read(from_, part.data(), part.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0)
      return error{error_code::io_error, std::string("cannot read: ") + std::strerror(errno)};
    if (n == 0) ended_ = true;
    buffer_.append(part.data(), static_cast<std::size_t>(n));
  }
}

bool line_reader::would_wait() {
  if (ended_ || buffer_.find('\n', searched_) != std::string::npos) return false;
  pollfd file{from_, POLLIN, 0};
  return ::poll(&file, 1, 0) == 0;
}

}  // namespace sluice::jobs::cli
