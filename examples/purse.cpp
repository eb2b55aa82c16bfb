// A test that explores: GoogleTest, linked to sluice::sim. See docs/guides/sim.md.

#include <gtest/gtest.h>

#include <thread>

#include "sluice/sim/gtest.hpp"
#include "sluice/sync/guarded.hpp"

namespace {

class purse {
 public:
  explicit purse(int coins) : coins_(coins) {}

  bool pay(int price) {
    return coins_.with([price](int& left) {
      if (left < price) return false;
      left -= price;
      return true;
    });
  }
  int left() {
    return coins_.with([](int now) { return now; });
  }

 private:
  sluice::guarded<int> coins_;
};

SLUICE_EXPLORE(Purse, IsNeverOverdrawn, .schedules = 5'000) {
  purse p(100);
  {
    std::jthread one([&] { p.pay(70); });
    std::jthread two([&] { p.pay(70); });
  }
  EXPECT_GE(p.left(), 0);
}

}  // namespace
