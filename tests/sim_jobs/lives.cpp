#include "tests/sim_jobs/lives.hpp"

#include <optional>
#include <utility>

#include "sluice/base/atomic.hpp"
#include "sluice/base/seam.hpp"

namespace sluice::sim_jobs {

void lives::counts::add(const counts& more) {
  lives += more.lives;
  orderly += more.orderly;
  failed_openings += more.failed_openings;
}

disk_habits lives::habits() {
  const auto some = [&](std::uint32_t often) { return chance_.below(2) == 0 ? 0 : often; };
  return {.fails = some(8 + chance_.below(20)),
          .reads_fail = some(10 + chance_.below(20)),
          .slow = some(5 + chance_.below(20)),
          .full = some(15 + chance_.below(30))};
}

jobs::result<std::unique_ptr<jobs::engine>> lives::open() {
  ++counts_.lives;
  jobs::engine_options o;
  o.seed = 1 + chance_.next() % 1'000'000;
  o.probe_every = milliseconds(1 + chance_.below(8));
  // In some lives little is kept in memory, so that the windows are read repeatedly.
  if (chance_.below(2) == 0) o.window_jobs_max = 4 + chance_.below(12);
  return jobs::engine::open(disk_.open(), o);
}

void lives::live(const busy& with) {
  const bool is_orderly = chance_.below(5) == 0;
  disk_.cut_after(is_orderly ? 1'000'000 : 1 + chance_.below(60));
  log_.add("a server begins");
  auto opened = open();
  for (; !opened && !disk_.is_off(); opened = open()) ++counts_.failed_openings;
  if (!opened) {
    ++counts_.failed_openings;
  } else {
    atomic<bool> stops{false};
    std::optional<seam::thread> stopper;
    if (is_orderly) {
      ++counts_.orderly;
      stopper.emplace([&, after = milliseconds(5 + chance_.below(150))] {
        pass(after);
        stops = true;
        (*opened)->stop();
      });
    }
    with(**opened, [&] { return stops.load() || disk_.is_off(); });
    stopper.reset();
    opened->reset();
  }
  log_.add("the server has ended");
  disk_.power_on();
  if (chance_.below(3) == 0) pass(milliseconds(chance_.below(4000)));
}

std::unique_ptr<jobs::engine> lives::last() {
  disk_.set_habits({});
  log_.add("the last server begins");
  auto opened = open();
  return opened ? *std::move(opened) : nullptr;
}

}  // namespace sluice::sim_jobs
