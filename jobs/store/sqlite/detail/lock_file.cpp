#include "jobs/store/sqlite/detail/lock_file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

namespace sluice::jobs::detail {
namespace {

std::string holder_of(int fd) {
  std::array<char, 32> text{};
  const auto size = ::pread(fd, text.data(), text.size() - 1, 0);
  std::string pid(text.data(), size > 0 ? static_cast<std::size_t>(size) : 0);
  pid.resize(pid.find_last_not_of("\n ") + 1);
  return pid.empty() ? "another process" : "process " + pid;
}

}  // namespace

lock_file::lock_file(lock_file&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

lock_file& lock_file::operator=(lock_file&& other) noexcept {
  if (this != &other) {
    release();
    fd_ = std::exchange(other.fd_, -1);
  }
  return *this;
}

lock_file::~lock_file() {
  release();
}

void lock_file::release() noexcept {
  if (fd_ < 0) return;
  // Truncated, not removed: another process may have opened it already and be about to lock it.
  if (::ftruncate(fd_, 0) != 0) errno = 0;  // a stale id is harmless
  ::close(std::exchange(fd_, -1));
}

result<lock_file> lock_file::take(const std::string& path, const std::string& for_what) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) {
    const int code = errno;
    const bool is_full = code == ENOSPC || code == EDQUOT;
    return error{is_full ? error_code::disk_full : error_code::io_error,
                 "cannot open the lock file " + path + ": " + std::system_category().message(code) +
                     "; check the folder, its permissions and its free space"};
  }
  lock_file taken(fd);
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    const int code = errno;
    taken.fd_ = -1;
    const std::string holder = holder_of(fd);
    ::close(fd);
    if (code != EWOULDBLOCK) {
      return error{error_code::io_error, "cannot lock " + path + ": " +
                                             std::system_category().message(code) +
                                             "; the file system must support flock"};
    }
    return error{error_code::locked, for_what + " is in use by " + holder + " (it holds " + path +
                                         "): stop it, or use another file"};
  }
  // The id is for people; the lock holds without it, also on a full disk.
  const std::string pid = std::to_string(::getpid()) + "\n";
  if (::ftruncate(fd, 0) != 0 || ::pwrite(fd, pid.data(), pid.size(), 0) < 0) errno = 0;
  return taken;
}

}  // namespace sluice::jobs::detail
