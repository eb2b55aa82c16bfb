#include "benchmarks/wire/crowd.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "benchmarks/harness.hpp"

namespace sluice::bench {
namespace {

constexpr std::size_t read_bytes = 256 * 1024;
constexpr std::chrono::seconds silence_max{60};  // longer than any long poll of a benchmark

[[noreturn]] void fail_with_errno(const std::string& action) {
  fail(action + ": " + std::strerror(errno));
}

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

int new_socket() {
  const int made = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (made < 0) fail_with_errno("cannot make a socket");
  return made;
}

bool try_connect(int fd, std::uint16_t port) {
  const sockaddr_in address = loopback(port);
  return ::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

}  // namespace

crowd::crowd(std::uint16_t port) : port_(port), epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
  if (epoll_ < 0) fail_with_errno("epoll_create1");
}

crowd::~crowd() {
  for (const auto& c : connections_) ::close(c->fd_);
  ::close(epoll_);
}

crowd::connection& crowd::connect(on_bytes consume) {
  auto c = std::make_unique<connection>();
  c->consume_ = std::move(consume);
  c->in_.resize(read_bytes);
  c->fd_ = new_socket();
  if (!try_connect(c->fd_, port_)) fail_with_errno("cannot connect to the server");
  const int on = 1;
  ::setsockopt(c->fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.ptr = c.get();
  if (::epoll_ctl(epoll_, EPOLL_CTL_ADD, c->fd_, &event) != 0) fail_with_errno("epoll_ctl");
  connections_.push_back(std::move(c));
  return *connections_.back();
}

void crowd::flush(connection& on) {
  std::size_t sent = 0;
  while (sent < on.out_.size()) {
    const ssize_t n =
        ::send(on.fd_, on.out_.data() + sent, on.out_.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) break;
    if (n < 0) fail_with_errno("sending to the server");
    sent += static_cast<std::size_t>(n);
  }
  on.out_.erase(0, sent);
  watch_for_writable(on);
}

void crowd::watch_for_writable(connection& on) {
  const bool wanted = !on.out_.empty();
  if (on.watches_for_writable_ == wanted) return;
  on.watches_for_writable_ = wanted;
  epoll_event event{};
  event.events = wanted ? (EPOLLIN | EPOLLOUT) : EPOLLIN;
  event.data.ptr = &on;
  if (::epoll_ctl(epoll_, EPOLL_CTL_MOD, on.fd_, &event) != 0) fail_with_errno("epoll_ctl");
}

void crowd::receive(connection& on) {
  if (on.in_used_ == on.in_.size()) on.in_.resize(2 * on.in_.size());  // one long answer
  const ssize_t n =
      ::recv(on.fd_, on.in_.data() + on.in_used_, on.in_.size() - on.in_used_, MSG_DONTWAIT);
  if (n < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (n < 0) fail_with_errno("receiving from the server");
  if (n == 0) fail("the server closed a connection");
  on.in_used_ += static_cast<std::size_t>(n);
  const std::size_t used = on.consume_(on, {on.in_.data(), on.in_used_});
  if (used > on.in_used_) fail("more bytes were consumed than received");
  std::memmove(on.in_.data(), on.in_.data() + used, on.in_used_ - used);
  on.in_used_ -= used;
  if (!on.out_.empty() && !on.watches_for_writable_) flush(on);
}

void crowd::run(const std::function<bool()>& is_done) {
  std::array<epoll_event, 128> events;
  auto received_last = clock::now();
  while (!is_done()) {
    const auto limit = std::min(wake_, received_last + silence_max);
    const auto left = std::max(clock::duration::zero(), limit - clock::now());
    timespec wait{};
    wait.tv_sec = std::chrono::duration_cast<std::chrono::seconds>(left).count();
    wait.tv_nsec = (left % std::chrono::seconds(1)).count();
    const int n =
        ::epoll_pwait2(epoll_, events.data(), static_cast<int>(events.size()), &wait, nullptr);
    if (n < 0 && errno != EINTR) fail_with_errno("epoll_pwait2");
    if (n > 0) {
      received_last = clock::now();
    } else if (clock::now() - received_last >= silence_max) {
      fail("the server sent nothing for " + std::to_string(silence_max.count()) + " s");
    }
    for (int i = 0; i < n; ++i) {
      const epoll_event& event = events[static_cast<std::size_t>(i)];
      connection& on = *static_cast<connection*>(event.data.ptr);
      if ((event.events & EPOLLOUT) != 0) flush(on);
      if ((event.events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0) receive(on);
    }
  }
}

std::uint16_t free_port() {
  const int taken = new_socket();
  sockaddr_in address = loopback(0);
  socklen_t size = sizeof address;
  if (::bind(taken, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      ::getsockname(taken, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    fail_with_errno("cannot find a free port");
  }
  ::close(taken);
  return ntohs(address.sin_port);
}

bool is_listening(std::uint16_t port) {
  const int probe = new_socket();
  const bool opened = try_connect(probe, port);
  ::close(probe);
  return opened;
}

}  // namespace sluice::bench
