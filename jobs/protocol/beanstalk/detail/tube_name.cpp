#include "jobs/protocol/beanstalk/detail/tube_name.hpp"

#include <algorithm>
#include <array>

#include "jobs/model/job.hpp"

namespace sluice::jobs::beanstalk {
namespace {

struct escape {
  char byte;
  std::string_view written;
};
constexpr std::array<escape, 5> escapes = {
    {{'+', ":2B"}, {';', ":3B"}, {'$', ":24"}, {'(', ":28"}, {')', ":29"}}};

constexpr bool is_plain(char c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '_' || c == '.' || c == '/' || c == ':';
}

const escape* escape_of(char c) noexcept {
  const auto at = std::ranges::find(escapes, c, &escape::byte);
  return at == escapes.end() ? nullptr : &*at;
}

const escape* escape_at(std::string_view text) noexcept {
  const auto at =
      std::ranges::find_if(escapes, [&](const escape& e) { return text.starts_with(e.written); });
  return at == escapes.end() ? nullptr : &*at;
}

}  // namespace

bool is_tube_name(std::string_view tube) noexcept {
  return !tube.empty() && tube.size() <= tube_bytes_max && tube.front() != '-' &&
         std::ranges::all_of(tube, [](char c) { return is_plain(c) || escape_of(c) != nullptr; });
}

std::optional<std::string> queue_of(std::string_view tube) {
  if (!is_tube_name(tube)) return std::nullopt;
  std::string queue;
  queue.reserve(tube.size());
  for (const char c : tube) {
    if (const escape* const e = escape_of(c)) {
      queue += e->written;
    } else {
      queue += c;
    }
  }
  if (queue.size() > limits::queue_name_bytes_max) return std::nullopt;
  return queue;
}

std::string tube_of(std::string_view queue) {
  std::string tube;
  tube.reserve(queue.size());
  while (!queue.empty()) {
    const escape* const e = queue.front() == ':' ? escape_at(queue) : nullptr;
    tube += e != nullptr ? e->byte : queue.front();
    queue.remove_prefix(e != nullptr ? e->written.size() : 1);
  }
  return tube;
}

}  // namespace sluice::jobs::beanstalk
