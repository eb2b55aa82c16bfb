// Check, then act
//
// An account must not be overdrawn, so its balance is checked before money is taken. Both calls
// take the lock. Between them it is free, and the result of the check may be outdated.

#include <mutex>
#include <thread>

#include "examples/races/race.hpp"
#include "sluice/base/race_checked.hpp"
#include "sluice/sync/guarded.hpp"

namespace {

class account {
 public:
  int balance() {
    const std::lock_guard hold(mutex_);
    return balance_.read();
  }
  void take(int amount) {
    const std::lock_guard hold(mutex_);
    balance_.write(balance_.read() - amount);
  }

 private:
  std::mutex mutex_;
  sluice::race_checked<int> balance_{100};  // guarded by mutex_
};

void naive() {
  account a;
  const auto pay = [&] {
    if (a.balance() >= 70) a.take(70);
  };
  {
    std::jthread one(pay);
    std::jthread two(pay);
  }
  sluice::sim::check(a.balance() >= 0, "an account that is not overdrawn");
}

void ruled_out() {
  sluice::guarded<int> balance(100);
  const auto pay = [&] {
    balance.with([](int& now) {
      if (now >= 70) now -= 70;
    });
  };
  {
    std::jthread one(pay);
    std::jthread two(pay);
  }
  sluice::sim::check(balance.with([](int now) { return now; }) >= 0,
                     "an account that is not overdrawn");
}

[[maybe_unused]] const bool added = add({.order = 2,
                                         .file = "check_then_act.cpp",
                                         .naive = &naive,
                                         .shows_as = sluice::sim::failure_kind::check,
                                         .within = 1'000,
                                         .ruled_out = &ruled_out,
                                         .by = "guarded"});

}  // namespace
