#include "jobs/store/sqlite/detail/disk_reserve.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <utility>

namespace sluice::jobs::detail {
namespace {

struct space {
  std::uint64_t free = 0;
  std::uint64_t total = 0;
};

// If the free space cannot be read it counts as unlimited: writes then fail when the disk is full.
space space_of(const std::string& beside) {
  std::string folder = std::filesystem::path(beside).parent_path().string();
  if (folder.empty()) folder = ".";
  struct statvfs now {};
  if (::statvfs(folder.c_str(), &now) != 0) {
    return {std::numeric_limits<std::uint64_t>::max(), std::numeric_limits<std::uint64_t>::max()};
  }
  return {std::uint64_t{now.f_bavail} * now.f_frsize, std::uint64_t{now.f_blocks} * now.f_frsize};
}

}  // namespace

disk_reserve::disk_reserve(std::string beside, sizes wanted)
    : beside_(std::move(beside)), path_(beside_ + ".reserve") {
  const std::uint64_t total = space_of(beside_).total;
  sizes_ = {std::min(wanted.left_free, total / 16), std::min(wanted.in_file, total / 64)};
}

std::uint64_t disk_reserve::free_bytes() const {
  return space_of(beside_).free;
}

std::uint64_t disk_reserve::spare_bytes() const {
  const std::uint64_t free = free_bytes();
  return free > sizes_.left_free ? free - sizes_.left_free : 0;
}

bool disk_reserve::is_there() const {
  struct stat now {};
  return sizes_.in_file == 0 || (::stat(path_.c_str(), &now) == 0 &&
                                 static_cast<std::uint64_t>(now.st_size) >= sizes_.in_file);
}

void disk_reserve::restore() {
  if (is_there() || spare_bytes() < sizes_.in_file) return;
  const int fd = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) return;
  // Allocates blocks: a sparse file would reserve nothing.
  const int failed = ::posix_fallocate(fd, 0, static_cast<off_t>(sizes_.in_file));
  ::close(fd);
  if (failed != 0) ::unlink(path_.c_str());
}

bool disk_reserve::give_up() {
  return ::unlink(path_.c_str()) == 0;
}

}  // namespace sluice::jobs::detail
