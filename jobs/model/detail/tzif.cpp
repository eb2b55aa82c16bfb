#include "jobs/model/detail/tzif.hpp"

#include <algorithm>

namespace sluice::jobs::detail {
namespace {

error damaged(std::string problem) {
  return {error_code::corrupt, std::move(problem)};
}

// Takes numbers from the front of the bytes; past their end it returns zeros and is_short() is
// true.
class byte_reader {
 public:
  explicit byte_reader(std::string_view bytes) : rest_(bytes) {}

  bool is_short() const { return short_; }
  std::string_view rest() const { return rest_; }

  std::string_view take(std::uint64_t count) {
    if (count > rest_.size()) {
      short_ = true;
      rest_ = {};
      return {};
    }
    const std::string_view taken = rest_.substr(0, static_cast<std::size_t>(count));
    rest_.remove_prefix(taken.size());
    return taken;
  }
  std::uint64_t big_endian(std::size_t count) {
    std::uint64_t value = 0;
    for (const char c : take(count)) value = (value << 8U) | static_cast<unsigned char>(c);
    return value;
  }
  std::uint32_t u32() { return static_cast<std::uint32_t>(big_endian(4)); }
  std::int32_t i32() { return static_cast<std::int32_t>(u32()); }
  std::int64_t i64() { return static_cast<std::int64_t>(big_endian(8)); }
  std::uint8_t u8() { return static_cast<std::uint8_t>(big_endian(1)); }

 private:
  std::string_view rest_;
  bool short_ = false;
};

struct header {
  char version = 0;
  std::uint32_t ut_indicators = 0;
  std::uint32_t standard_indicators = 0;
  std::uint32_t leap_seconds = 0;
  std::uint32_t changes = 0;
  std::uint32_t types = 0;
  std::uint32_t characters = 0;

  // Returns the size of the data block, with times of `time_bytes` bytes. Cannot overflow.
  std::uint64_t block_bytes(std::uint64_t time_bytes) const {
    return changes * (time_bytes + 1) + types * std::uint64_t{6} + characters +
           leap_seconds * (time_bytes + 4) + standard_indicators + std::uint64_t{ut_indicators};
  }
};

result<header> read_header(byte_reader& in) {
  if (in.take(4) != "TZif") return damaged("it has no header of a time zone file");
  header h;
  h.version = static_cast<char>(in.u8());
  in.take(15);
  h.ut_indicators = in.u32();
  h.standard_indicators = in.u32();
  h.leap_seconds = in.u32();
  h.changes = in.u32();
  h.types = in.u32();
  h.characters = in.u32();
  if (in.is_short()) return damaged("it ends inside its header");
  if (h.version != 0 && (h.version < '2' || h.version > '4')) {
    return damaged("its version is unknown");
  }
  return h;
}

result<std::vector<tzif::local_type>> read_types(std::string_view block,
                                                 std::string_view characters) {
  std::vector<tzif::local_type> types;
  byte_reader in(block);
  while (!in.rest().empty()) {
    tzif::local_type type;
    type.from_utc = seconds(in.i32());
    const std::uint8_t is_dst = in.u8();
    const std::size_t begin = in.u8();
    if (type.from_utc > utc_offset_max || type.from_utc < -utc_offset_max) {
      return damaged("an offset from UTC is more than 26 hours");
    }
    const std::size_t end = characters.find('\0', begin);
    if (is_dst > 1 || begin >= characters.size() || end == std::string_view::npos) {
      return damaged("a local time type is not valid");
    }
    type.is_dst = is_dst == 1;
    type.abbreviation = characters.substr(begin, end - begin);
    types.push_back(std::move(type));
  }
  return types;
}

result<tzif> read_block(byte_reader& in, const header& h, std::uint64_t time_bytes) {
  if (h.leap_seconds != 0) return damaged("it counts leap seconds, which are not supported");
  if (h.types == 0 || h.types > 256) return damaged("it must have from 1 to 256 local time types");
  byte_reader times(in.take(h.changes * time_bytes));
  byte_reader new_types(in.take(h.changes));
  const std::string_view type_block = in.take(h.types * std::uint64_t{6});
  const std::string_view characters = in.take(h.characters);
  in.take(std::uint64_t{h.standard_indicators} + h.ut_indicators);
  if (in.is_short()) return damaged("it ends inside its table");

  tzif zone;
  auto types = read_types(type_block, characters);
  if (!types) return types.error();
  zone.types = std::move(*types);
  std::optional<std::int64_t> last;
  for (std::uint32_t i = 0; i < h.changes; ++i) {
    const std::int64_t when = time_bytes == 8 ? times.i64() : times.i32();
    const std::uint8_t type = new_types.u8();
    if (type >= zone.types.size()) return damaged("a change refers to a missing type");
    if (last && when <= *last) return damaged("its changes are not in order of time");
    last = when;
    if (when >= time_max.time_since_epoch().count()) continue;
    // Some writers start with a change at the Big Bang.
    const sys_seconds at(seconds(std::max(when, time_min.time_since_epoch().count())));
    if (!zone.changes.empty() && zone.changes.back().when == at) zone.changes.pop_back();
    zone.changes.push_back({at, type});
  }
  return zone;
}

result<std::optional<posix_tz>> read_footer(std::string_view rest) {
  if (!rest.starts_with('\n')) return damaged("it has no rule after its table");
  rest.remove_prefix(1);
  const std::size_t end = rest.find('\n');
  if (end == std::string_view::npos) return damaged("it ends inside the rule after its table");
  if (end == 0) return std::optional<posix_tz>{};
  auto rule = posix_tz::parse(rest.substr(0, end));
  if (!rule) return damaged("the rule after its table is not valid: " + rule.error().message);
  return std::optional<posix_tz>(std::move(*rule));
}

}  // namespace

result<tzif> tzif::parse(std::string_view bytes) {
  if (bytes.size() > tzif_bytes_max) {
    return damaged("it is longer than " + std::to_string(tzif_bytes_max) + " bytes");
  }
  byte_reader in(bytes);
  auto first = read_header(in);
  if (!first) return first.error();
  if (first->version == 0) return read_block(in, *first, 4);

  in.take(first->block_bytes(4));  // the block for readers of version 1, with 32-bit times
  if (in.is_short()) return damaged("it ends inside its table");
  auto second = read_header(in);
  if (!second) return second.error();
  if (second->version != first->version) return damaged("its two headers do not agree");
  auto zone = read_block(in, *second, 8);
  if (!zone) return zone.error();
  auto after = read_footer(in.rest());
  if (!after) return after.error();
  zone->after = std::move(*after);
  return zone;
}

}  // namespace sluice::jobs::detail
