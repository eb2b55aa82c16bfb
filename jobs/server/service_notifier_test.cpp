// Messages to systemd, received by a socket of the test.
#include "jobs/server/service_notifier.hpp"
#include "sluice/base/testing/temporary_folder.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>

namespace sluice::jobs::service_notifier_test {
namespace {

// The receiving end: a socket with a path, or with an abstract name that begins with @.
class listener {
 public:
  explicit listener(const std::string& name) : socket_(::socket(AF_UNIX, SOCK_DGRAM, 0)) {
    sockaddr_un here{};
    here.sun_family = AF_UNIX;
    std::memcpy(here.sun_path, name.data(), name.size());
    if (name[0] == '@') here.sun_path[0] = '\0';
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
    EXPECT_EQ(::bind(socket_, reinterpret_cast<const sockaddr*>(&here), size), 0);
  }
  ~listener() { ::close(socket_); }
  listener(const listener&) = delete;
  listener& operator=(const listener&) = delete;

  std::string received() const {
    std::array<char, 1024> text{};
    const auto n = ::recv(socket_, text.data(), text.size(), MSG_DONTWAIT);
    return n > 0 ? std::string(text.data(), static_cast<std::size_t>(n)) : "";
  }

 private:
  int socket_;
};

TEST(ServiceNotifier, SendsTheStateOfTheServer) {
  const sluice::testing::temporary_folder folder;
  const std::string name = folder.file("notify");
  const listener systemd(name);
  const service_notifier notifier(name);
  notifier.ready("listening on\nhttp://x");
  EXPECT_EQ(systemd.received(), "READY=1\nSTATUS=listening on http://x\n");
  notifier.reloading();
  EXPECT_TRUE(systemd.received().starts_with("RELOADING=1\nMONOTONIC_USEC="));
  notifier.alive();
  EXPECT_EQ(systemd.received(), "WATCHDOG=1\n");
  notifier.stopping("waiting");
  EXPECT_EQ(systemd.received(), "STOPPING=1\nSTATUS=waiting\n");
}

TEST(ServiceNotifier, SupportsAbstractNames) {
  const std::string name = "@sluice-test-" + std::to_string(::getpid());
  const listener systemd(name);
  service_notifier(name).ready("x");
  EXPECT_EQ(systemd.received(), "READY=1\nSTATUS=x\n");
}

TEST(ServiceNotifier, DoesNothingWithoutAReceiver) {
  service_notifier("").ready("x");
  service_notifier("/no/such/socket").ready("x");
  service_notifier(std::string(500, 'x')).ready("x");
}

TEST(ServiceNotifier, ReadsTheWatchdogInterval) {
  const auto interval = [](const char* usec, const char* pid) {
    ::setenv("WATCHDOG_USEC", usec, 1);
    pid != nullptr ? ::setenv("WATCHDOG_PID", pid, 1) : ::unsetenv("WATCHDOG_PID");
    const auto every = service_notifier().watchdog();
    ::unsetenv("WATCHDOG_USEC");
    ::unsetenv("WATCHDOG_PID");
    return every;
  };
  EXPECT_EQ(interval("2000000", nullptr), milliseconds(2000));
  EXPECT_EQ(interval("2000000", std::to_string(::getpid()).c_str()), milliseconds(2000));
  EXPECT_EQ(interval("2000000", "1"), std::nullopt) << "of another process";
  EXPECT_EQ(interval("nonsense", nullptr), std::nullopt);
  EXPECT_EQ(interval("0", nullptr), std::nullopt);
  EXPECT_EQ(service_notifier().watchdog(), std::nullopt);
}

}  // namespace
}  // namespace sluice::jobs::service_notifier_test
