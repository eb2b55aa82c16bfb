#pragma once

// A function that holds a thread of a pool until the test lets it go, at the latest at its end.
// Functions that have not ended by then keep what they need.

#include <atomic>
#include <memory>

#include "sluice/base/testing/eventually.hpp"
#include "sluice/sync/event.hpp"

namespace sluice::testing {

class blocker {
 public:
  blocker() = default;
  blocker(const blocker&) = delete;
  blocker& operator=(const blocker&) = delete;
  ~blocker() { let_go(); }

  auto function() {
    return [state = state_] {
      ++state->inside;
      state->go.wait();
    };
  }
  void until_inside(int count) {
    eventually([&] { return state_->inside == count; }, "so many threads to be held");
  }
  int inside() const { return state_->inside; }
  void let_go() { state_->go.set(); }

 private:
  struct state {
    std::atomic<int> inside{0};
    event go;
  };
  std::shared_ptr<state> state_ = std::make_shared<state>();
};

}  // namespace sluice::testing
