#include "jobs/store/sqlite/detail/row_checksum.hpp"

#include <array>
#include <bit>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace sluice::jobs::detail {
namespace {

constexpr std::uint32_t crc32c_polynomial = 0x82F63B78;  // CRC-32C (Castagnoli), reflected

constexpr std::array<std::uint32_t, 256> make_crc_table() {
  std::array<std::uint32_t, 256> made{};
  for (std::uint32_t i = 0; i < made.size(); ++i) {
    std::uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? crc32c_polynomial : 0);
    made[i] = crc;
  }
  return made;
}
constexpr auto crc_table = make_crc_table();

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) std::uint32_t crc32c_by_instruction(
    std::string_view bytes) noexcept {
  std::uint64_t crc = 0xFFFFFFFF;
  const char* at = bytes.data();
  std::size_t left = bytes.size();
  for (; left >= 8; at += 8, left -= 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, at, sizeof word);
    crc = _mm_crc32_u64(crc, word);
  }
  auto rest = static_cast<std::uint32_t>(crc);
  for (; left > 0; ++at, --left) rest = _mm_crc32_u8(rest, static_cast<unsigned char>(*at));
  return ~rest;
}
#endif

}  // namespace

std::uint32_t crc32c_portable(std::string_view bytes) noexcept {
  std::uint32_t crc = 0xFFFFFFFF;
  for (const char c : bytes) {
    crc = (crc >> 8) ^ crc_table[(crc ^ static_cast<unsigned char>(c)) & 0xFF];
  }
  return ~crc;
}

std::uint32_t crc32c(std::string_view bytes) noexcept {
#if defined(__x86_64__)
  static const bool has_instruction = __builtin_cpu_supports("sse4.2") != 0;
  if (has_instruction) return crc32c_by_instruction(bytes);
#endif
  return crc32c_portable(bytes);
}

// SQLite keeps neither NaN (it becomes NULL) nor the sign of zero.
void row_checksum::real(int place, double value, group of) noexcept {
  if (value != value) return;
  add(hash_of(place, value_kind::real, std::bit_cast<std::uint64_t>(value + 0.0)), of);
}

void row_checksum::text(int place, std::string_view value, bool is_bytes, group of) noexcept {
  const std::uint64_t content = std::uint64_t{value.size()} << 32 | crc32c(value);
  add(hash_of(place, is_bytes ? value_kind::bytes : value_kind::text, content), of);
}

void row_checksum::column(int place, const statement& from, int at, group of) noexcept {
  switch (from.type(at)) {
    case SQLITE_INTEGER:
      return number(place, from.number(at), of);
    case SQLITE_FLOAT:
      return real(place, from.real(at), of);
    case SQLITE_NULL:
      return;
    default:
      return text(place, from.view(at), from.is_bytes(at), of);
  }
}

void row_checksum::column(int place, sqlite3_value* value, group of) noexcept {
  const int type = sqlite3_value_type(value);
  switch (type) {
    case SQLITE_INTEGER:
      return number(place, sqlite3_value_int64(value), of);
    case SQLITE_FLOAT:
      return real(place, sqlite3_value_double(value), of);
    case SQLITE_NULL:
      return;
    default: {
      const auto* data = static_cast<const char*>(sqlite3_value_blob(value));
      const auto size = static_cast<std::size_t>(sqlite3_value_bytes(value));
      const std::string_view bytes =
          data == nullptr ? std::string_view() : std::string_view(data, size);
      return text(place, bytes, type == SQLITE_BLOB, of);
    }
  }
}

bool row_checksum::is_same(std::int64_t a, std::int64_t b, group of) noexcept {
  const auto difference = static_cast<std::uint64_t>(a ^ b);
  return (difference & (of == group::control ? control_bits : ~control_bits)) == 0;
}

}  // namespace sluice::jobs::detail
