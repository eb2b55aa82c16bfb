#include "jobs/deliver/detail/verdict.hpp"

#include <algorithm>
#include <charconv>
#include <ctime>
#include <utility>

#include "jobs/json/codec.hpp"

namespace sluice::jobs::detail {
namespace {

constexpr milliseconds retry_after_max = std::chrono::hours(24);
constexpr std::size_t shown_bytes = 512;  // of a body, in a message

// "application/json; charset=utf-8", "application/problem+json"
bool is_json(std::string_view type) {
  type = type.substr(0, type.find(';'));
  while (type.ends_with(' ')) type.remove_suffix(1);
  std::string lower(type);
  std::ranges::transform(lower, lower.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? char(c + 32) : c; });
  return lower == "application/json" ||
         (lower.starts_with("application/") && lower.ends_with("+json"));
}

bool is_space(char c) {
  return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

// Returns the beginning of a body, for people, cut at a character boundary.
std::string excerpt(std::string_view body) {
  body = trimmed(body);
  if (body.size() <= shown_bytes) return std::string(body);
  std::size_t end = shown_bytes;
  while (end > shown_bytes - 4 && (static_cast<unsigned char>(body[end]) & 0xC0U) == 0x80U) --end;
  return std::string(body.substr(0, end)) + " ...";
}

delivery_ack ack_of(outgoing_end& end) {
  const std::string_view body = trimmed(end.body);
  if (body.empty() || !is_json(end.content_type)) return {};
  if (end.is_cut) {
    return {.result = {},
            .dropped = "the result is larger than " + std::to_string(end.body.size()) + " bytes"};
  }
  if (auto valid = json::check_json(body); !valid) {
    return {.result = {}, .dropped = "the result is not JSON: " + valid.error().message};
  }
  return {.result = payload{std::string(body)}, .dropped = {}};
}

std::string failure_text(const outgoing_end& end, const web_url& url) {
  std::string text = url.shown() + " answered " + std::to_string(end.status);
  if (end.status >= 300 && end.status < 400) {
    text += ", a redirect, which is not followed";
    if (auto target = parse_web_url(end.location)) text += " (to " + target->shown() + ")";
    return text + ": configure the target URL itself";
  }
  if (const std::string part = excerpt(end.body); !part.empty()) text += ": " + part;
  return text;
}

bool may_pass(int status) {
  return status == 408 || status == 425 || status == 429 || status >= 500;
}

}  // namespace

std::optional<milliseconds> parse_retry_after(std::string_view text, unix_time now) {
  text = trimmed(text);
  std::uint64_t seconds = 0;
  const char* const end = text.data() + text.size();
  const auto [stopped, failed] = std::from_chars(text.data(), end, seconds);
  if (!text.empty() && stopped == end) {
    if (failed == std::errc::result_out_of_range) return retry_after_max;
    const auto most = static_cast<std::uint64_t>(retry_after_max.count() / 1000);
    if (seconds == 0) return std::nullopt;
    return milliseconds(static_cast<std::int64_t>(std::min(seconds, most)) * 1000);
  }
  std::tm parts{};
  const std::string copy(text);
  const char* const rest = strptime(copy.c_str(), "%a, %d %b %Y %H:%M:%S GMT", &parts);
  if (rest == nullptr || *rest != '\0') return std::nullopt;
  const milliseconds wait = unix_time{std::int64_t{timegm(&parts)} * 1000} - now;
  if (wait <= milliseconds(0)) return std::nullopt;
  return std::min(wait, retry_after_max);
}

verdict judge(outgoing_end end, const web_url& url, unix_time now) {
  using state = verdict::receiver_state;
  if (end.cause == outgoing_end::fault::cancelled) return {.report = give_back{}};
  if (end.cause != outgoing_end::fault::none) {
    return {.report = failure{.type = std::string(to_string(end.cause)),
                              .message = url.shown() + ": " + end.message},
            .receiver = state::fails};
  }
  if (end.status >= 200 && end.status < 300) {
    return {.report = ack_of(end), .receiver = state::works};
  }
  failure why{.type = "http_" + std::to_string(end.status), .message = failure_text(end, url)};
  if (!may_pass(end.status)) {
    why.for_good = true;
    return {.report = std::move(why), .receiver = state::works};
  }
  why.retry_in = parse_retry_after(end.retry_after, now);
  const bool is_busy = end.status == 429 || end.status == 503;
  const milliseconds pause = is_busy ? why.retry_in.value_or(milliseconds(0)) : milliseconds(0);
  return {.report = std::move(why), .receiver = state::fails, .pause = pause};
}

}  // namespace sluice::jobs::detail
