#include "jobs/net/stream.hpp"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/connect_pair.hpp>
#include <boost/asio/local/stream_protocol.hpp>

namespace sluice::jobs::net::stream_test {
namespace {

using boost::asio::ip::tcp;

int option_of(stream& s, int level, int option) {
  int value = -1;
  socklen_t size = sizeof value;
  EXPECT_EQ(::getsockopt(s.socket().native_handle(), level, option, &value, &size), 0);
  return value;
}

TEST(Stream, DetectsTheLossOfThePeerWithinAMinute) {
  boost::asio::io_context context;
  tcp::acceptor listens(context, {boost::asio::ip::address_v4::loopback(), 0});
  tcp::socket other(context);
  other.connect(listens.local_endpoint());
  stream here(listens.accept(), nullptr);
  here.detect_peer_loss();
  EXPECT_EQ(option_of(here, SOL_SOCKET, SO_KEEPALIVE), 1);
  const int first = option_of(here, IPPROTO_TCP, TCP_KEEPIDLE);
  const int between = option_of(here, IPPROTO_TCP, TCP_KEEPINTVL);
  const int times = option_of(here, IPPROTO_TCP, TCP_KEEPCNT);
  EXPECT_LE(first + between * times, 60);
  EXPECT_LE(option_of(here, IPPROTO_TCP, TCP_USER_TIMEOUT), 60'000);
}

TEST(Stream, ReturnsTheAddressOfItsPeer) {
  boost::asio::io_context context;
  tcp::acceptor listens(context, {boost::asio::ip::address_v4::loopback(), 0});
  tcp::socket other(context);
  other.connect(listens.local_endpoint());
  const stream over_tcp(listens.accept(), nullptr);
  EXPECT_EQ(over_tcp.peer_address(), "127.0.0.1");

  boost::asio::local::stream_protocol::socket one(context);
  boost::asio::local::stream_protocol::socket two(context);
  boost::asio::local::connect_pair(one, two);
  stream over_unix(std::move(one), nullptr);
  over_unix.detect_peer_loss();
  EXPECT_EQ(over_unix.peer_address(), "local");
}

}  // namespace
}  // namespace sluice::jobs::net::stream_test
