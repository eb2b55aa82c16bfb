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

constexpr std::chrono::seconds life_max{30};  // a cut usually follows within a second or two

}  // namespace

jobs::result<std::unique_ptr<jobs::engine>> open_engine(const faulty_disk& disk,
                                                        const power_cycle& plan) {
  jobs::sqlite_options file;
  file.path = "jobs.db";
  file.sync = plan.sync;
  file.vfs = disk.vfs();
  file.on_notice = plan.on_notice;
  file.checkpoint_pages = 50;  // so that cuts fall into many checkpoints
  auto opened = jobs::open_sqlite(std::move(file));
  if (!opened) return opened.error();
  jobs::engine_options o;
  o.seed = plan.seed;
  o.flush_every = plan.flush_every;
  o.probe_every = milliseconds(2);
  return jobs::engine::open(std::move(*opened), o);
}

power_cycle_result run(const power_cycle& wanted) {
  power_cycle_result all;
  power_cycle plan = wanted;
  plan.on_notice = [&all](const jobs::store_notice& n) {
    n.is_damage ? void(all.damage += n.text + "; ") : void(++all.incomplete_commits);
  };
  ledger book;
  guarded<random> chance(std::in_place, plan.seed);
  const auto below = [&](std::uint32_t bound) {
    return chance.with([&](random& r) { return r.below(bound); });
  };
  const auto next = [&] { return chance.with([](random& r) { return r.next(); }); };
  auto disk = std::make_unique<faulty_disk>(faulty_disk::options{.seed = plan.seed});
  for (int i = 0; i < plan.cuts; ++i) {
    disk->power_off_after(1 + below(plan.events_max));
    auto engine = open_engine(*disk, plan);
    if (!engine && !disk->is_off()) {
      all.broken = engine.error().message;
      return all;
    }
    if (!engine) {
      ++all.failed_openings;
    } else {
      push_hooks hooks;
      if (plan.trouble) {
        hooks.before = [&] { chance.with([&](random& r) { plan.trouble(*disk, r); }); };
      }
      if (plan.answered) {
        hooks.after = [&](const auto& specs, const auto& answers) {
          plan.answered(*disk, specs, answers);
        };
      }
      // An engine that rejects everything without using the disk would never reach the cut.
      const auto give_up = seam::now() + life_max;
      const auto has_ended = [&] { return disk->is_off() || seam::now() > give_up; };
      const auto connect_to = [&] {
        auto direct = std::make_unique<engine_client>(**engine, has_ended);
        return std::make_unique<hooked_client>(std::move(direct), hooks);
      };
      const load busy{.pushers = 2,
                      .workers = 2,
                      .seed = next(),
                      .lease_wait = milliseconds(3),
                      .short_lease = milliseconds(1)};
      keep_busy(book, connect_to, busy, {});
      if (!disk->is_off()) {
        all.broken = "no power cut within 30 s: the engine writes almost nothing; " +
                     (*engine)->health().reason;
        return all;
      }
      engine->reset();
    }
    all.faults += disk->faults();
    all.syncs += disk->syncs();
    book.crashed();
    if (plan.before_cut) plan.before_cut(*disk);
    disk = disk->power_cut(next());
  }
  const auto engine = open_engine(*disk, plan);
  if (!engine) {
    all.broken = engine.error().message;
    return all;
  }
  engine_client last(**engine, [] { return false; });
  if (!drain(book, last)) all.broken = "the engine could not be drained";
  all.found = book.judge();
  return all;
}

power_cycle_result run_many(const sluice::testing::effort_counts& times, power_cycle plan) {
  const std::string name = sluice::testing::test_name();
  const std::string units = "stores with " + std::to_string(plan.cuts) + " power cuts each";
  const std::uint64_t count = sluice::testing::effort(name, units.c_str(), times);
  plan.seed = sluice::testing::seed(name, plan.seed);
  power_cycle_result all;
  for (std::uint64_t i = 0; i < count; ++i, ++plan.seed) {
    auto one = run(plan);
    all.found.add(one.found);
    all.faults += one.faults;
    all.syncs += one.syncs;
    all.failed_openings += one.failed_openings;
    all.incomplete_commits += one.incomplete_commits;
    all.damage += one.damage;
    if (!one.broken.empty() || !one.found.ok()) {
      all.broken += one.broken.empty() ? "" : one.broken + "; ";
      all.found.findings.push_back("^ with SLUICE_SEED=" + std::to_string(plan.seed));
    }
  }
  return all;
}

}  // namespace sluice::crash
