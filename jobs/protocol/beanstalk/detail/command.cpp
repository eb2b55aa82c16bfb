#include "jobs/protocol/beanstalk/detail/command.hpp"

#include "jobs/model/job.hpp"
#include "jobs/model/own_queue.hpp"
#include "jobs/protocol/frames.hpp"

namespace sluice::jobs::beanstalk {
namespace {

// The arguments of a verb.
enum class shape : std::uint8_t {
  nothing,
  id,
  tube,
  open_tube,   // not a server's own queue
  put,         // pri delay ttr bytes
  release,     // id pri delay
  bury,        // id pri
  timeout,     // seconds, with a sign
  pause_tube,  // tube delay
};

struct entry {
  std::string_view name;
  shape format;
};

// In the order of `verb`, which has the most frequent ones first.
constexpr std::array<entry, verb_count> verbs = {{
    {"put", shape::put},
    {"reserve", shape::nothing},
    {"delete", shape::id},
    {"reserve-with-timeout", shape::timeout},
    {"reserve-job", shape::id},
    {"release", shape::release},
    {"bury", shape::bury},
    {"touch", shape::id},
    {"use", shape::open_tube},
    {"watch", shape::open_tube},
    {"ignore", shape::tube},
    {"peek", shape::id},
    {"peek-ready", shape::nothing},
    {"peek-delayed", shape::nothing},
    {"peek-buried", shape::nothing},
    {"kick", shape::id},
    {"kick-job", shape::id},
    {"stats", shape::nothing},
    {"stats-job", shape::id},
    {"stats-tube", shape::tube},
    {"list-tubes", shape::nothing},
    {"list-tube-used", shape::nothing},
    {"list-tubes-watched", shape::nothing},
    {"pause-tube", shape::pause_tube},
    {"quit", shape::nothing},
}};

// Parses the arguments of a verb: each call consumes one argument with the spaces before it, and
// returns whether it was valid.
class arguments {
 public:
  explicit arguments(std::string_view rest) noexcept : rest_(rest) {}

  template <class Number>
  bool number(Number& into) noexcept {
    if (!skip_spaces()) return false;
    const auto value = protocol::parse_number(word(), static_cast<Number>(~Number{0}));
    into = static_cast<Number>(value.value_or(0));
    return value.has_value();
  }
  bool timeout(std::uint64_t& seconds, bool& is_negative) noexcept {
    if (!skip_spaces()) return false;
    std::string_view text = word();
    is_negative = text.starts_with('-');
    if (is_negative) text.remove_prefix(1);
    const auto value = protocol::parse_number(text);
    seconds = value.value_or(0);
    return value.has_value();
  }
  bool tube(std::string_view& into) noexcept {
    if (!rest_.starts_with(' ')) return false;
    rest_.remove_prefix(1);
    return name(into);
  }
  bool tube_behind_spaces(std::string_view& into) noexcept { return skip_spaces() && name(into); }
  bool end() const noexcept { return rest_.empty(); }

 private:
  bool skip_spaces() noexcept {
    if (!rest_.starts_with(' ')) return false;
    do {
      rest_.remove_prefix(1);
    } while (rest_.starts_with(' '));
    return true;
  }
  bool name(std::string_view& into) noexcept {
    into = word();
    return !into.starts_with('-') && validate_queue_name(into);
  }
  std::string_view word() noexcept {
    const std::string_view all = rest_.substr(0, rest_.find(' '));
    rest_.remove_prefix(all.size());
    return all;
  }

  std::string_view rest_;
};

bool read(arguments& w, shape format, command& c) noexcept {
  switch (format) {
    case shape::nothing:
      return true;
    case shape::id:
      return w.number(c.number);
    case shape::tube:
      return w.tube(c.tube);
    case shape::open_tube:
      return w.tube(c.tube) && !is_servers_own(c.tube);
    case shape::put:
      return w.number(c.pri) && w.number(c.delay) && w.number(c.ttr) && w.number(c.bytes);
    case shape::release:
      return w.number(c.number) && w.number(c.pri) && w.number(c.delay);
    case shape::bury:
      return w.number(c.number) && w.number(c.pri);
    case shape::timeout:
      return w.timeout(c.number, c.is_endless);
    case shape::pause_tube:
      return w.tube_behind_spaces(c.tube) && w.number(c.delay);
  }
  return false;
}

}  // namespace

std::string_view to_string(verb v) noexcept {
  return verbs[static_cast<std::size_t>(v)].name;
}

command parse_command(std::string_view line) noexcept {
  command c;
  const std::string_view name = line.substr(0, line.find(' '));
  for (std::size_t i = 0; i < verbs.size(); ++i) {
    if (verbs[i].name != name) continue;
    c.action = static_cast<verb>(i);
    arguments rest(line.substr(name.size()));
    const bool is_whole = read(rest, verbs[i].format, c) && rest.end();
    c.problem = is_whole ? command::fault::none : command::fault::bad_format;
    return c;
  }
  c.problem = command::fault::unknown_command;
  return c;
}

}  // namespace sluice::jobs::beanstalk
