#pragma once

// Disk space that is reserved for a full disk: a part that is left free, by reporting only the
// space beyond it, and a part that is held by a file, which can be deleted at once.

#include <cstdint>
#include <string>

namespace sluice::jobs::detail {

class disk_reserve {
 public:
  struct sizes {
    std::uint64_t left_free = 0;
    std::uint64_t in_file = 0;
  };
  // `beside` is a file on the disk; the file of the reserve is `<beside>.reserve`. On small disks
  // the reserve is smaller: a 16th of the disk is left free, and the file has a 64th.
  disk_reserve(std::string beside, sizes wanted);

  // Return the free bytes beyond left_free(), and all free bytes.
  std::uint64_t spare_bytes() const;
  std::uint64_t free_bytes() const;
  std::uint64_t left_free() const noexcept { return sizes_.left_free; }

  // Creates the file if it is missing and spare_bytes() suffice.
  void restore();
  // Deletes the file. Returns false if there was none.
  bool give_up();
  // True if a part of the reserve is used up.
  bool is_short() const { return spare_bytes() == 0 || !is_there(); }

 private:
  bool is_there() const;  // true also if no file is wanted

  std::string beside_;
  std::string path_;
  sizes sizes_;
};

}  // namespace sluice::jobs::detail
