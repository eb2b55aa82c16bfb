#pragma once

// One file of a disk that can lose its power: what a program sees of it, what is on stable storage,
// and everything that was done in between and may or may not get there.
//
// Sectors are the unit: after a power cut a sector of 512 bytes holds what it held at the last
// sync, or what any of the operations since then had made of it, each sector for itself. That
// covers writes that were lost, torn and reordered. The size of the file is chosen in the same
// way. A sector of a file that had grown, and whose contents did not arrive, holds zeros or junk.
//
// Guarantees: a plain value; one thread at a time.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/base/random.hpp"

namespace sluice::jobs::testing {

class disk_file {
 public:
  static constexpr std::size_t sector_bytes = 512;

  // How a power cut treats what was not synced. Which of them, a seed decides.
  enum class cut : std::uint8_t {
    loses_all,      // the disk had not begun
    keeps_all,      // the disk had just done
    keeps_a_start,  // the disk works in order: so many operations, the last of them torn
    keeps_some      // the disk works in any order: each sector for itself
  };

  std::uint64_t size() const noexcept { return seen_.size(); }
  // How many bytes there were to read, at most `count`.
  std::size_t read(void* to, std::size_t count, std::uint64_t offset) const noexcept;

  void write(std::string_view bytes, std::uint64_t offset);
  void truncate(std::uint64_t size);
  // All that was done is on stable storage.
  void sync();
  // A sync has failed and the system takes what it could not write for written, as Linux does: a
  // program that reads still sees it, but no later sync will store it.
  void forget_dirty() noexcept { dirty_.clear(); }
  // The same, and what was not written has left the cache too: a program reads the old contents.
  void revert_dirty();

  // Damages what is stored and what is seen.
  void corrupt(std::uint64_t offset, std::size_t count, random& chance);

  disk_file after_power_cut(random& chance) const;
  disk_file after_power_cut(random& chance, cut how) const;

  std::size_t dirty_operations() const noexcept { return dirty_.size(); }

 private:
  struct operation {
    std::uint64_t first_sector;
    std::string sectors;      // whole ones, as they were after it; empty: a truncate
    std::uint64_t size;       // of the file after it
    std::uint64_t zero_from;  // of a truncate, which may also make it longer
  };
  class aftermath;

  static std::uint64_t sectors_of(std::uint64_t bytes) noexcept {
    return (bytes + sector_bytes - 1) / sector_bytes;
  }

  std::string seen_;
  std::string stored_;
  std::vector<operation> dirty_;  // since the last sync, in order
};

}  // namespace sluice::jobs::testing
