#pragma once

// Tells systemd how the server is doing: ready, reloading, stopping, alive. Without systemd
// (NOTIFY_SOCKET is not set) it does nothing.
//
// Guarantees: never blocks and never fails: a message that cannot be sent is lost, as nobody could
// do anything about it.
//
//     service_notifier systemd;
//     systemd.ready("listening on http://127.0.0.1:7433");

#include <optional>
#include <string>
#include <string_view>

#include "jobs/model/time.hpp"

namespace sluice::jobs {

class service_notifier {
 public:
  service_notifier();  // from NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID
  explicit service_notifier(std::string socket) : socket_(std::move(socket)) {}

  void ready(std::string_view status) const;
  void reloading() const;  // and `ready` when it is over
  void stopping(std::string_view status) const;
  void alive() const;
  // How often `alive` is expected; none: it is not.
  std::optional<milliseconds> watchdog() const noexcept { return watchdog_; }

 private:
  void send(std::string_view message) const;

  std::string socket_;  // a path; with @ first, a name without a file; empty: nobody listens
  std::optional<milliseconds> watchdog_;
};

}  // namespace sluice::jobs
