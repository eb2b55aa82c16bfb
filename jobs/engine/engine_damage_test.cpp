// A damaged store is no outage: it is found once, and nothing is taken or handed out until somebody
// has seen to it.

#include <gtest/gtest.h>

#include "jobs/engine/testing/engine_words.hpp"

namespace sluice::jobs::testing::engine_damage_test {
namespace {

class EngineDamage : public engine_words {
 protected:
  EngineDamage() {
    options.on_health = [this](const health& h) {
      told.with([&](auto& all) { all.push_back(h.takes_pushes); });
    };
  }
  void TearDown() override {
    it.reset();  // its counts cannot be compared: it refuses everything
  }
  std::vector<bool> told_so_far() {
    return told.with([](auto& all) { return all; });
  }

  guarded<std::vector<bool>> told;
};

TEST_F(EngineDamage, ACorruptCommitRefusesPushesAndLeasesUntilARestart) {
  push_some(2);
  drive.fails(error_code::corrupt);
  EXPECT_EQ(code_of(try_push({})), error_code::corrupt);
  drive.works();
  for (int i = 0; i < 5; ++i) advance(options.probe_every);
  EXPECT_FALSE(e().health().takes_pushes) << "what works next to the damage shows nothing";
  EXPECT_EQ(e().health().code, error_code::corrupt);
  EXPECT_EQ(code_of(try_push({})), error_code::corrupt);
  EXPECT_EQ(code_of(try_lease()), error_code::corrupt) << "though jobs are ready";
  EXPECT_EQ(code_of(e().lease_job(1).get()), error_code::corrupt);
  EXPECT_EQ(told_so_far(), std::vector<bool>{false});
  reopen();
  EXPECT_TRUE(try_push({}));
  EXPECT_EQ(lease(10).size(), 3U);
}

TEST_F(EngineDamage, WaitingLeasesAreAnsweredWithTheReason) {
  auto waits = e().lease({});
  settle();
  drive.fails_when([](const batch& b) -> std::optional<error> {
    if (b.changes.empty()) return std::nullopt;
    return error{error_code::corrupt, "a page is damaged"};
  });
  EXPECT_EQ(code_of(try_push({.queue = "other"})), error_code::corrupt);
  const auto answer = waits.get();
  EXPECT_EQ(code_of(answer), error_code::corrupt);
  EXPECT_EQ(answer.error().message, "a page is damaged");
}

TEST_F(EngineDamage, WorkersCanStillEndTheirJobsIfThatCanBeStored) {
  push_some(1);
  const leased_job l = take();
  drive.fails(error_code::corrupt);
  EXPECT_FALSE(try_push({}));
  drive.works();
  EXPECT_TRUE(ack(l));
}

TEST_F(EngineDamage, AnOutageAfterTheDamageDoesNotHideIt) {
  drive.fails(error_code::corrupt);
  EXPECT_FALSE(try_push({}));
  drive.fails(error_code::io_error);
  advance(options.probe_every);
  EXPECT_EQ(e().health().code, error_code::corrupt);
  EXPECT_EQ(told_so_far(), std::vector<bool>{false});
}

TEST_F(EngineDamage, DamageDuringAnOutageIsToldToo) {
  drive.fails(error_code::io_error);
  EXPECT_FALSE(try_push({}));
  drive.fails(error_code::corrupt);
  advance(options.probe_every);
  EXPECT_EQ(e().health().code, error_code::corrupt);
  drive.works();
  advance(options.probe_every);
  EXPECT_EQ(told_so_far(), (std::vector<bool>{false, false}));
}

TEST_F(EngineDamage, AChangeThatDoesNotFitOneJobIsNoDamage) {
  const job_id id = push();
  const leased_job l = take();
  drive.fails_when([id](const batch& b) -> std::optional<error> {
    for (const change& c : b.changes) {
      if (c.id == id) return error{error_code::corrupt, "not there", id};
    }
    return std::nullopt;
  });
  EXPECT_EQ(code_of(ack(l)), error_code::corrupt);
  EXPECT_TRUE(e().health().takes_pushes);
}

}  // namespace
}  // namespace sluice::jobs::testing::engine_damage_test
