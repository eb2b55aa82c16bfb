#include "jobs/store/sqlite/detail/file_watch.hpp"

#include <sys/stat.h>

#include <cerrno>
#include <utility>

namespace sluice::jobs::detail {

void file_watch::add(std::string path) {
  files_.push_back({.path = std::move(path)});
}

std::optional<std::string> file_watch::find_loss(const floor& shrinks) {
  for (watched& w : files_) {
    struct stat now {};
    if (::stat(w.path.c_str(), &now) != 0) {
      // Other failures are reported when the file is used.
      if (w.is_known && (errno == ENOENT || errno == ENOTDIR)) return w.path + " was deleted";
      continue;
    }
    const auto bytes = static_cast<std::uint64_t>(now.st_size);
    if (!w.is_known) {
      w = {std::move(w.path), true, now.st_dev, now.st_ino, bytes};
      continue;
    }
    if (now.st_dev != w.device || now.st_ino != w.inode || now.st_nlink == 0) {
      return w.path + " was replaced by another file";
    }
    const std::uint64_t least = w.path == shrinks.path ? shrinks.bytes : w.bytes;
    if (bytes < least) {
      return w.path + " was truncated: it has " + std::to_string(bytes) + " of at least " +
             std::to_string(least) + " bytes";
    }
    w.bytes = bytes;
  }
  return std::nullopt;
}

}  // namespace sluice::jobs::detail
