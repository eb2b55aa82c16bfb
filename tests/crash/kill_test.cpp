// The real program under load, killed at random moments and started again on the same data: nothing
// that it had acknowledged is lost, nothing is invented. kill_cycle.hpp has the counts.

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
  end_again_and_again(with_calls_of_every_kind());
}

// It may have had no lease to wait for, and be done before the second signal: code 0.
TEST(kill_test, NothingAcknowledgedIsLostWhenASecondSignalEndsItAtOnce) {
  kill_plan plan = with_calls_of_every_kind();
  plan.kills = {.ci = 5, .full = 50};
  plan.how = [](server_program& server, random&) {
    const auto& it = server.itself();
    it.signal(SIGTERM);
    sluice::testing::eventually(
        [&] { return it.has_ended() || it.err().find("shutting down") != std::string::npos; },
        "the first signal to be heard");
    it.signal(SIGTERM);
  };
  plan.codes = {0, 128 + SIGTERM};
  end_again_and_again(plan);
}

TEST(kill_test, NothingAcknowledgedIsLostWhenItIsKilledWhileItShutsDown) {
  kill_plan plan = with_calls_of_every_kind();
  plan.kills = {.ci = 5, .full = 50};
  plan.how = [](server_program& server, random& chance) {
    server.itself().signal(SIGTERM);
    pass(below(chance, 50ms));
    server.itself().signal(SIGKILL);
  };
  plan.codes = {0, 128 + SIGKILL};
  end_again_and_again(plan);
}

}  // namespace
}  // namespace sluice::crash::kill_test
