#pragma once

// Reports the server's state to systemd: ready, reloading, stopping, alive. Does nothing without
// systemd (NOTIFY_SOCKET is not set).
//
// Guarantees: never blocks and never fails; a message that cannot be sent is dropped.
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
  void reloading() const;  // followed by `ready`
  void stopping(std::string_view status) const;
  void alive() const;
  // The expected interval of `alive`; nullopt: none.
  std::optional<milliseconds> watchdog() const noexcept { return watchdog_; }

 private:
  void send(std::string_view message) const;

  std::string socket_;  // a path, or @ and an abstract name; empty: no systemd
  std::optional<milliseconds> watchdog_;
};

}  // namespace sluice::jobs
