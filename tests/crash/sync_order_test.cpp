// No acknowledgement precedes its sync: shown from the disk's own record of what was written and
// synced, in which order, and of the moment at which each future became ready.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sluice/base/seam.hpp"
#include "sluice/sync/guarded.hpp"
#include "tests/crash/power_cycle.hpp"

namespace sluice::crash::sync_order_test {
namespace {

using jobs::testing::disk_event;

// The number of the last event of the disk when each answer came, by token.
using answer_times = std::map<token, std::uint64_t>;

jobs::job_spec spec_of(token it) {
  jobs::job_spec spec;
  spec.queue = "alpha";
  spec.kind = "order";
  spec.args.data = "{\"token\":" + std::to_string(it) + ",\"end\":0}";
  return spec;
}

std::string mark_of(token it) {
  return "\"token\":" + std::to_string(it) + ",";
}

// Threads push, one by one and in bulk; the moment of the answer is taken where it is given.
answer_times push_from_threads(const faulty_disk& disk, jobs::engine& engine, int threads,
                               token each) {
  guarded<answer_times> times;
  {
    std::vector<seam::thread> pushers;
    for (int t = 0; t < threads; ++t) {
      pushers.emplace_back([&, first = 1 + static_cast<token>(t) * each] {
        for (auto it = first; it < first + each;) {
          if (it % 3 != 0 || it + 5 > first + each) {
            engine.push(spec_of(it))
                .then([&, it](const jobs::result<jobs::push_receipt>& made) {
                  EXPECT_TRUE(made);
                  times.with([&](auto& all) { all[it] = disk.now(); });
                })
                .get();
            ++it;
            continue;
          }
          std::vector<jobs::job_spec> specs;
          for (token i = 0; i < 5; ++i) specs.push_back(spec_of(it + i));
          engine.push_many(std::move(specs))
              .then([&, it](const std::vector<jobs::result<jobs::push_receipt>>& made) {
                times.with([&](auto& all) {
                  for (token i = 0; i < made.size(); ++i) all[it + i] = disk.now();
                });
              })
              .get();
          it += 5;
        }
      });
    }
  }
  return times.with([](const auto& all) { return all; });
}

// How many of the answers came before the bytes of their job had been written to the log and that
// had been synced.
std::size_t too_early(const std::vector<disk_event>& events, const answer_times& answers) {
  std::size_t count = 0;
  for (const auto& [it, answered] : answers) {
    const auto mark = mark_of(it);
    const auto written = std::ranges::find_if(events, [&](const disk_event& e) {
      return e.what == disk_event::op::write && e.file == "jobs.db-wal" &&
             e.bytes.find(mark) != std::string::npos;
    });
    const auto synced = std::find_if(written, events.end(), [&](const disk_event& e) {
      return e.what == disk_event::op::sync && e.file == "jobs.db-wal";
    });
    if (synced == events.end() || synced->number > answered) ++count;
  }
  return count;
}

TEST(sync_order_test, NoPushIsAcknowledgedBeforeItsBytesAreSynced) {
  faulty_disk disk({.keep_bytes = true});
  const auto engine = open_engine(disk, {});
  ASSERT_TRUE(engine) << engine.error().message;
  const auto answers = push_from_threads(disk, **engine, 4, 250);
  EXPECT_EQ(answers.size(), 1000U);
  const auto events = disk.events();
  EXPECT_EQ(too_early(events, answers), 0U);
  std::printf("[          ] %zu pushes, %lu syncs, acknowledged before its sync: %zu\n",
              answers.size(), static_cast<unsigned long>(disk.syncs()), too_early(events, answers));
}

TEST(sync_order_test, WithoutSyncsTheSameCheckFindsThatTheyAre) {
  faulty_disk disk({.keep_bytes = true});
  const auto engine = open_engine(disk, {.sync = jobs::sync_mode::off});
  ASSERT_TRUE(engine) << engine.error().message;
  const auto answers = push_from_threads(disk, **engine, 2, 100);
  EXPECT_GT(too_early(disk.events(), answers), 0U);
}

// What an ack or a failure changes is not to be seen in the bytes; so they come one at a time, and
// between the call and its answer the log must have been written, and then synced.
bool is_written_and_synced(const faulty_disk& disk, std::uint64_t since) {
  const auto events = disk.events();
  const auto is_log = [](disk_event::op what) {
    return [what](const disk_event& e) { return e.what == what && e.file == "jobs.db-wal"; };
  };
  const auto written = std::find_if(events.begin() + static_cast<std::ptrdiff_t>(since),
                                    events.end(), is_log(disk_event::op::write));
  return std::find_if(written, events.end(), is_log(disk_event::op::sync)) != events.end();
}

TEST(sync_order_test, NoAckFailureOrCancelIsAnsweredBeforeItIsSynced) {
  faulty_disk disk;
  const auto opened = open_engine(disk, {});
  ASSERT_TRUE(opened) << opened.error().message;
  auto& engine = **opened;
  for (token it = 1; it <= 60; ++it) {
    const auto pushed = engine.push(spec_of(it)).get();
    ASSERT_TRUE(pushed);
    std::uint64_t since = 0;
    if (it % 3 == 2) {
      since = disk.now();
      ASSERT_TRUE(engine.cancel(pushed->id).get());
    } else {
      const auto taken = engine.lease({.queues = {"alpha"}}).get();
      ASSERT_TRUE(taken);
      since = disk.now();
      if (it % 3 == 0) {
        ASSERT_TRUE(engine.ack(taken->front().ref()).get());
      } else {
        ASSERT_TRUE(engine.fail(taken->front().ref(), {.type = "x", .for_good = true}).get());
      }
    }
    EXPECT_TRUE(is_written_and_synced(disk, since)) << "job " << it;
  }
}

}  // namespace
}  // namespace sluice::crash::sync_order_test
