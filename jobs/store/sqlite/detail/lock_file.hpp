#pragma once

// Prevents a second server on the same file: an advisory lock on a file beside it, which contains
// the id of the process that holds it. The lock ends with the process; the file stays.

#include <string>

#include "jobs/model/result.hpp"

namespace sluice::jobs::detail {

class lock_file {
 public:
  lock_file() = default;  // holds nothing
  lock_file(lock_file&& other) noexcept;
  lock_file& operator=(lock_file&& other) noexcept;
  ~lock_file();

  bool is_held() const noexcept { return fd_ >= 0; }
  // Fails with `locked` and the id of the process if another process holds the lock.
  static result<lock_file> take(const std::string& path, const std::string& for_what);

 private:
  explicit lock_file(int fd) noexcept : fd_(fd) {}
  void release() noexcept;

  int fd_ = -1;
};

}  // namespace sluice::jobs::detail
