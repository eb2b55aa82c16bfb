#include "jobs/server/service_notifier.hpp"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdlib>
#include <cstring>

#include "sluice/base/seam.hpp"

namespace sluice::jobs {
namespace {

std::string variable(const char* name) {
  const char* const set = std::getenv(name);
  return set != nullptr ? set : "";
}

std::optional<std::int64_t> number_of(const std::string& text) {
  std::int64_t value = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failed != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// A status must be one line.
std::string one_line(std::string_view text) {
  std::string line(text);
  std::ranges::replace(line, '\n', ' ');
  return line;
}

}  // namespace

service_notifier::service_notifier() : socket_(variable("NOTIFY_SOCKET")) {
  const auto usec = number_of(variable("WATCHDOG_USEC"));
  const std::string pid = variable("WATCHDOG_PID");
  const bool is_ours = pid.empty() || number_of(pid) == ::getpid();
  if (usec && *usec > 0 && is_ours)
    watchdog_ = milliseconds(std::max<std::int64_t>(1, *usec / 1000));
}

void service_notifier::send(std::string_view message) const {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (socket_.empty() || socket_.size() >= sizeof address.sun_path) return;
  std::memcpy(address.sun_path, socket_.data(), socket_.size());
  if (address.sun_path[0] == '@') address.sun_path[0] = '\0';
  const int out = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (out < 0) return;
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + socket_.size());
  [[maybe_unused]] const auto sent = ::sendto(out, message.data(), message.size(), MSG_NOSIGNAL,
                                              reinterpret_cast<const sockaddr*>(&address), size);
  ::close(out);
}

void service_notifier::ready(std::string_view status) const {
  send("READY=1\nSTATUS=" + one_line(status) + "\n");
}

void service_notifier::reloading() const {
  const auto now =
      std::chrono::duration_cast<std::chrono::microseconds>(seam::now().time_since_epoch());
  send("RELOADING=1\nMONOTONIC_USEC=" + std::to_string(now.count()) + "\n");
}

void service_notifier::stopping(std::string_view status) const {
  send("STOPPING=1\nSTATUS=" + one_line(status) + "\n");
}

void service_notifier::alive() const {
  send("WATCHDOG=1\n");
}

}  // namespace sluice::jobs
