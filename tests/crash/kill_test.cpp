// The real program under load, killed at random times and restarted on the same data: no
// acknowledged job is lost, and none is invented. kill_cycle.hpp has the counts.

#include <gtest/gtest.h>
#include <signal.h>

#include "sluice/base/testing/eventually.hpp"
#include "tests/crash/kill_cycle.hpp"

namespace sluice::crash::kill_test {
namespace {

using namespace std::chrono_literals;

kill_plan with_calls_of_every_kind() {
  kill_plan plan;
  plan.has_shown = [](const verdict& v) { return v.called_off > 0 && v.expired > 0; };
  return plan;
}

TEST(kill_test, NothingAcknowledgedIsLost) {
  end_repeatedly(with_calls_of_every_kind());
}

// A server without open leases may have ended before the second signal: exit code 0.
TEST(kill_test, NothingAcknowledgedIsLostWhenASecondSignalEndsItAtOnce) {
  kill_plan plan = with_calls_of_every_kind();
  plan.kills = {.ci = 5, .full = 50};
  plan.end_server = [](server_program& server, random&) {
    const auto& program = server.itself();
    program.signal(SIGTERM);
    const auto has_begun_to_stop = [&] {
      return program.has_ended() || program.err().find("shutting down") != std::string::npos;
    };
    sluice::testing::eventually(has_begun_to_stop, "the first signal to be handled");
    program.signal(SIGTERM);
  };
  plan.codes = {0, 128 + SIGTERM};
  end_repeatedly(plan);
}

TEST(kill_test, NothingAcknowledgedIsLostWhenItIsKilledWhileItShutsDown) {
  kill_plan plan = with_calls_of_every_kind();
  plan.kills = {.ci = 5, .full = 50};
  plan.end_server = [](server_program& server, random& chance) {
    server.itself().signal(SIGTERM);
    pass(below(chance, 50ms));
    server.itself().signal(SIGKILL);
  };
  plan.codes = {0, 128 + SIGKILL};
  end_repeatedly(plan);
}

}  // namespace
}  // namespace sluice::crash::kill_test
