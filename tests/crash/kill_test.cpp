// The real program under load, killed at random moments and started again on the same data: nothing
// that it had acknowledged is lost, nothing is invented. kill_cycle.hpp has the settings.

#include <gtest/gtest.h>
#include <signal.h>

#include "sluice/base/testing/eventually.hpp"
#include "tests/crash/kill_cycle.hpp"

namespace sluice::crash {
namespace {

using namespace std::chrono_literals;

void expect_calls_of_every_kind(const verdict& found) {
  EXPECT_GT(found.called_off, 0U);
  EXPECT_GT(found.expired, 0U);
}

TEST(kill_test, NothingAcknowledgedIsLost) {
  expect_calls_of_every_kind(end_again_and_again({}));
}

// It may have had no lease to wait for, and be done before the second signal: code 0.
TEST(kill_test, NothingAcknowledgedIsLostWhenASecondSignalEndsItAtOnce) {
  expect_calls_of_every_kind(end_again_and_again(
      {.kills = 5,
       .how =
           [](server_program& server, random&) {
             const auto& it = server.itself();
             it.signal(SIGTERM);
             sluice::testing::eventually(
                 [&] {
                   return it.has_ended() || it.err().find("shutting down") != std::string::npos;
                 },
                 "the first signal to be heard");
             it.signal(SIGTERM);
           },
       .codes = {0, 128 + SIGTERM}}));
}

TEST(kill_test, NothingAcknowledgedIsLostWhenItIsKilledWhileItShutsDown) {
  expect_calls_of_every_kind(end_again_and_again({.kills = 5,
                                                  .how =
                                                      [](server_program& server, random& chance) {
                                                        server.itself().signal(SIGTERM);
                                                        pass(below(chance, 50ms));
                                                        server.itself().signal(SIGKILL);
                                                      },
                                                  .codes = {0, 128 + SIGKILL}}));
}

}  // namespace
}  // namespace sluice::crash
