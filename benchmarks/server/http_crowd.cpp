#include "benchmarks/server/http_crowd.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <utility>

#include "benchmarks/harness.hpp"

namespace sluice::bench {

class http_crowd::connection {
 public:
  int fd = -1;
  on_answer answered;
  std::string out;  // what of the request is not sent yet
  std::string in;
  bool is_waiting = false;
  bool watches_for_room = false;
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
Number number_of(std::string_view text, std::string_view what) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{}) fail("the server sent no number for " + std::string(what));
  return value;
}

// The whole length of the answer at the front of `in`, and the answer; 0: not all of it is there.
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

http_crowd::http_crowd(std::uint16_t port) : port_(port), epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
  if (epoll_ < 0) fail(std::string("epoll_create1: ") + std::strerror(errno));
}

http_crowd::~http_crowd() {
  for (const auto& c : connections_) ::close(c->fd);
  ::close(epoll_);
}

http_crowd::connection& http_crowd::connect(on_answer answered) {
  auto c = std::make_unique<connection>();
  c->answered = std::move(answered);
  c->fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port_);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (c->fd < 0 || ::connect(c->fd, reinterpret_cast<sockaddr*>(&to), sizeof to) != 0) {
    fail(std::string("cannot connect to the server: ") + std::strerror(errno));
  }
  const int on = 1;
  ::setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.ptr = c.get();
  if (::epoll_ctl(epoll_, EPOLL_CTL_ADD, c->fd, &event) != 0) fail("epoll_ctl failed");
  connections_.push_back(std::move(c));
  return *connections_.back();
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
  if (on.is_waiting) fail("a second request while one is under way");
  on.is_waiting = true;
  on.out.assign(head);
  on.out.append(body);
  flush(on);
}

void http_crowd::flush(connection& on) {
  std::size_t sent = 0;
  while (sent < on.out.size()) {
    const ssize_t n =
        ::send(on.fd, on.out.data() + sent, on.out.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) break;
    if (n < 0) fail(std::string("sending to the server: ") + std::strerror(errno));
    sent += static_cast<std::size_t>(n);
  }
  on.out.erase(0, sent);
  watch(on, !on.out.empty());
}

void http_crowd::watch(connection& on, bool for_room) {
  if (on.watches_for_room == for_room) return;
  on.watches_for_room = for_room;
  epoll_event event{};
  event.events = for_room ? (EPOLLIN | EPOLLOUT) : EPOLLIN;
  event.data.ptr = &on;
  if (::epoll_ctl(epoll_, EPOLL_CTL_MOD, on.fd, &event) != 0) fail("epoll_ctl failed");
}

void http_crowd::receive(connection& on) {
  std::array<char, 65536> part;
  for (;;) {
    const ssize_t n = ::recv(on.fd, part.data(), part.size(), MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) break;
    if (n < 0) fail(std::string("receiving from the server: ") + std::strerror(errno));
    if (n == 0) fail("the server closed a connection");
    on.in.append(part.data(), static_cast<std::size_t>(n));
    if (static_cast<std::size_t>(n) < part.size()) break;
  }
  http_answer answer;
  const std::size_t whole = first_answer(on.in, answer);
  if (whole == 0) return;
  if (!on.is_waiting || whole != on.in.size()) fail("the server answered what nobody asked");
  // The handler may send the next request, so the answer is moved out of the way first.
  const std::string text = std::exchange(on.in, {});
  answer.body = std::string_view(text).substr(text.size() - answer.body.size());
  on.is_waiting = false;
  on.answered(on, answer);
}

void http_crowd::run(const std::function<bool()>& is_over) {
  std::array<epoll_event, 64> events;
  while (!is_over()) {
    timespec wait{};
    const bool has_limit = wake_ != clock::time_point::max();
    if (has_limit) {
      const auto left = std::max(clock::duration::zero(), wake_ - clock::now());
      wait.tv_sec = std::chrono::duration_cast<std::chrono::seconds>(left).count();
      wait.tv_nsec = (left % std::chrono::seconds(1)).count();
    }
    const int n = ::epoll_pwait2(epoll_, events.data(), static_cast<int>(events.size()),
                                 has_limit ? &wait : nullptr, nullptr);
    if (n < 0 && errno != EINTR) fail(std::string("epoll_pwait2: ") + std::strerror(errno));
    for (int i = 0; i < n; ++i) {
      const epoll_event& event = events[static_cast<std::size_t>(i)];
      connection& on = *static_cast<connection*>(event.data.ptr);
      if ((event.events & EPOLLOUT) != 0) flush(on);
      if ((event.events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0) receive(on);
    }
  }
}

std::string ask(std::uint16_t port, std::string_view path, std::string_view body) {
  http_crowd crowd(port);
  std::string text;
  bool is_over = false;
  auto& c = crowd.connect([&](http_crowd::connection&, const http_answer& answer) {
    if (answer.status / 100 != 2) {
      fail(std::string(path) + ": " + std::to_string(answer.status) + " " +
           std::string(answer.body));
    }
    text = answer.body;
    is_over = true;
  });
  if (body.empty()) {
    crowd.get(c, path);
  } else {
    crowd.post(c, path, body);
  }
  crowd.run([&] { return is_over; });
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
