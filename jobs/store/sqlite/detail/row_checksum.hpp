#pragma once

// The checksum of a row: finds a byte of it that changed on the disk.
//
// It is the XOR of a hash for each column that is not NULL, so that a change of a few columns
// changes the checksum without the others being read, and damage that is there already stays
// visible: the columns that a change leaves alone still do not match. The columns of a job are in
// two groups with 32 bits each. If the group `control` is sound, the rules of the store can act on
// the row, even if the producer's and the worker's data (`payload`) are damaged.
//
// Guarantees: plain value. The same on every machine: it is stored, so never change it. A change is
// missed with a chance of 1 in 2^32.
// Cost: near 20 ns for a plain job with args of 100 bytes; CRC-32C by the processor where it can.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "jobs/store/sqlite/detail/connection.hpp"

namespace sluice::jobs::detail {

std::uint32_t crc32c(std::string_view bytes) noexcept;
// The same by tables, for processors without the instruction.
std::uint32_t crc32c_portable(std::string_view bytes) noexcept;

class row_checksum {
 public:
  enum class group : std::uint8_t { control, payload };

  // From an earlier value: adding a value that is in it takes it out.
  explicit row_checksum(std::int64_t begin = 0) noexcept
      : sum_(static_cast<std::uint64_t>(begin)) {}

  // `place` is the number of the column.
  void number(int place, std::int64_t value, group of = group::control) noexcept;
  void real(int place, double value, group of = group::control) noexcept;
  void text(int place, std::string_view value, bool is_bytes = false,
            group of = group::control) noexcept;
  // The value of a column of a row that was read.
  void column(int place, const statement& from, int at, group of = group::control) noexcept;
  // The same for an argument of a function of SQL.
  void column(int place, sqlite3_value* value, group of = group::control) noexcept;

  std::int64_t value() const noexcept { return static_cast<std::int64_t>(sum_); }
  static bool is_same(std::int64_t a, std::int64_t b, group of) noexcept;

 private:
  void add(std::uint64_t hash, group of) noexcept;

  std::uint64_t sum_;
};

}  // namespace sluice::jobs::detail
