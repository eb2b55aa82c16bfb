#include "jobs/net/listening_sockets.hpp"

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>

#include "sluice/base/check.hpp"

namespace sluice::jobs::net {
namespace {

using boost::asio::ip::tcp;

constexpr int first_descriptor = 3;  // SD_LISTEN_FDS_START of sd_listen_fds(3)
constexpr int sockets_max = 64;
constexpr std::string_view own_prefix = "own-";  // in LISTEN_FDNAMES
// Without FileDescriptorName= systemd names a socket after its unit, or "unknown".
constexpr std::string_view no_name = "unknown";

std::string variable(const char* name) {
  const char* const set = std::getenv(name);
  return set != nullptr ? set : "";
}

int number_of(const std::string& text) {
  int value = -1;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  return failed == std::errc{} && end == text.data() + text.size() ? value : -1;
}

std::vector<std::string> names_in(const std::string& list) {
  std::vector<std::string> names;
  for (std::size_t at = 0; at < list.size();) {
    const std::size_t end = std::min(list.find(':', at), list.size());
    names.push_back(list.substr(at, end - at));
    at = end + 1;
  }
  return names;
}

bool is_listening(int socket) {
  int is = 0;
  socklen_t size = sizeof is;
  return ::getsockopt(socket, SOL_SOCKET, SO_ACCEPTCONN, &is, &size) == 0 && is != 0;
}

int duplicate_of(int socket, int at_least = first_descriptor) {
  const int copy = ::fcntl(socket, F_DUPFD_CLOEXEC, at_least);
  check(copy >= 0, "sluice::jobs::net::listening_sockets", "a free descriptor");
  return copy;
}

}  // namespace

listening_sockets::~listening_sockets() {
  for (const entry& e : sockets_) ::close(e.socket);
}

result<listening_sockets> listening_sockets::inherit(std::string_view unnamed) {
  listening_sockets all;
  const bool are_ours = number_of(variable("LISTEN_PID")) == ::getpid();
  const int count = number_of(variable("LISTEN_FDS"));
  std::vector<std::string> names = names_in(variable("LISTEN_FDNAMES"));
  for (const char* name : {"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"}) ::unsetenv(name);
  if (!are_ours || count <= 0) return all;
  if (count > sockets_max) {
    return error{error_code::invalid, "LISTEN_FDS=" + std::to_string(count) + ": at most " +
                                          std::to_string(sockets_max) +
                                          " sockets can be passed to this program"};
  }
  names.resize(static_cast<std::size_t>(count));
  const auto has_none = [](const std::string& name) {
    return name.empty() || name == no_name || name.ends_with(".socket");
  };
  if (count == 1 && has_none(names.front())) names.front() = unnamed;
  for (int i = 0; i < count; ++i) {
    auto added =
        all.add_inherited(first_descriptor + i, std::move(names[static_cast<std::size_t>(i)]));
    if (!added) return added.error();
  }
  return all;
}

void_result listening_sockets::add_inherited(int socket, std::string name) {
  const bool is_own = name.starts_with(own_prefix);
  if (is_own) name.erase(0, own_prefix.size());
  const std::string label = "the socket '" + name + "' (descriptor " + std::to_string(socket) + ")";
  if (!is_listening(socket)) {
    return error{error_code::invalid,
                 label + " does not listen; systemd must pass it with ListenStream= and Accept=no"};
  }
  if (has(name)) {
    return error{error_code::invalid,
                 "two sockets are named '" + name + "'; name each with FileDescriptorName="};
  }
  ::fcntl(socket, F_SETFD, FD_CLOEXEC);
  sockets_.push_back({std::move(name), socket, is_own, false});
  return done{};
}

const listening_sockets::entry* listening_sockets::find(std::string_view name) const {
  const auto found = std::ranges::find(sockets_, name, &entry::name);
  return found == sockets_.end() ? nullptr : &*found;
}

int listening_sockets::duplicate(std::string_view name) {
  const auto found = std::ranges::find(sockets_, name, &entry::name);
  if (found == sockets_.end()) return -1;
  found->is_used = true;
  return duplicate_of(found->socket);
}

void listening_sockets::add(std::string_view name, int socket) {
  sockets_.push_back({std::string(name), duplicate_of(socket), true, true});
}

std::optional<tcp::endpoint> listening_sockets::tcp_address(std::string_view name) const {
  const entry* const e = find(name);
  if (e == nullptr) return std::nullopt;
  tcp::endpoint address;
  auto size = static_cast<socklen_t>(address.capacity());
  sockaddr_storage bound{};
  socklen_t bound_size = sizeof bound;
  if (::getsockname(e->socket, reinterpret_cast<sockaddr*>(&bound), &bound_size) != 0 ||
      (bound.ss_family != AF_INET && bound.ss_family != AF_INET6) || bound_size > size) {
    return std::nullopt;
  }
  std::memcpy(address.data(), &bound, bound_size);
  address.resize(bound_size);
  return address;
}

bool listening_sockets::is_own(std::string_view name) const {
  const entry* const e = find(name);
  return e != nullptr && e->is_own;
}

bool listening_sockets::keeps_file(std::string_view name) const {
  const entry* const e = find(name);
  return e != nullptr && (stays_open_ || !e->is_own);
}

std::vector<std::string> listening_sockets::close_unused() {
  std::vector<std::string> unused;
  for (const entry& e : sockets_) {
    if (e.is_used) continue;
    ::close(e.socket);
    unused.push_back(e.name);
  }
  std::erase_if(sockets_, [](const entry& e) { return !e.is_used; });
  return unused;
}

void listening_sockets::close_own() {
  for (const entry& e : sockets_) {
    if (e.is_own) ::close(e.socket);
  }
  std::erase_if(sockets_, [](const entry& e) { return e.is_own; });
}

void listening_sockets::pass_on() {
  const int count = static_cast<int>(sockets_.size());
  std::string names;
  // Move all out of the target range first: a socket may occupy the number of another.
  for (entry& e : sockets_) {
    const int moved = duplicate_of(e.socket, first_descriptor + count);
    ::close(std::exchange(e.socket, moved));
    names += (names.empty() ? "" : ":") + std::string(e.is_own ? own_prefix : "") + e.name;
  }
  // Fails before Linux 5.11; there, descriptors that libraries left open are inherited, too.
  (void)::close_range(first_descriptor, ~0U, CLOSE_RANGE_CLOEXEC);
  for (int i = 0; i < count; ++i) {
    entry& e = sockets_[static_cast<std::size_t>(i)];
    check(::dup2(e.socket, first_descriptor + i) == first_descriptor + i,
          "sluice::jobs::net::listening_sockets", "a descriptor to pass on");
  }
  ::setenv("LISTEN_PID", std::to_string(::getpid()).c_str(), 1);
  ::setenv("LISTEN_FDS", std::to_string(count).c_str(), 1);
  ::setenv("LISTEN_FDNAMES", names.c_str(), 1);
}

}  // namespace sluice::jobs::net
