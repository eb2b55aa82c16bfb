// Listen addresses and the validation of options.
#include "jobs/server/server_options.hpp"

#include <gtest/gtest.h>

namespace sluice::jobs::server_options_test {
namespace {

TEST(ListenAddress, IsReadFromHostAndPort) {
  EXPECT_EQ(parse_listen_address("127.0.0.1:80").value(), (listen_address{"127.0.0.1", 80}));
  EXPECT_EQ(parse_listen_address("localhost:0").value(), (listen_address{"localhost", 0}));
  EXPECT_EQ(parse_listen_address("[::1]:9").value(), (listen_address{"::1", 9}));
  EXPECT_EQ(parse_listen_address(":9000").value(), (listen_address{"127.0.0.1", 9000}));
  EXPECT_EQ(parse_listen_address("127.0.0.2").value(), (listen_address{"127.0.0.2", 7433}));
  EXPECT_EQ(parse_listen_address("::1").value(), (listen_address{"::1", 7433}));
}

TEST(ListenAddress, DetectsLoopback) {
  for (const char* open : {"0.0.0.0:80", "10.0.0.1:80", "[::]:80"}) {
    EXPECT_FALSE(is_loopback(parse_listen_address(open).value())) << open;
  }
  for (const char* own : {"127.0.0.1", "127.9.9.9:1", "localhost", "[::1]:80", ":80"}) {
    EXPECT_TRUE(is_loopback(parse_listen_address(own).value())) << own;
  }
  for (const char* none : {"example.com:80", "*:80", "127.0.0.1.1"}) {
    EXPECT_FALSE(parse_listen_address(none)) << none;
  }
}

TEST(ListenAddress, IsRejectedIfInvalid) {
  for (const char* wrong :
       {"127.0.0.1:", "127.0.0.1:x", "127.0.0.1:65536", "127.0.0.1:-1", "[::1:80", "[::1]80"}) {
    EXPECT_FALSE(parse_listen_address(wrong)) << wrong;
  }
}

TEST(ListenAddress, IsWrittenAsInAUrl) {
  EXPECT_EQ(to_string(listen_address{"127.0.0.1", 80}), "127.0.0.1:80");
  EXPECT_EQ(to_string(listen_address{"::1", 80}), "[::1]:80");
}

TEST(ServerOptions, AreValidByDefault) {
  EXPECT_TRUE(validate(server_options{}));
}

TEST(ServerOptions, AreRejectedIfInvalidWithTheAllowedValues) {
  const auto complaint = [](auto change) {
    server_options o;
    change(o);
    const auto valid = validate(o);
    return valid ? "" : valid.error().message;
  };
  using o = server_options;
  const auto every = [](sync_mode sync, milliseconds interval) {
    return [=](o& x) {
      x.sync = sync;
      x.sync_interval = interval;
    };
  };
  EXPECT_EQ(complaint(every(sync_mode::interval, milliseconds(0))),
            "--sync-interval must be from 1ms to 1h");
  EXPECT_EQ(complaint(every(sync_mode::interval, milliseconds(3'600'001))),
            "--sync-interval must be from 1ms to 1h");
  EXPECT_EQ(complaint(every(sync_mode::interval, milliseconds(1))), "");
  EXPECT_EQ(complaint(every(sync_mode::full, milliseconds(0))), "") << "it is not used";
  EXPECT_EQ(complaint([](o& x) { x.http.body_bytes_max = 0; }),
            "--max-body must be from 1KB to 1GB");
  EXPECT_EQ(complaint([](o& x) { x.http.body_bytes_max = (std::size_t{1} << 30) + 1; }),
            "--max-body must be from 1KB to 1GB");
  EXPECT_EQ(complaint([](o& x) { x.http.connections_max = 0; }),
            "--max-connections must be from 1 to 1000000");
  EXPECT_EQ(complaint([](o& x) { x.engine.window_bytes_max = 0; }),
            "--window must be from 64KB to 1TB");
  EXPECT_EQ(complaint([](o& x) { x.engine.queues_max = 0; }),
            "--max-queues must be from 1 to 10000000");
  EXPECT_EQ(complaint([](o& x) { x.engine.running_max = 0; }),
            "--max-leases must be from 1 to 10000000");
  EXPECT_EQ(complaint([](o& x) { x.engine.waiting_max = 10'000'001; }),
            "--max-waiting must be from 1 to 10000000");
  EXPECT_EQ(complaint([](o& x) { x.shutdown_grace = milliseconds(86'400'001); }),
            "--shutdown-grace must be from 0s to 1d");
  EXPECT_EQ(complaint([](o& x) { x.beanstalk.tls = true; }),
            "beanstalk.tls needs a certificate: set tls.cert and tls.key (--tls-cert, --tls-key)");
  EXPECT_EQ(complaint([](o& x) {
              x.beanstalk.tls = true;
              x.tls = {"a.pem", "a.key"};
            }),
            "");
}

}  // namespace
}  // namespace sluice::jobs::server_options_test
