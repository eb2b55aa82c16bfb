#include "jobs/model/detail/cron_parse.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "jobs/model/digit.hpp"

namespace sluice::jobs::detail {
namespace {

constexpr std::array<std::string_view, 12> month_names = {"jan", "feb", "mar", "apr", "may", "jun",
                                                          "jul", "aug", "sep", "oct", "nov", "dec"};
constexpr std::array<std::string_view, 7> weekday_names = {"sun", "mon", "tue", "wed",
                                                           "thu", "fri", "sat"};

struct field_kind {
  std::string_view name;
  unsigned least;
  unsigned most;
  std::span<const std::string_view> words{};  // names of the values from `least` on
};
constexpr std::array<field_kind, 6> kinds = {{{"second", 0, 59, {}},
                                              {"minute", 0, 59, {}},
                                              {"hour", 0, 23, {}},
                                              {"day of month", 1, 31, {}},
                                              {"month", 1, 12, month_names},
                                              {"day of week", 0, 7, weekday_names}}};
enum field_index : std::size_t { second, minute, hour, day_of_month, month, day_of_week };

struct macro {
  std::string_view name;
  std::string_view fields;
};
constexpr std::array<macro, 7> macros = {{{"@yearly", "0 0 1 1 *"},
                                          {"@annually", "0 0 1 1 *"},
                                          {"@monthly", "0 0 1 * *"},
                                          {"@weekly", "0 0 * * 0"},
                                          {"@daily", "0 0 * * *"},
                                          {"@midnight", "0 0 * * *"},
                                          {"@hourly", "0 * * * *"}}};

// A part of the line, and its column.
struct piece {
  std::string_view text;
  std::size_t column = 1;

  piece part(std::size_t from, std::size_t count = std::string_view::npos) const {
    return {text.substr(from, count), column + from};
  }
};

bool is_space(char c) {
  return c == ' ' || c == '\t';
}

std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return out;
}

// Replaces control characters, for terminals, logs and JSON.
std::string printable(std::string_view text) {
  std::string out(text.substr(0, 80));
  std::ranges::replace_if(
      out, [](char c) { return c < ' ' || c > '~'; }, '?');
  return text.size() > out.size() ? out + "..." : out;
}

std::vector<piece> split(piece whole, bool (*separates)(char)) {
  std::vector<piece> parts;
  std::size_t at = 0;
  while (at < whole.text.size()) {
    std::size_t end = at;
    while (end < whole.text.size() && !separates(whole.text[end])) ++end;
    if (end > at) parts.push_back(whole.part(at, end - at));
    at = end + 1;
  }
  return parts;
}

std::string allowed(const field_kind& kind) {
  std::string out =
      "must be from " + std::to_string(kind.least) + " to " + std::to_string(kind.most);
  if (!kind.words.empty()) {
    out += ", or " + std::string(kind.words.front()) + " to " + std::string(kind.words.back());
  }
  return out;
}

// Parses the fields of one line. The first error is kept.
class line_parser {
 public:
  explicit line_parser(std::string_view text) : text_(text) {}

  const std::optional<error>& first_error() const { return error_; }

  void fail(std::size_t column, const std::string& problem) {
    if (!error_) error_ = cron_error(text_, column, problem);
  }

  void read_field(std::size_t index, piece field, cron_fields& out) {
    const field_kind& kind = kinds[index];
    std::uint64_t values = 0;
    std::size_t begin = 0;
    while (!error_) {
      const std::size_t comma = std::min(field.text.find(',', begin), field.text.size());
      const piece item = field.part(begin, comma - begin);
      if (item.text.empty())
        fail(kind, {field.text, item.column}, "a value is missing");
      else if (!read_special(index, item, out))
        values |= read_item(kind, item);
      if (comma == field.text.size()) break;
      begin = comma + 1;
    }
    store(index, values, field.text, out);
  }

 private:
  void fail(const field_kind& kind, piece at, const std::string& problem) {
    fail(at.column, std::string(kind.name) + " '" + printable(at.text) + "': " + problem);
  }

  std::optional<unsigned> value_of(const field_kind& kind, std::string_view text) const {
    const std::string word = lower(text);
    for (std::size_t i = 0; i < kind.words.size(); ++i) {
      if (word == kind.words[i]) return kind.least + static_cast<unsigned>(i);
    }
    if (word.empty() || word.size() > 4 || !std::ranges::all_of(word, is_digit)) return {};
    const auto value = static_cast<unsigned>(std::stoul(word));
    if (value < kind.least || value > kind.most) return {};
    return value;
  }

