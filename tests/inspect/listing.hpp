#pragma once

// How tests call something that waits, until inspect lists that wait with the type and the name of
// what it is for.

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "sluice/future/sync_wait.hpp"
#include "sluice/future/task.hpp"
#include "sluice/inspect/format.hpp"
#include "tests/inspect/acting.hpp"

namespace sluice::testing {

class listing_fixture : public acting_fixture {
 protected:
  // Calls it on a thread of its own, until a wait for this is listed, and stops it.
  static void lists(const std::string& what, const std::function<void(std::stop_token)>& call) {
    SCOPED_TRACE(what);
    std::stop_source stop;
    std::jthread waits([&] { call(stop.get_token()); });
    const auto is_it = [&](const inspect::wait_info& w) {
      return std::ranges::any_of(w.on, [&](const auto& o) { return o.text().starts_with(what); });
    };
    std::vector<inspect::wait_info> all;
    eventually([&] { return std::ranges::any_of(all = inspect::waits(), is_it); }, what.c_str());
    for (const auto& w : all) {
      for (const auto& o : w.on) EXPECT_NE(o.type, "something") << inspect::to_text(all);
    }
    stop.request_stop();
  }
  // The same for what a coroutine awaits: `start` makes that, with a token.
  template <class Start>
  static void lists_awaited(const std::string& what, Start start) {
    lists(what, [&](const std::stop_token& stop) {
      const auto body = [&]() -> task<> { (void)co_await start(stop); };
      sync_wait(body());
    });
  }
};

}  // namespace sluice::testing
