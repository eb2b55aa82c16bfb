// Waiting for signals.
#include "jobs/server/signal_watch.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <thread>

namespace sluice::jobs::signal_watch_test {
namespace {

using namespace std::chrono_literals;
using by = signal_watch::woken::by;

bool is_blocked(int number) {
  sigset_t now;
  ::pthread_sigmask(SIG_BLOCK, nullptr, &now);
  return ::sigismember(&now, number) == 1;
}

TEST(SignalWatch, ReturnsTheNumberOfASignal) {
  signal_watch signals({SIGUSR1, SIGUSR2});
  ::kill(::getpid(), SIGUSR2);
  const auto woken = signals.wait();
  EXPECT_EQ(woken.cause, by::signal);
  EXPECT_EQ(woken.number, SIGUSR2);
}

TEST(SignalWatch, WakesAWaitingThread) {
  signal_watch signals({SIGUSR1});
  std::jthread sender([] { ::kill(::getpid(), SIGUSR1); });
  EXPECT_EQ(signals.wait(deadline::after(1min)).number, SIGUSR1);
}

TEST(SignalWatch, ReturnsTwoSignalsOneAfterTheOther) {
  signal_watch signals({SIGUSR1, SIGUSR2});
  ::kill(::getpid(), SIGUSR1);
  ::kill(::getpid(), SIGUSR2);
  const int first = signals.wait().number;
  const int second = signals.wait().number;
  EXPECT_EQ(first + second, SIGUSR1 + SIGUSR2);
  EXPECT_EQ(signals.wait(deadline::after(0ms)).cause, by::deadline);
}

TEST(SignalWatch, EndsAWaitAtItsDeadline) {
  signal_watch signals({SIGUSR1});
  const auto began = std::chrono::steady_clock::now();
  EXPECT_EQ(signals.wait(deadline::after(20ms)).cause, by::deadline);
  EXPECT_GE(std::chrono::steady_clock::now() - began, 20ms);
}

TEST(SignalWatch, IsInterruptedBeforeOrDuringAWait) {
  signal_watch signals({SIGUSR1});
  signals.interrupt();
  EXPECT_EQ(signals.wait(deadline::after(1min)).cause, by::interrupt);
  std::jthread other([&] { signals.interrupt(); });
  EXPECT_EQ(signals.wait(deadline::after(1min)).cause, by::interrupt);
}

TEST(SignalWatch, RestoresTheMask) {
  ASSERT_FALSE(is_blocked(SIGUSR1));
  {
    signal_watch signals({SIGUSR1});
    EXPECT_TRUE(is_blocked(SIGUSR1));
  }
  EXPECT_FALSE(is_blocked(SIGUSR1));
}

}  // namespace
}  // namespace sluice::jobs::signal_watch_test
