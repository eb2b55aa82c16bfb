#pragma once

// Detects that an open file was deleted, replaced or truncated: the program that has it open would
// not notice, and would lose all further writes.
//
// Compares device, inode and length of each path with the values before. Opens no file: closing a
// second descriptor of a SQLite file would release SQLite's locks.
// Cost: one stat for each file.

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sluice::jobs::detail {

class file_watch {
 public:
  // Adds a file that exists or will exist; it is compared from the first check that finds it.
  void add(std::string path);
  // Returns the first loss: "/data/jobs.db was deleted". `shrinks` is the only file that may get
  // shorter, with its least length.
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
