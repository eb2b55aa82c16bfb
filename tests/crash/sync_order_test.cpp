// No change is acknowledged before its sync. Compares the disk's record of writes and syncs with
// the time at which each future became ready.

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

// The number of the last disk event when each push was acknowledged, by token.
using answer_times = std::map<token, std::uint64_t>;

jobs::job_spec spec_of(token id) {
  jobs::job_spec spec;
  spec.queue = "alpha";
  spec.kind = "order";
  spec.args.data = "{\"token\":" + std::to_string(id) + ",\"end\":0}";
  return spec;
}

std::string mark_of(token id) {
  return "\"token\":" + std::to_string(id) + ",";
}

// Pushes from several threads, one by one and in bulk. Continuations record the time of the answer.
answer_times push_from_threads(const faulty_disk& disk, jobs::engine& engine, int threads,
                               token each) {
  guarded<answer_times> times;
  {
    std::vector<seam::thread> pushers;
    for (int t = 0; t < threads; ++t) {
      pushers.emplace_back([&, first = 1 + static_cast<token>(t) * each] {
        for (auto id = first; id < first + each;) {
          if (id % 3 != 0 || id + 5 > first + each) {
            engine.push(spec_of(id))
                .then([&, id](const jobs::result<jobs::push_receipt>& receipts) {
                  EXPECT_TRUE(receipts);
                  times.with([&](auto& all) { all[id] = disk.now(); });
                })
                .get();
            ++id;
            continue;
          }
          std::vector<jobs::job_spec> specs;
          for (token i = 0; i < 5; ++i) specs.push_back(spec_of(id + i));
          engine.push_many(std::move(specs))
              .then([&, id](const std::vector<jobs::result<jobs::push_receipt>>& receipts) {
                times.with([&](auto& all) {
                  for (token i = 0; i < receipts.size(); ++i) all[id + i] = disk.now();
                });
              })
              .get();
          id += 5;
        }
      });
    }
  }
  return times.with([](const auto& all) { return all; });
}

// Counts the answers given before the bytes of their job had been written to the log and synced.
std::size_t too_early(const std::vector<disk_event>& events, const answer_times& answers) {
  std::size_t count = 0;
  for (const auto& [id, answered] : answers) {
    const auto mark = mark_of(id);
    const auto written = std::ranges::find_if(events, [&](const disk_event& e) {
      return e.type == disk_event::op::write && e.file == "jobs.db-wal" &&
             e.bytes.find(mark) != std::string::npos;
    });
    const auto synced = std::find_if(written, events.end(), [&](const disk_event& e) {
      return e.type == disk_event::op::sync && e.file == "jobs.db-wal";
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

TEST(sync_order_test, WithoutSyncsTheSameCheckFindsEarlyAcknowledgements) {
  faulty_disk disk({.keep_bytes = true});
  const auto engine = open_engine(disk, {.sync = jobs::sync_mode::off});
  ASSERT_TRUE(engine) << engine.error().message;
  const auto answers = push_from_threads(disk, **engine, 2, 100);
  EXPECT_GT(too_early(disk.events(), answers), 0U);
}

// Acks and failures cannot be recognized by their bytes. They are made one at a time, so the log
// must have been written and then synced between the call and its answer.
bool is_written_and_synced(const faulty_disk& disk, std::uint64_t since) {
  const auto events = disk.events();
  const auto is_log = [](disk_event::op type) {
    return [type](const disk_event& e) { return e.type == type && e.file == "jobs.db-wal"; };
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
  for (token id = 1; id <= 60; ++id) {
    const auto pushed = engine.push(spec_of(id)).get();
    ASSERT_TRUE(pushed);
    std::uint64_t since = 0;
    if (id % 3 == 2) {
      since = disk.now();
      ASSERT_TRUE(engine.cancel(pushed->id).get());
    } else {
      const auto taken = engine.lease({.queues = {"alpha"}}).get();
      ASSERT_TRUE(taken);
      since = disk.now();
      if (id % 3 == 0) {
        ASSERT_TRUE(engine.ack(taken->front().ref()).get());
      } else {
        ASSERT_TRUE(engine.fail(taken->front().ref(), {.type = "x", .for_good = true}).get());
      }
    }
    EXPECT_TRUE(is_written_and_synced(disk, since)) << "job " << id;
  }
}

}  // namespace
}  // namespace sluice::crash::sync_order_test
