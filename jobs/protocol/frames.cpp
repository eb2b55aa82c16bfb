#include "jobs/protocol/frames.hpp"

#include <algorithm>
#include <charconv>

namespace sluice::jobs::protocol {

line_cut cut_line(std::string_view in, std::size_t bytes_max, std::size_t searched) {
  const std::size_t end = in.substr(0, bytes_max).find('\n', searched);
  if (end != std::string_view::npos) {
    const bool has_cr = end > 0 && in[end - 1] == '\r';
    return {line_cut::kind::line, in.substr(0, end - (has_cr ? 1 : 0)), end + 1};
  }
  if (in.size() < bytes_max) return {};
  const std::size_t later = in.find('\n', bytes_max);
  return {line_cut::kind::too_long, {}, later == std::string_view::npos ? in.size() : later + 1};
}

bulk_cut cut_bulk(std::string_view in, std::size_t bytes) {
  if (in.size() < bytes + 2) return {};
  const bool is_ended = in[bytes] == '\r' && in[bytes + 1] == '\n';
  return {is_ended ? bulk_cut::kind::whole : bulk_cut::kind::unended, in.substr(0, bytes),
          bytes + 2};
}

std::string_view cut_word(std::string_view& line) {
  const std::size_t end = std::min(line.find(' '), line.size());
  const std::string_view word = line.substr(0, end);
  line.remove_prefix(std::min(end + 1, line.size()));
  return word;
}

std::optional<std::uint64_t> parse_number(std::string_view text, std::uint64_t max) {
  std::uint64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [at, failed] = std::from_chars(text.data(), end, value);
  if (failed != std::errc() || at != end || value > max) return std::nullopt;
  return value;
}

namespace resp {
namespace {

void one_line(std::string& out, std::string_view text) {
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    out += byte < 0x20 || byte == 0x7f ? ' ' : c;
  }
}

}  // namespace

void ok(std::string& out) {
  out += "+OK\r\n";
}

void simple(std::string& out, std::string_view text) {
  out += '+';
  one_line(out, text);
  out += "\r\n";
}

void failed(std::string& out, std::string_view code, std::string_view why) {
  out += '-';
  one_line(out, code);
  out += ' ';
  one_line(out, why);
  out += "\r\n";
}

void bulk(std::string& out, std::string_view bytes) {
  out += '$';
  out += std::to_string(bytes.size());
  out += "\r\n";
  out += bytes;
  out += "\r\n";
}

void null(std::string& out) {
  out += "$-1\r\n";
}

}  // namespace resp
}  // namespace sluice::jobs::protocol
