#pragma once

// A simulated server that ends again and again, and is opened anew on what its disk has: by a crash
// (the power goes at one of the calls of the disk) or, one time in five, as it should.

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
    std::uint64_t orderly = 0;  // ends that were no crashes
    std::uint64_t failed_openings = 0;

    void add(const counts& more);
  };
  using is_gone = std::function<bool()>;
  // Keeps the server busy, and returns when everybody has found it gone.
  using busy = std::function<void(jobs::engine& server, const is_gone& gone)>;

  // How often its disk fails, in which way, follows from the seed.
  lives(std::uint64_t seed, event_log& log)
      : chance_(seed), disk_(seed + 1, habits(), log), log_(log) {}

  void live(const busy& with);
  // One that does not end, on a disk that works; null: it did not open.
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
