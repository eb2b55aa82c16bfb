#include "benchmarks/server/http_crowd.hpp"

#include <strings.h>

#include <charconv>
#include <utility>

#include "benchmarks/harness.hpp"

namespace sluice::bench {

class http_crowd::connection {
 public:
  crowd::connection* wire = nullptr;
  on_answer answered;
  bool is_waiting = false;
};

namespace {

std::string_view header_value(std::string_view head, std::string_view name) {
  for (std::size_t at = head.find("\r\n"); at != std::string_view::npos;
       at = head.find("\r\n", at + 2)) {
    const std::string_view line = head.substr(at + 2);
    if (line.size() > name.size() && line[name.size()] == ':' &&
        ::strncasecmp(line.data(), name.data(), name.size()) == 0) {
      std::string_view value = line.substr(name.size() + 1);
      value = value.substr(0, value.find("\r\n"));
      while (value.starts_with(' ')) value.remove_prefix(1);
      return value;
    }
  }
  return {};
}

template <class Number>
Number number_of(std::string_view text, std::string_view field) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{}) fail("the server sent no number for " + std::string(field));
  return value;
}

// Parses the reply at the front of `in`. Returns its length, or 0 if it is incomplete.
std::size_t first_answer(std::string_view in, http_answer& answer) {
  const std::size_t end = in.find("\r\n\r\n");
  if (end == std::string_view::npos) return 0;
  const std::string_view head = in.substr(0, end);
  if (!head.starts_with("HTTP/1.1 ")) fail("the server sent no HTTP: " + std::string(head));
  answer.status = number_of<int>(head.substr(9, 3), "the status");
  const std::string_view length = header_value(head, "content-length");
  const std::size_t body = length.empty() ? 0 : number_of<std::size_t>(length, "the length");
  const std::size_t whole = end + 4 + body;
  if (in.size() < whole) return 0;
  answer.body = in.substr(end + 4, body);
  return whole;
}

}  // namespace

http_crowd::http_crowd(std::uint16_t port) : wire_(port) {}

http_crowd::~http_crowd() = default;

http_crowd::connection& http_crowd::connect(on_answer answered) {
  connection& c = *connections_.emplace_back(std::make_unique<connection>());
  c.answered = std::move(answered);
  c.wire = &wire_.connect([&c](crowd::connection&, std::string_view in) {
    http_answer answer;
    const std::size_t whole = first_answer(in, answer);
    if (whole == 0) return whole;
    if (!c.is_waiting || whole != in.size()) fail("the server sent a reply without a request");
    c.is_waiting = false;
    c.answered(c, answer);
    return whole;
  });
  return c;
}

void http_crowd::post(connection& on, std::string_view path, std::string_view body) {
  std::string head = "POST ";
  head.append(path);
  head += " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ";
  head += std::to_string(body.size());
  head += "\r\n\r\n";
  send(on, head, body);
}

void http_crowd::get(connection& on, std::string_view path) {
  send(on, "GET " + std::string(path) + " HTTP/1.1\r\nHost: localhost\r\n\r\n", {});
}

void http_crowd::send(connection& on, std::string_view head, std::string_view body) {
  if (on.is_waiting) fail("a second request while one is unanswered");
  on.is_waiting = true;
  on.wire->out().append(head).append(body);
  wire_.flush(*on.wire);
}

std::string ask(std::uint16_t port, std::string_view path, std::string_view body) {
  http_crowd crowd(port);
  std::string text;
  bool is_done = false;
  auto& c = crowd.connect([&](http_crowd::connection&, const http_answer& answer) {
    if (answer.status / 100 != 2) {
      fail(std::string(path) + ": " + std::to_string(answer.status) + " " +
           std::string(answer.body));
    }
    text = answer.body;
    is_done = true;
  });
  if (body.empty()) {
    crowd.get(c, path);
  } else {
    crowd.post(c, path, body);
  }
  crowd.run([&] { return is_done; });
  return text;
}

std::vector<std::uint64_t> numbers_after(std::string_view text, std::string_view name) {
  const std::string key = '"' + std::string(name) + "\":";
  std::vector<std::uint64_t> found;
  for (std::size_t at = text.find(key); at != std::string_view::npos; at = text.find(key, at)) {
    at += key.size();
    found.push_back(number_of<std::uint64_t>(text.substr(at, 24), name));
  }
  return found;
}

}  // namespace sluice::bench
