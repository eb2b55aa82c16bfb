#include "tests/crash/power_cycle.hpp"

#include <algorithm>
#include <chrono>
#include <stop_token>
#include <string>
#include <utility>

#include "sluice/base/seam.hpp"
#include "sluice/base/testing/test_name.hpp"
#include "sluice/sync/guarded.hpp"
#include "tests/crash/engine_client.hpp"
#include "tests/crash/load.hpp"

namespace sluice::crash {
namespace {

constexpr std::chrono::seconds life_max{30};  // of a server: a cut comes within a second or two

}  // namespace

jobs::result<std::unique_ptr<jobs::engine>> open_engine(const faulty_disk& on,
                                                        const power_cycle& how) {
  jobs::sqlite_options file;
  file.path = "jobs.db";
  file.sync = how.sync;
  file.vfs = on.vfs();
  file.on_notice = how.on_notice;
  file.checkpoint_pages = 50;  // so that cuts fall into many checkpoints
  auto opened = jobs::open_sqlite(std::move(file));
  if (!opened) return opened.error();
  jobs::engine_options o;
  o.seed = how.seed;
  o.flush_every = how.flush_every;
  o.probe_every = milliseconds(2);
  return jobs::engine::open(std::move(*opened), o);
}

power_cycle_result run(const power_cycle& wanted) {
  power_cycle_result all;
  power_cycle how = wanted;
  how.on_notice = [&all](const jobs::store_notice& n) {
    n.is_damage ? void(all.damage += n.text + "; ") : void(++all.incomplete_commits);
  };
  ledger book;
  guarded<random> chance(std::in_place, how.seed);
  const auto below = [&](std::uint32_t bound) {
    return chance.with([&](random& r) { return r.below(bound); });
  };
  const auto next = [&] { return chance.with([](random& r) { return r.next(); }); };
  auto disk = std::make_unique<faulty_disk>(faulty_disk::options{.seed = how.seed});
  for (int i = 0; i < how.cuts; ++i) {
    disk->power_off_after(1 + below(how.events_max));
    auto engine = open_engine(*disk, how);
    if (!engine && !disk->is_off()) {
      all.broken = engine.error().message;
      return all;
    }
    if (!engine) {
      ++all.failed_openings;
    } else {
      push_hooks hooks;
      if (how.trouble) {
        hooks.before = [&] { chance.with([&](random& r) { how.trouble(*disk, r); }); };
      }
      if (how.answered) {
        hooks.after = [&](const auto& specs, const auto& said) {
          how.answered(*disk, specs, said);
        };
      }
      // One that refuses everything without asking the disk would never come to the cut.
      const auto give_up = seam::now() + life_max;
      const auto is_over = [&] { return disk->is_off() || seam::now() > give_up; };
      const auto connect_to = [&] {
        auto mine = std::make_unique<engine_client>(**engine, is_over);
        return std::make_unique<hooked_client>(std::move(mine), hooks);
      };
      const load busy{.pushers = 2,
                      .workers = 2,
                      .seed = next(),
                      .lease_wait = milliseconds(3),
                      .short_lease = milliseconds(1)};
      keep_busy(book, connect_to, busy, {});
      if (!disk->is_off()) {
        all.broken = "the power was not cut within half a minute, so hardly anything is written; " +
                     (*engine)->health().reason;
        return all;
      }
      engine->reset();
    }
    all.faults += disk->faults();
    all.syncs += disk->syncs();
    book.crashed();
    if (how.before_cut) how.before_cut(*disk);
    disk = disk->power_cut(next());
  }
  const auto engine = open_engine(*disk, how);
  if (!engine) {
    all.broken = engine.error().message;
    return all;
  }
  engine_client last(**engine, [] { return false; });
  if (!drain(book, last)) all.broken = "it could not be drained";
  all.found = book.judge();
  return all;
}

power_cycle_result run_many(const sluice::testing::effort_counts& times, power_cycle how) {
  const std::string name = sluice::testing::test_name();
  const std::string units = "stores with " + std::to_string(how.cuts) + " power cuts each";
  const std::uint64_t count = sluice::testing::effort(name, units.c_str(), times);
  how.seed = sluice::testing::seed(name, how.seed);
  power_cycle_result all;
  for (std::uint64_t i = 0; i < count; ++i, ++how.seed) {
    auto one = run(how);
    all.found.add(one.found);
    all.faults += one.faults;
    all.syncs += one.syncs;
    all.failed_openings += one.failed_openings;
    all.incomplete_commits += one.incomplete_commits;
    all.damage += one.damage;
    if (!one.broken.empty() || !one.found.ok()) {
      all.broken += one.broken.empty() ? "" : one.broken + "; ";
      all.found.findings.push_back("^ with SLUICE_SEED=" + std::to_string(how.seed));
    }
  }
  return all;
}

}  // namespace sluice::crash
