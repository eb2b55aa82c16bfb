#pragma once

// One file of a disk that can lose power: its visible contents, its stable contents, and the
// operations since the last sync, which a power cut may lose.
//
// After a power cut each sector of 512 bytes has, independently of the others, its contents of the
// last sync or of any later operation. That covers lost, torn and reordered writes. The size of the
// file is chosen in the same way. A new sector whose contents were lost has zeros or junk.
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

  // The effect of a power cut on unsynced data; a seed chooses one.
  enum class cut : std::uint8_t {
    loses_all,      // no operation is kept
    keeps_all,      // every operation is kept
    keeps_a_start,  // a disk that works in order: the first operations, the last of them torn
    keeps_some      // a disk that reorders: each sector independently
  };

  std::uint64_t size() const noexcept { return seen_.size(); }
  // Returns the number of bytes read, at most `count`.
  std::size_t read(void* buffer, std::size_t count, std::uint64_t offset) const noexcept;

  void write(std::string_view bytes, std::uint64_t offset);
  void truncate(std::uint64_t size);
  // Makes all operations stable.
  void sync();
  // After a failed sync, marks the unwritten data as written, like Linux: reads return it, but no
  // later sync stores it.
  void forget_dirty() noexcept { dirty_.clear(); }
  // After a failed sync, drops the unwritten data from the cache too: reads return the old
  // contents.
  void revert_dirty();

  // Damages the stable and the visible contents.
  void corrupt(std::uint64_t offset, std::size_t count, random& chance);

  disk_file after_power_cut(random& chance) const;
  disk_file after_power_cut(random& chance, cut kind) const;

  std::size_t dirty_operations() const noexcept { return dirty_.size(); }

 private:
  struct operation {
    std::uint64_t first_sector;
    std::string sectors;      // the changed sectors after the operation; empty: a truncate
    std::uint64_t size;       // of the file after the operation
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
