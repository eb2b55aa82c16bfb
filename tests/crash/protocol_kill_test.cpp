// Like kill_test, over the protocols of beanstalkd and Faktory: a job with an acknowledged put or
// push is delivered at least once, and not after its delete or ACK was acknowledged. Leases expire,
// and Faktory has unique jobs and batches. The remaining Faktory jobs are drained over HTTP.

#include <gtest/gtest.h>

#include "tests/crash/kill_cycle.hpp"
#include "tests/crash/wire_clients.hpp"

namespace sluice::crash::protocol_kill_test {
namespace {

// Neither protocol has results, and beanstalk has no unique keys.
constexpr load common_load{.pushers = 4, .workers = 4, .keys = 0, .result_percent = 0};

TEST(protocol_kill_test, NothingThatBeanstalkAcknowledgedIsLost) {
  open_connections open;
  kill_plan plan;
  plan.arguments = {"--beanstalk", ":0"};
  plan.busy = common_load;
  plan.long_life = std::chrono::milliseconds(1300);  // the shortest TTR is one second
  plan.connect = [&](const server_program& server) {
    return std::make_unique<beanstalk_client>(server.port_for("beanstalk"), port_of(server.url()),
                                              open);
  };
  plan.connect_last = plan.connect;
  plan.after_life = [&] { open.close(); };
  plan.has_shown = [](const verdict& v) {
    return v.called_off > 0 && v.failed > 0 && v.retried > 0 && v.expired > 0;
  };
  end_repeatedly(plan);
}

TEST(protocol_kill_test, NothingThatFaktoryAcknowledgedIsLost) {
  open_connections open;
  kill_plan plan;
  plan.arguments = {"--faktory", ":0"};
  plan.busy = common_load;
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
  end_repeatedly(plan);
}

}  // namespace
}  // namespace sluice::crash::protocol_kill_test
