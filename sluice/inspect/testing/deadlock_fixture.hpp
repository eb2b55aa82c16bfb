#pragma once

// A fixture that creates deadlocks, finds them, and ends them.

#include <gtest/gtest.h>

#include <set>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "sluice/base/this_thread.hpp"
#include "sluice/inspect/deadlock.hpp"
#include "sluice/inspect/testing/looking.hpp"
#include "sluice/sync/barrier.hpp"

namespace sluice::testing {

// Threads that deadlock in waits with a stop_token, so that the test can end them.
class deadlock_fixture : public ::testing::Test {
 protected:
  // Ends the parties. Declared after the objects that they use.
  struct ending {
    deadlock_fixture& of;
    ~ending() {
      of.stop_.request_stop();
      of.threads_.clear();
    }
  };

  std::stop_token token() const { return stop_.get_token(); }
  template <class F>
  void party(const char* name, F f) {
    threads_.emplace_back([name, f] {
      seam::name_thread(name);
      f();
    });
  }
  // Waits for the lock until stopped. A stopped party may still acquire it: another one released
  // it.
  template <class Lock>
  void want(Lock& l) const {
    if constexpr (requires { l.acquire(token()); }) {
      if (l.acquire(token())) l.release();
    } else {
      if (l.lock(token())) l.unlock();
    }
  }
  inspect::deadlock the_deadlock() const {
    std::vector<inspect::deadlock> found;
    eventually([&] { return (found = inspect::find_deadlocks()).size() == 1; }, "one deadlock");
    return found.front();
  }
  static std::set<std::string> parties(const inspect::deadlock& d) {
    std::set<std::string> names;
    for (const auto& s : d.steps) names.insert(s.wait.party.name);
    return names;
  }
  static std::set<std::string> objects(const inspect::deadlock& d) {
    std::set<std::string> names;
    for (const auto& s : d.steps) names.insert(s.object.text());
    return names;
  }
  using names = std::set<std::string>;

  const inspect::enabled on_{{.lock_order = false}};
  std::stop_source stop_;
  barrier both_{2};
  std::vector<std::jthread> threads_;
};

}  // namespace sluice::testing
