// Sockets that outlive a server: inherited, named, passed on.
#include "jobs/net/listening_sockets.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>

namespace sluice::jobs::net::listening_sockets_test {
namespace {

int listening_socket() {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = ::htonl(INADDR_LOOPBACK);
  EXPECT_EQ(::bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  EXPECT_EQ(::listen(socket, 8), 0);
  return socket;
}

// Descriptors from 3 on belong to the test program, so it cannot inherit any. Inherited sockets are
// tested with the real program, in jobs/cli/restart_test.cpp.
class ListeningSockets : public ::testing::Test {
 protected:
  void TearDown() override {
    for (const char* name : {"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"}) ::unsetenv(name);
  }
  static bool is_set(const char* name) { return std::getenv(name) != nullptr; }
};

TEST_F(ListeningSockets, AreNoneWithoutTheVariables) {
  const auto all = listening_sockets::inherit("http");
  ASSERT_TRUE(all);
  EXPECT_FALSE(all->has("http"));
}

TEST_F(ListeningSockets, OfAnotherProcessAreNotInherited) {
  ::setenv("LISTEN_PID", "1", 1);
  ::setenv("LISTEN_FDS", "1", 1);
  ::setenv("LISTEN_FDNAMES", "http", 1);
  const auto all = listening_sockets::inherit("http");
  ASSERT_TRUE(all);
  EXPECT_FALSE(all->has("http"));
  EXPECT_FALSE(is_set("LISTEN_PID") || is_set("LISTEN_FDS") || is_set("LISTEN_FDNAMES"));
}

TEST_F(ListeningSockets, BeyondTheLimitAreRefused) {
  ::setenv("LISTEN_PID", std::to_string(::getpid()).c_str(), 1);
  ::setenv("LISTEN_FDS", "1000", 1);
  const auto all = listening_sockets::inherit("http");
  ASSERT_FALSE(all);
  EXPECT_EQ(all.error().code, error_code::invalid);
  EXPECT_NE(all.error().message.find("LISTEN_FDS=1000"), std::string::npos);
}

TEST_F(ListeningSockets, StayOpenUntilCloseOwn) {
  listening_sockets all;
  const int opened = listening_socket();
  all.add("http", opened);
  ::close(opened);
  const auto address = all.tcp_address("http");
  ASSERT_TRUE(address);
  EXPECT_TRUE(address->address().is_loopback());
  EXPECT_FALSE(all.keeps_file("http"));
  const int again = all.duplicate("http");
  EXPECT_GE(again, 3);
  EXPECT_NE(::fcntl(again, F_GETFD) & FD_CLOEXEC, 0);
  ::close(again);
  all.stay_open();
  EXPECT_TRUE(all.keeps_file("http"));
  all.close_own();
  EXPECT_FALSE(all.has("http"));
  EXPECT_EQ(all.duplicate("http"), -1);
  EXPECT_FALSE(all.tcp_address("http"));
}

}  // namespace
}  // namespace sluice::jobs::net::listening_sockets_test
