#pragma once

// The checksum of a row: detects bytes that changed on the disk.
//
// It is the XOR of one hash per column that is not NULL, so a change of a few columns can update it
// without reading the others, and existing damage stays visible: the unchanged columns still do not
// match. The columns of a job are in two groups of 32 bits each. If the group `control` is sound,
// the store can apply its rules to the row, even if the producer's and the worker's data
// (`payload`) are damaged.
//
// Guarantees: plain value, equal on every machine. It is stored: never change it. Damage is missed
// with a chance of 1 in 2^32.
// Cost: near 20 ns for a plain job with args of 100 bytes; CRC-32C by the processor where it can.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "jobs/store/sqlite/detail/connection.hpp"

namespace sluice::jobs::detail {

std::uint32_t crc32c(std::string_view bytes) noexcept;
// crc32c by tables, for processors without the instruction.
std::uint32_t crc32c_portable(std::string_view bytes) noexcept;

class row_checksum {
 public:
  enum class group : std::uint8_t { control, payload };

  // Continues from a stored value: adding a value a second time removes it.
  explicit row_checksum(std::int64_t begin = 0) noexcept
      : sum_(static_cast<std::uint64_t>(begin)) {}

  // `place` is the number of the column.
  void number(int place, std::int64_t value, group of = group::control) noexcept {
    add(hash_of(place, value_kind::number, static_cast<std::uint64_t>(value)), of);
  }
  void real(int place, double value, group of = group::control) noexcept;
  void text(int place, std::string_view value, bool is_bytes = false,
            group of = group::control) noexcept;
  // Adds the value of a column of the current row.
  void column(int place, const statement& from, int at, group of = group::control) noexcept;
  // Adds an argument of an SQL function.
  void column(int place, sqlite3_value* value, group of = group::control) noexcept;

  std::int64_t value() const noexcept { return static_cast<std::int64_t>(sum_); }
  static bool is_same(std::int64_t a, std::int64_t b, group of) noexcept;

 private:
  enum class value_kind : std::uint8_t { number = 1, real = 2, text = 3, bytes = 4 };
  static constexpr std::uint64_t control_bits = 0xFFFFFFFF00000000;

  // The finalizer of splitmix64. A CRC alone is linear: the same change of two columns could cancel
  // out.
  static std::uint64_t hash_of(int place, value_kind kind, std::uint64_t value) noexcept {
    const auto own = static_cast<std::uint64_t>(place) * 8 + static_cast<std::uint64_t>(kind);
    std::uint64_t x = value + own * 0x9E3779B97F4A7C15;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
    return x ^ (x >> 31);
  }
  void add(std::uint64_t hash, group of) noexcept {
    sum_ ^= of == group::control ? hash & control_bits : hash >> 32;
  }

  std::uint64_t sum_;
};

}  // namespace sluice::jobs::detail
