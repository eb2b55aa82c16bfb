// `instant`: no server. A thread that answers every command at once, stores nothing and delivers
// jobs that were never put: the limit of the load program, which no server can exceed.
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <map>
#include <stop_token>
#include <thread>

#include "benchmarks/beanstalk/beanstalk_dialect.hpp"
#include "benchmarks/wire/load.hpp"

namespace sluice::bench {
namespace {

class instant_server {
 public:
  instant_server() : listens_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    if (listens_ < 0 ||
        ::bind(listens_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
        ::listen(listens_, 64) != 0 ||
        ::getsockname(listens_, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
      fail(std::string("cannot listen: ") + std::strerror(errno));
    }
    port_ = ntohs(address.sin_port);
    thread_ = std::jthread([this](const std::stop_token& stop) { serve(stop); });
  }
  ~instant_server() {
    thread_.request_stop();
    thread_.join();
    for (const pollfd& p : watched_) ::close(p.fd);
  }
  instant_server(const instant_server&) = delete;
  instant_server& operator=(const instant_server&) = delete;

  std::uint16_t port() const { return port_; }

 private:
  void serve(const std::stop_token& stop) {
    watched_.push_back({.fd = listens_, .events = POLLIN, .revents = 0});
    while (!stop.stop_requested()) {
      if (::poll(watched_.data(), watched_.size(), 100) <= 0) continue;
      for (std::size_t i = watched_.size(); i-- > 0;) {
        if (watched_[i].revents == 0) continue;
        if (i == 0) {
          accept_one();
        } else if (!answer(watched_[i].fd)) {
          ::close(watched_[i].fd);
          waiting_.erase(watched_[i].fd);
          watched_.erase(watched_.begin() + static_cast<std::ptrdiff_t>(i));
        }
      }
    }
  }

  void accept_one() {
    const int fd = ::accept4(listens_, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) return;
    const int on = 1;
    ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    watched_.push_back({.fd = fd, .events = POLLIN, .revents = 0});
  }

  bool answer(int fd) {
    std::string& in = waiting_[fd];
    const ssize_t n = ::recv(fd, part_.data(), part_.size(), 0);
    if (n <= 0) return false;
    in.append(part_.data(), static_cast<std::size_t>(n));
    out_.clear();
    std::size_t used = 0;
    for (;;) {
      const std::string_view rest = std::string_view(in).substr(used);
      const std::size_t end = rest.find('\n');
      if (end == std::string_view::npos) break;
      const std::size_t whole = end + 1 + (rest[0] == 'p' ? body_bytes + 2 : 0);
      if (rest.size() < whole) break;
      if (rest[0] == 'p') {
        out_.append("INSERTED 1\r\n");
      } else if (rest[0] == 'd') {
        out_.append("DELETED\r\n");
      } else {
        out_.append("RESERVED 1 100\r\n");
        append_body(out_, reserved_++);
        out_.append("\r\n");
      }
      used += whole;
    }
    in.erase(0, used);
    return ::send(fd, out_.data(), out_.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(out_.size());
  }

  int listens_;
  std::uint16_t port_ = 0;
  std::vector<pollfd> watched_;
  std::map<int, std::string> waiting_;  // the received part of a command, by connection
  std::string out_;
  std::array<char, 65536> part_{};
  std::uint64_t reserved_ = 0;
  std::jthread thread_;
};

measure jobs_per_second(std::size_t depth) {
  return [depth](const settings& s) {
    const instant_server server;
    const load_plan plan{.depth = depth, .jobs = s.quick ? 400u : 100'000u};
    const tally done = run_load(server.port(), beanstalk_dialect(), plan);
    return static_cast<double>(done.operations) / done.took.count();
  };
}

const registration added{[](suite& s) {
  s.add("load-ceiling-d1", "instant", jobs_per_second(1));
  s.add("load-ceiling-d64", "instant", jobs_per_second(64));
}};

}  // namespace
}  // namespace sluice::bench
