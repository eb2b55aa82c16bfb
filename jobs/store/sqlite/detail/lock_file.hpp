#pragma once

// Keeps a second server from the same file: an advisory lock on a file beside it, with the number
// of the process that holds it inside. The lock ends with the process, however it ends; the file
// stays.

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
  // `locked`, naming the process, when somebody has it.
  static result<lock_file> take(const std::string& path, const std::string& for_what);

 private:
  explicit lock_file(int fd) noexcept : fd_(fd) {}
  void let_go() noexcept;

  int fd_ = -1;
};

}  // namespace sluice::jobs::detail
