#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "jobs/worker/testing/fake_source.hpp"
#include "jobs/worker/worker.hpp"
#include "sluice/base/testing/eventually.hpp"

namespace sluice::jobs::testing {

// A worker on a fake source with a manual clock. `w` is created at first use, so that a test can
// set options before.
class worker_test : public ::testing::Test {
 protected:
  // Destroys the worker before the members of the test, which its handlers use.
  void TearDown() override { worker_.reset(); }

  worker& w() {
    if (!worker_) {
      options_.time = &time_;
      options_.name = "w1";
      options_.seed = 1;
      options_.on_event = [this](const worker_event& e) { events_.lock()->push_back(e); };
      worker_.emplace(source_, options_);
    }
    return *worker_;
  }
  void wait_until_ended(job_id id) {
    sluice::testing::eventually([&] { return !source_.ended(id).empty(); },
                                "the end of the job to be reported");
  }
  // Waits until the coordinator and its lease call, if any, are waiting for the clock.
  void wait_until_quiet(std::size_t timers) {
    sluice::testing::eventually([&] { return time_.timers().pending() >= timers; },
                                "the worker to wait for time");
  }
  std::size_t count(worker_event::event_kind kind) const {
    const auto held = events_.lock();
    return static_cast<std::size_t>(
        std::ranges::count_if(*held, [&](const auto& e) { return e.kind == kind; }));
  }
  std::string message_of(worker_event::event_kind kind) const {
    const auto held = events_.lock();
    for (const auto& e : *held) {
      if (e.kind == kind) return e.message;
    }
    return {};
  }
  manual_time time_;
  fake_source source_{time_};
  worker_options options_;
  guarded<std::vector<worker_event>> events_;
  std::optional<worker> worker_;
};

}  // namespace sluice::jobs::testing
