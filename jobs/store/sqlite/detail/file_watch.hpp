#pragma once

// Notices that a file was deleted, replaced or cut short while it is open: the program that has it
// open would not see it, and everything that it writes would be lost.
//
// Compares device, inode and length of what the path names now with what it named before. Opens
// nothing: closing a second descriptor of a SQLite file would release SQLite's locks.
// Cost: one stat for each file.

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sluice::jobs::detail {

class file_watch {
 public:
  // A file that is there now, or soon: it is known from when it is first seen.
  void add(std::string path);
  // Why one is not what it was: "/data/jobs.db was deleted". `shrinks`: the only file that may get
  // shorter, down to so many bytes.
  struct floor {
    const std::string& path;
    std::uint64_t bytes = 0;
  };
  std::optional<std::string> find_loss(const floor& shrinks);

 private:
  struct watched {
    std::string path;
    bool is_known = false;
    dev_t device = 0;
    ino_t inode = 0;
    std::uint64_t bytes = 0;
  };

  std::vector<watched> files_;
};

}  // namespace sluice::jobs::detail
