// Deadlock by lock order
//
// Two transfers in opposite directions. Each locks the account that it debits, then the account
// that it credits. If both hold their first lock, each waits for the lock that the other one holds.

#include <mutex>
#include <thread>

#include "examples/races/race.hpp"
#include "sluice/sync/guarded.hpp"
#include "sluice/sync/lock_all.hpp"

namespace {

struct account {
  std::mutex mutex;
  int balance = 100;  // guarded by mutex
};

void transfer(account& payer, account& payee, int amount) {
  const std::lock_guard first(payer.mutex);
  const std::lock_guard second(payee.mutex);
  payer.balance -= amount;
  payee.balance += amount;
}

void naive() {
  account a;
  account b;
  std::jthread other([&] { transfer(b, a, 10); });
  transfer(a, b, 20);
}

void transfer(sluice::guarded<int>& payer, sluice::guarded<int>& payee, int amount) {
  auto [source, target] = sluice::lock_all(payer, payee);
  *source -= amount;
  *target += amount;
}

void ruled_out() {
  sluice::guarded<int> a(100);
  sluice::guarded<int> b(100);
  std::jthread other([&] { transfer(b, a, 10); });
  transfer(a, b, 20);
}

[[maybe_unused]] const bool added = add({.order = 7,
                                         .file = "lock_order.cpp",
                                         .naive = &naive,
                                         .shows_as = sluice::sim::failure_kind::deadlock,
                                         .within = 1'000,
                                         .ruled_out = &ruled_out,
                                         .by = "lock_all"});

}  // namespace
