#pragma once

// Runs a blocking call until inspect lists its wait with the expected type and name.

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
  // Runs `call` on a new thread until a wait for `object` is listed, and stops it.
  static void lists(const std::string& object, const std::function<void(std::stop_token)>& call) {
    SCOPED_TRACE(object);
    std::stop_source stop;
    std::jthread waits([&] { call(stop.get_token()); });
    const auto is_for_object = [&](const inspect::wait_info& w) {
      return std::ranges::any_of(w.on, [&](const auto& o) { return o.text().starts_with(object); });
    };
    std::vector<inspect::wait_info> all;
    eventually([&] { return std::ranges::any_of(all = inspect::waits(), is_for_object); },
               object.c_str());
    for (const auto& w : all) {
      for (const auto& o : w.on) EXPECT_NE(o.type, "something") << inspect::to_text(all);
    }
    stop.request_stop();
  }
  // The same for a coroutine: `start` returns the awaitable, given a stop token.
  template <class Start>
  static void lists_awaited(const std::string& object, Start start) {
    lists(object, [&](const std::stop_token& stop) {
      const auto body = [&]() -> task<> { (void)co_await start(stop); };
      sync_wait(body());
    });
  }
};

}  // namespace sluice::testing