  unsigned need_value(const field_kind& kind, piece at) {
    const auto value = value_of(kind, at.text);
    if (!value) fail(kind, at, allowed(kind));
    return value.value_or(kind.least);
  }

  unsigned read_step(const field_kind& kind, piece item, std::size_t slash) {
    if (slash == item.text.size()) return 1;
    const std::string_view text = item.text.substr(slash + 1);
    const bool is_number = !text.empty() && text.size() <= 4 && std::ranges::all_of(text, is_digit);
    const unsigned step = is_number ? static_cast<unsigned>(std::stoul(std::string(text))) : 0;
    if (step < 1 || step > kind.most) {
      fail(kind, item,
           "the step after / must be from 1 to " + std::to_string(kind.most) +
               "; use @every for a longer one");
    }
    return step;
  }

  // Parses a value, a range or *; a range and * may have a step.
  std::uint64_t read_item(const field_kind& kind, piece item) {
    const std::size_t slash = std::min(item.text.find('/'), item.text.size());
    const piece range = item.part(0, slash);
    unsigned from = kind.least;
    unsigned last = kind.most;
    if (range.text == "?" && slash == item.text.size()) {
      // Like *, without a step.
    } else if (range.text != "*") {
      const std::size_t dash = range.text.find('-');
      from = need_value(kind, range.part(0, dash));
      last = from;
      if (dash != std::string_view::npos) {
        last = need_value(kind, range.part(dash + 1));
        // In a week that starts on Monday, the end is Sunday.
        if (kind.most == 7 && last == 0 && from > 0) last = 7;
      } else if (!error_ && slash != item.text.size()) {
        fail(kind, item,
             "a step follows * or a range, as in " + std::to_string(from) + "-" +
                 std::to_string(kind.most) + printable(item.text.substr(slash)));
      }
    }
    const unsigned step = read_step(kind, item, slash);
    if (!error_ && from > last) {
      fail(kind, item,
           "the range runs backwards; write " + std::to_string(from) + "-" +
               std::to_string(kind.most) + "," + std::to_string(kind.least) + "-" +
               std::to_string(last));
    }
    std::uint64_t values = 0;
    for (unsigned v = from; !error_ && v <= last; v += step) values |= std::uint64_t{1} << v;
    return values;
  }

  // Parses L, LW and 15W of a day of month, and 5L and 1#2 of a day of week. Returns false for
  // other text.
  bool read_special(std::size_t index, piece item, cron_fields& out) {
    const std::string text = lower(item.text);
    if (index == day_of_month) {
      if (text == "l") return out.last_day = true;
      if (text == "lw") return out.last_nearest = true;
      if (text.size() < 2 || text.back() != 'w') return false;
      const unsigned day = need_value(kinds[index], item.part(0, text.size() - 1));
      out.nearest |= std::uint32_t{1} << day;
      return true;
    }
    if (index != day_of_week) return false;
    if (text == "l") {
      fail(kinds[index], item, "L needs a weekday before it: 5L is the last Friday of the month");
      return true;
    }
    const std::size_t mark =
        text.ends_with('l') && !value_of(kinds[index], text) ? text.size() - 1 : text.find('#');
    if (mark == std::string::npos) return false;
    const unsigned day = need_value(kinds[index], item.part(0, mark)) % 7;
    const auto bit = static_cast<std::uint8_t>(1U << day);
    if (text[mark] == 'l') {
      out.last_weekdays |= bit;
      return true;
    }
    const std::string_view nth = std::string_view(text).substr(mark + 1);
    if (nth.size() != 1 || nth[0] < '1' || nth[0] > '5') {
      fail(kinds[index], item, "after # must be a number from 1 to 5: 1#2 is the second Monday");
      return true;
    }
    out.nth_weekdays[static_cast<std::size_t>(nth[0] - '0')] |= bit;
    return true;
  }

