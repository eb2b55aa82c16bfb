#pragma once

// Space on a disk that is kept for the day it is full: some that is left free, by telling how much
// there is beyond it, and some that is taken up by a file and can be given up at once.

#include <cstdint>
#include <string>

namespace sluice::jobs::detail {

class disk_reserve {
 public:
  struct sizes {
    std::uint64_t left_free = 0;
    std::uint64_t in_file = 0;
  };
  // `beside` is the file whose disk it is; the reserve's own is called `<beside>.reserve`. Smaller
  // disks keep less: a 16th, and a 64th in the file.
  disk_reserve(std::string beside, sizes wanted);

  // How many bytes are free for other uses than what is left free; and how many are free at all.
  std::uint64_t room() const;
  std::uint64_t free_bytes() const;
  std::uint64_t left_free() const noexcept { return sizes_.left_free; }

  // Makes the file if it is not there and the disk has room for it beside what is left free.
  void restore();
  // Gives its space back to the disk. False: there was none.
  bool give_up();
  // Whether some of it is used up.
  bool is_short() const { return room() == 0 || !is_there(); }

 private:
  bool is_there() const;  // or none is wanted

  std::string beside_;
  std::string path_;
  sizes sizes_;
};

}  // namespace sluice::jobs::detail
