// A damaged store is no outage: it is detected once, and pushes and leases are rejected until a
// restart.

#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <vector>

#include "jobs/engine/testing/engine_words.hpp"

namespace sluice::jobs::testing::engine_damage_test {
namespace {

class EngineDamage : public engine_words {
 protected:
  EngineDamage() {
    options.on_health = [this](const health& h) {
      reports.with([&](auto& all) { all.push_back(h.takes_pushes); });
    };
  }
  void TearDown() override {
    engine_.reset();  // its counts cannot be compared: it rejects every call
  }
  std::vector<bool> reported() {
    return reports.with([](auto& all) { return all; });
  }

  guarded<std::vector<bool>> reports;
};

TEST_F(EngineDamage, ACorruptStoreRejectsPushesAndLeasesUntilARestart) {
  push_some(2);
  drive.fails(error_code::corrupt);
  EXPECT_EQ(code_of(try_push({})), error_code::corrupt);
  drive.works();
  for (int i = 0; i < 5; ++i) advance(options.probe_every);
  EXPECT_FALSE(e().health().takes_pushes) << "a successful commit does not end the damage";
  EXPECT_EQ(e().health().code, error_code::corrupt);
  EXPECT_EQ(code_of(try_push({})), error_code::corrupt);
  EXPECT_EQ(code_of(try_lease()), error_code::corrupt) << "though jobs are ready";
  EXPECT_EQ(code_of(e().lease_job(1).get()), error_code::corrupt);
  EXPECT_EQ(reported(), std::vector<bool>{false});
  reopen();
  EXPECT_TRUE(try_push({}));
  EXPECT_EQ(lease(10).size(), 3U);
}

TEST_F(EngineDamage, WaitingLeasesFailWithTheError) {
  auto waits = e().lease({});
  settle();
  drive.fails_when([](const transaction& b) -> std::optional<error> {
    if (b.changes.empty()) return std::nullopt;
    return error{error_code::corrupt, "a page is damaged"};
  });
  EXPECT_EQ(code_of(try_push({.queue = "other"})), error_code::corrupt);
  const auto answer = waits.get();
  EXPECT_EQ(code_of(answer), error_code::corrupt);
  EXPECT_EQ(answer.error().message, "a page is damaged");
}

TEST_F(EngineDamage, WorkersCanStillEndTheirJobsIfTheCommitSucceeds) {
  push_some(1);
  const leased_job l = take();
  drive.fails(error_code::corrupt);
  EXPECT_FALSE(try_push({}));
  drive.works();
  EXPECT_TRUE(ack(l));
}

TEST_F(EngineDamage, ALaterOutageDoesNotHideTheDamage) {
  drive.fails(error_code::corrupt);
  EXPECT_FALSE(try_push({}));
  drive.fails(error_code::io_error);
  advance(options.probe_every);
  EXPECT_EQ(e().health().code, error_code::corrupt);
  EXPECT_EQ(reported(), std::vector<bool>{false});
}

TEST_F(EngineDamage, DamageDuringAnOutageIsReportedToo) {
  drive.fails(error_code::io_error);
  EXPECT_FALSE(try_push({}));
  drive.fails(error_code::corrupt);
  advance(options.probe_every);
  EXPECT_EQ(e().health().code, error_code::corrupt);
  drive.works();
  advance(options.probe_every);
  EXPECT_EQ(reported(), (std::vector<bool>{false, false}));
}

TEST_F(EngineDamage, AChangeThatDoesNotMatchOneJobIsNoDamage) {
  const job_id id = push();
  const leased_job l = take();
  drive.fails_when([id](const transaction& b) -> std::optional<error> {
    for (const change& c : b.changes) {
      if (c.id == id) return error{error_code::corrupt, "not there", id};
    }
    return std::nullopt;
  });
  EXPECT_EQ(code_of(ack(l)), error_code::corrupt);
  EXPECT_TRUE(e().health().takes_pushes);
}

TEST_F(EngineDamage, ManyChangesThatDoNotMatchAreNoOutage) {
  push_some(300);
  const std::vector<leased_job> taken = lease(300);
  ASSERT_EQ(taken.size(), 300U);
  drive.fails_when([](const transaction& b) -> std::optional<error> {
    for (const change& c : b.changes) {
      if (c.type == change::op::drop) return error{error_code::corrupt, "not there", c.id};
    }
    return std::nullopt;
  });
  std::vector<future<void_result>> acks;
  in_one_commit([&] {
    for (const leased_job& l : taken) acks.push_back(e().ack(l.ref()));
  });
  for (auto& ack : acks) EXPECT_EQ(code_of(ack.get()), error_code::corrupt);
  EXPECT_TRUE(e().health().takes_pushes);
  EXPECT_TRUE(reported().empty());
}

// Calls that find the damage in a read, without a commit.
class EngineDamagedRead : public EngineDamage {
 protected:
  void expect_found_by(const std::function<error_code()>& call) {
    settle();
    drive.reads_fail(true, error_code::corrupt);
    EXPECT_EQ(call(), error_code::corrupt);
    settle();
    EXPECT_FALSE(e().health().takes_pushes);
    EXPECT_EQ(e().health().code, error_code::corrupt);
    EXPECT_EQ(reported(), std::vector<bool>{false});
  }
};

TEST_F(EngineDamagedRead, IsFoundByAPurge) {
  push_some(2);
  expect_found_by([&] { return code_of(e().purge("default").get()); });
}

TEST_F(EngineDamagedRead, IsFoundByAPeek) {
  push({.run_at = time.now() + 1h});
  expect_found_by([&] { return code_of(e().peek("default", job_state::scheduled).get()); });
}

TEST_F(EngineDamagedRead, IsFoundByAKick) {
  push({.run_at = time.now() + 1h});
  expect_found_by([&] { return code_of(e().kick("default", 1).get()); });
}

TEST_F(EngineDamagedRead, IsFoundByTheCancelOfABatch) {
  const auto pushed = e().push_batch({.jobs = {{.kind = "k"}}}).get();
  ASSERT_TRUE(pushed);
  expect_found_by([&] { return code_of(e().cancel_batch(pushed->id).get()); });
}

}  // namespace
}  // namespace sluice::jobs::testing::engine_damage_test