  static void store(std::size_t index, std::uint64_t values, std::string_view text,
                    cron_fields& out) {
    const bool is_star = text.starts_with('*') || text == "?";
    switch (index) {
      case second:
        out.seconds = values;
        break;
      case minute:
        out.minutes = values;
        break;
      case hour:
        out.hours = static_cast<std::uint32_t>(values);
        out.hours_as = values == 0xFF'FFFF ? hour_form::every
                       : is_star           ? hour_form::step
                                           : hour_form::fixed;
        break;
      case day_of_month:
        out.days = static_cast<std::uint32_t>(values);
        out.any_day = is_star;
        break;
      case month:
        out.months = static_cast<std::uint16_t>(values);
        break;
      default:
        out.weekdays = static_cast<std::uint8_t>((values | values >> 7U) & 0x7FU);
        out.any_weekday = is_star;
        break;
    }
  }

  std::string_view text_;
  std::optional<error> error_;
};

result<cron_line> parse_fields(std::string_view text, const std::vector<piece>& fields) {
  if (fields.size() != 5 && fields.size() != 6) {
    return cron_error(text, 0,
                      "has " + std::to_string(fields.size()) +
                          (fields.size() == 1 ? " field" : " fields") +
                          "; there must be five (minute, hour, day of month, month, day of week), "
                          "or six with the second first");
  }
  line_parser parser(text);
  cron_line line;
  line.fields.has_seconds = fields.size() == 6;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    parser.read_field(i + 6 - fields.size(), fields[i], line.fields);
  }
  if (parser.first_error()) return *parser.first_error();
  if (!line.fields.ever()) {
    const std::size_t day = fields.size() - 3;
    return cron_error(text, fields[day].column,
                      "never occurs: day of month '" + printable(fields[day].text) +
                          "' in month '" + printable(fields[day + 1].text) + "'" +
                          (line.fields.any_weekday
                               ? ""
                               : " on day of week '" + printable(fields[day + 2].text) + "'"));
  }
  return line;
}

// Parses 90s, 1h30m, 2d: units in descending order, each at most once.
std::optional<std::chrono::milliseconds> read_every(std::string_view text) {
  constexpr std::array<std::pair<char, std::int64_t>, 4> units = {
      {{'d', 86'400}, {'h', 3600}, {'m', 60}, {'s', 1}}};
  constexpr std::int64_t most = 366 * std::int64_t{86'400};
  std::int64_t total = 0;
  std::size_t unit = 0;
  while (!text.empty()) {
    std::size_t digits = 0;
    std::int64_t value = 0;
    while (digits < text.size() && is_digit(text[digits]) && digits < 9) {
      value = value * 10 + (text[digits++] - '0');
    }
    if (digits == 0 || digits == text.size()) return {};
    while (unit < units.size() && units[unit].first != text[digits]) ++unit;
    if (unit == units.size()) return {};
    total += value * units[unit++].second;
    if (total > most) return {};
    text.remove_prefix(digits + 1);
  }
  if (total < 1) return {};
  return std::chrono::seconds(total);
}

result<cron_line> parse_macro(std::string_view text, const std::vector<piece>& words) {
  const std::string name = lower(words[0].text);
  if (name == "@every") {
    constexpr std::string_view wanted =
        "must be one duration from 1s to 366d, such as 90s, 15m or 1h30m";
    if (words.size() != 2)
      return cron_error(text, words[0].column, "after @every " + std::string(wanted));
    const auto every = read_every(words[1].text);
    if (!every) {
      return cron_error(text, words[1].column,
                        "'" + printable(words[1].text) + "': " + std::string(wanted));
    }
    return cron_line{.fields = {}, .every = *every};
  }
  std::string all;
  for (const macro& m : macros) {
    if (m.name == name && words.size() > 1) {
      return cron_error(text, words[1].column, "nothing may follow " + std::string(m.name));
    }
    if (m.name == name) return parse_fields(text, split({m.fields}, is_space));
    all += std::string(m.name) + ", ";
  }
  return cron_error(text, words[0].column,
                    "'" + printable(words[0].text) + "' is unknown; valid names are " + all +
                        "and @every with a duration");
}

}  // namespace

error cron_error(std::string_view text, std::size_t column, std::string_view problem) {
  std::string message = "cron '" + printable(text) + "': ";
  if (column != 0) message += "column " + std::to_string(column) + ": ";
  return {error_code::invalid, message + std::string(problem)};
}

result<cron_line> parse_cron(std::string_view text) {
  const auto words = split({text}, is_space);
  if (words.empty()) return cron_error(text, 0, "is empty; write five fields such as 30 9 * * *");
  if (text.starts_with('@')) return parse_macro(text, words);
  return parse_fields(text, words);
}

}  // namespace sluice::jobs::detail
