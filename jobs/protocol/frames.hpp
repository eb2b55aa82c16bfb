#pragma once

// The pieces that line protocols are cut into, and the replies of those that answer as Redis does.
//
// Pure functions over bytes: whatever comes, they say what it is. A line ends with LF, and a CR
// before it is not part of it. A bulk is so many bytes and then CR LF.
//
//     const auto cut = cut_line(in, 224);
//     if (cut.is == line_cut::what::line) handle(cut.text), used = cut.used;

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sluice::jobs::protocol {

struct line_cut {
  enum class what : std::uint8_t { line, incomplete, too_long };
  what is = what::incomplete;
  std::string_view text{};  // without its end
  std::size_t used = 0;     // with its end; of too_long: all that was seen of it, up to and with
                            // its LF if that has come
};
// `bytes_max` counts the end of the line too. too_long is known as soon as that many bytes have
// come without one. In the first `searched` bytes there is no LF, as a call before has found: so a
// line that comes in many packets is looked through once.
line_cut cut_line(std::string_view in, std::size_t bytes_max, std::size_t searched = 0);

struct bulk_cut {
  enum class what : std::uint8_t { whole, incomplete, unended };  // unended: no CR LF behind it
  what is = what::incomplete;
  std::string_view bytes{};
  std::size_t used = 0;
};
bulk_cut cut_bulk(std::string_view in, std::size_t bytes);

// Takes the next word, and the one space behind it, from the front of a line; empty: there is none.
std::string_view cut_word(std::string_view& line);
// Digits alone, up to `max`.
std::optional<std::uint64_t> parse_number(std::string_view text, std::uint64_t max = UINT64_MAX);

// Replies, appended. What is said in one line has its line ends and control characters replaced.
namespace resp {
void ok(std::string& out);
void simple(std::string& out, std::string_view text);
void failed(std::string& out, std::string_view code, std::string_view why);  // -ERR why
void bulk(std::string& out, std::string_view bytes);
void null(std::string& out);
}  // namespace resp

}  // namespace sluice::jobs::protocol
