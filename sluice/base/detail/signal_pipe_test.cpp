#include "sluice/base/detail/signal_pipe.hpp"

#include <gtest/gtest.h>
#include <signal.h>

#include <thread>

namespace sluice::signal_pipe_test {
namespace {

TEST(SignalPipe, WakesTheWaiterOnTheSignal) {
  seam::signal_pipe usr2(SIGUSR2);
  ::raise(SIGUSR2);
  EXPECT_TRUE(usr2.wait());
  std::jthread sender([] { ::raise(SIGUSR2); });
  EXPECT_TRUE(usr2.wait());
}

TEST(SignalPipe, EndsItsWaitsWhenClosed) {
  seam::signal_pipe usr2(SIGUSR2);
  std::jthread first([&] { EXPECT_FALSE(usr2.wait()); });
  std::jthread second([&] { EXPECT_FALSE(usr2.wait()); });
  usr2.close();
}

TEST(SignalPipe, RestoresThePreviousHandler) {
  ::signal(SIGUSR2, SIG_IGN);
  { seam::signal_pipe usr2(SIGUSR2); }
  ::raise(SIGUSR2);  // would end the process
  EXPECT_EQ(::signal(SIGUSR2, SIG_DFL), SIG_IGN);
}

TEST(SignalPipeDeathTest, IsOneAtATime) {
  const seam::signal_pipe one(SIGUSR2);
  EXPECT_DEATH({ const seam::signal_pipe two(SIGUSR1); }, "one at a time");
}

}  // namespace
}  // namespace sluice::signal_pipe_test
