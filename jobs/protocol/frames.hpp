#pragma once

// Framing of line protocols, and replies in the format of Redis (RESP).
//
// Pure functions over any bytes. A line ends with LF; a CR before it is not part of the line. A
// bulk is a given number of bytes followed by CR LF.
//
//     const auto cut = cut_line(in, 224);
//     if (cut.is == line_cut::kind::line) handle(cut.text), used = cut.used;

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sluice::jobs::protocol {

struct line_cut {
  enum class kind : std::uint8_t { line, incomplete, too_long };
  kind is = kind::incomplete;
  std::string_view text{};  // without its end
  std::size_t used = 0;     // with its end; too_long: through its LF, or all bytes without an LF
};
// Cuts the first line. `bytes_max` includes the end of the line; too_long is returned as soon as
// that many bytes have no LF. `searched`: bytes at the front that a previous call found to have no
// LF, so that a line in many packets is scanned once.
line_cut cut_line(std::string_view in, std::size_t bytes_max, std::size_t searched = 0);

struct bulk_cut {
  enum class kind : std::uint8_t { whole, incomplete, unended };  // unended: no CR LF behind it
  kind is = kind::incomplete;
  std::string_view bytes{};
  std::size_t used = 0;
};
bulk_cut cut_bulk(std::string_view in, std::size_t bytes);

// Removes the next word and one space behind it from the front of a line, and returns the word.
std::string_view cut_word(std::string_view& line);
// Parses a number of digits only, up to `max`; none: invalid.
std::optional<std::uint64_t> parse_number(std::string_view text, std::uint64_t max = UINT64_MAX);

// Append replies. In replies of one line, line ends and control characters are replaced.
namespace resp {
void ok(std::string& out);
void simple(std::string& out, std::string_view text);
void failed(std::string& out, std::string_view code, std::string_view why);  // -ERR why
void bulk(std::string& out, std::string_view bytes);
void null(std::string& out);
}  // namespace resp

}  // namespace sluice::jobs::protocol
