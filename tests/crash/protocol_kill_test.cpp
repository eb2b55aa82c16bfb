// As kill_test, with clients that speak the protocols of beanstalkd and of Faktory: a put or a push
// that was acknowledged is handed out at least once, and not after its delete or its ACK was. There
// are leases that run out and, for Faktory, unique jobs and batches. At the end, what is left of
// Faktory's is taken over HTTP: they are the same jobs.

#include <gtest/gtest.h>

#include "tests/crash/kill_cycle.hpp"
#include "tests/crash/wire_clients.hpp"

namespace sluice::crash::protocol_kill_test {
namespace {

// Neither has results, and beanstalk's no unique keys.
constexpr load what_they_can{.pushers = 4, .workers = 4, .keys = 0, .result_percent = 0};

TEST(protocol_kill_test, NothingThatBeanstalkAcknowledgedIsLost) {
  open_connections open;
  kill_plan plan;
  plan.words = {"--beanstalk", ":0"};
  plan.busy = what_they_can;
  plan.long_life = std::chrono::milliseconds(1300);  // a second is the shortest that runs out
  plan.connect = [&](const server_program& server) {
    return std::make_unique<beanstalk_client>(server.port_for("beanstalk"), port_of(server.url()),
                                              open);
  };
  plan.connect_last = plan.connect;
  plan.after_life = [&] { open.close(); };
  plan.has_shown = [](const verdict& v) {
    return v.called_off > 0 && v.failed > 0 && v.retried > 0 && v.expired > 0;
  };
  end_again_and_again(plan);
}

TEST(protocol_kill_test, NothingThatFaktoryAcknowledgedIsLost) {
  open_connections open;
  kill_plan plan;
  plan.words = {"--faktory", ":0"};
  plan.busy = what_they_can;
  plan.busy.buried_percent = 0;
  plan.busy.called_off_percent = 0;
  plan.busy.keys = 200;
  plan.busy.elapsing_keys = false;
  plan.busy.batch_percent = 5;
  plan.connect = [&](const server_program& server) {
    return std::make_unique<faktory_client>(server.port_for("faktory"), port_of(server.url()),
                                            open);
  };
  plan.connect_last = [&](const server_program& server) {
    faktory_client hurry(server.port_for("faktory"), port_of(server.url()), open);
    EXPECT_TRUE(hurry.requeue_retries());
    auto over_http = std::make_unique<http_client>(port_of(server.url()), faktory_contents);
    EXPECT_TRUE(over_http->close_batches());
    return over_http;
  };
  plan.after_life = [&] { open.close(); };
  plan.has_shown = [](const verdict& v) {
    return v.failed > 0 && v.expired > 0 && v.duplicates > 0 && v.called > 0;
  };
  end_again_and_again(plan);
}

}  // namespace
}  // namespace sluice::crash::protocol_kill_test
