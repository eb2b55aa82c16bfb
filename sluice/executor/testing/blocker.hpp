#pragma once

// A function that blocks a thread of a pool until the test releases it, at the latest in the
// destructor. Functions that have not returned by then share the state.

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
  ~blocker() { release(); }

  auto function() {
    return [state = state_] {
      ++state->inside;
      state->go.wait();
    };
  }
  void until_inside(int count) {
    eventually([&] { return state_->inside == count; }, "that number of threads to be blocked");
  }
  int inside() const { return state_->inside; }
  void release() { state_->go.set(); }

 private:
  struct state {
    std::atomic<int> inside{0};
    event go;
  };
  std::shared_ptr<state> state_ = std::make_shared<state>();
};

}  // namespace sluice::testing
