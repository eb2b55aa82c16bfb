#pragma once

// Work for the scenarios of executors: work that counts its runs, and work that sets an event.

#include "sluice/base/atomic.hpp"
#include "sluice/base/work.hpp"
#include "sluice/sync/event.hpp"

namespace sluice::sim {

class counted_work final : public work {
 public:
  void run() noexcept override { runs.fetch_add(1, relaxed); }
  atomic<int> runs{0};
};

class setting_work final : public work {
 public:
  void run() noexcept override { done.set(); }
  event done;
};

}  // namespace sluice::sim
