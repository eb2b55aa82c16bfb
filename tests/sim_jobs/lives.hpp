#pragma once

// A simulated server that ends repeatedly and is reopened on the contents of its disk. It ends by a
// crash (a power cut at one of the calls of the disk) or, one time in five, orderly.

#include <cstdint>
#include <functional>
#include <memory>

#include "jobs/engine/engine.hpp"
#include "sluice/base/random.hpp"
#include "tests/sim_jobs/disk.hpp"
#include "tests/sim_jobs/event_log.hpp"

namespace sluice::sim_jobs {

class lives {
 public:
  struct counts {
    std::uint64_t lives = 0;
    std::uint64_t orderly = 0;  // ends without a crash
    std::uint64_t failed_openings = 0;

    void add(const counts& more);
  };
  using is_gone = std::function<bool()>;
  // Uses the server, and returns when all clients have noticed its end.
  using busy = std::function<void(jobs::engine& server, const is_gone& gone)>;

  // The seed determines the failures of its disk.
  lives(std::uint64_t seed, event_log& log)
      : chance_(seed), disk_(seed + 1, habits(), log), log_(log) {}

  void live(const busy& with);
  // Opens the last server, on a disk without failures. Returns null if it did not open.
  std::unique_ptr<jobs::engine> last();

  random& chance() noexcept { return chance_; }
  sim_jobs::disk& disk() noexcept { return disk_; }
  const counts& so_far() const noexcept { return counts_; }

 private:
  disk_habits habits();
  jobs::result<std::unique_ptr<jobs::engine>> open();

  random chance_;
  sim_jobs::disk disk_;
  event_log& log_;
  counts counts_;
};

}  // namespace sluice::sim_jobs
