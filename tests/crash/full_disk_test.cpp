// The real program on a disk that fills up: pushes are rejected at once with the reason, workers
// continue, a restarted server serves, and pushes are accepted when there is space again.

#include <gtest/gtest.h>
#include <signal.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "jobs/cli/testing/program.hpp"
#include "sluice/base/seam.hpp"
#include "sluice/base/testing/eventually.hpp"
#include "tests/crash/http_client.hpp"
#include "tests/crash/load.hpp"

namespace sluice::crash::full_disk_test {
namespace {

using namespace std::chrono_literals;

using jobs::cli::testing::server_program;
using jobs::cli::testing::temporary_folder;

class full_disk_test : public ::testing::Test {
 protected:
  void start() {
    const jobs::cli::testing::start_options on_this_disk{
        .environment = {"LD_PRELOAD=" SLUICE_FULL_DISK_PRELOAD,
                        "SLUICE_FULL_DISK=" + folder_.file("full"),
                        "SLUICE_SHORT_WRITES=" + folder_.file("short")}};
    server_ = std::make_unique<server_program>(folder_, std::vector<std::string>(), on_this_disk);
    ASSERT_FALSE(HasFailure());
    client_ = std::make_unique<http_client>(port_of(server_->url()));
  }
  void kill() {
    server_->itself().signal(SIGKILL);
    EXPECT_EQ(server_->itself().wait().code, 128 + SIGKILL);
    book_.crashed();
  }
  void fill_disk(std::int64_t bytes_left) {
    std::ofstream(folder_.file("full.new"), std::ios::binary)
        .write(reinterpret_cast<const char*>(&bytes_left), sizeof bytes_left);
    std::filesystem::rename(folder_.file("full.new"), folder_.file("full"));
  }
  void make_space() { std::filesystem::remove(folder_.file("full")); }
  bool has_reserve() const { return std::filesystem::exists(folder_.file("data/jobs.db.reserve")); }
  void write_short() { std::ofstream(folder_.file("short")) << "short"; }

  push_answer push(std::size_t pad = 200) {
    const auto id = book_.new_token();
    jobs::job_spec spec;
    spec.queue = "alpha";
    spec.kind = "full";
    spec.args.data =
        "{\"token\":" + std::to_string(id) + ",\"pad\":\"" + std::string(pad, 'x') + "\"}";
    book_.pushing(id, contents_of(spec));
    const auto reply = client_->push({spec}, jobs::bulk::each).front();
    book_.pushed(id, reply.outcome);
    return reply;
  }
  void push_many(int count) {
    for (int i = 0; i < count; ++i) ASSERT_EQ(push().outcome, answer::yes) << last_answer();
  }
  // Leases and acks `count` jobs, one by one.
  void work(int count) {
    for (int i = 0; i < count; ++i) {
      const auto taken = client_->lease(1, 5s, 60s);
      ASSERT_TRUE(taken && taken->size() == 1) << last_answer();
      book_.leased(taken->front().id, taken->front().contents);
      book_.acking(taken->front().id);
      const auto reply = client_->ack(taken->front(), {});
      book_.acked(taken->front().id, reply);
      ASSERT_EQ(reply, answer::yes) << "ack " << i << ": " << last_answer();
    }
  }
  std::string last_answer() const {
    return std::to_string(client_->last().status) + " " + client_->last().body;
  }

  void expect_refused() {
    const auto began = seam::now();
    const auto reply = push();
    EXPECT_LT(seam::now() - began, 2s) << "the rejection was not immediate";
    EXPECT_EQ(reply.outcome, answer::no);
    EXPECT_EQ(reply.code, "disk_full");
    EXPECT_EQ(client_->last().status, 503) << last_answer();
    EXPECT_NE(client_->last().body.find("disk"), std::string::npos) << last_answer();
  }
  void expect_pushes_again() {
    sluice::testing::eventually([&] { return push().outcome == answer::yes; },
                                "pushes to be accepted when there is space again");
  }
  void expect_nothing_lost() {
    ASSERT_TRUE(drain(book_, *client_));
    const auto found = book_.judge();
    EXPECT_TRUE(found.ok()) << found.to_string();
    EXPECT_EQ(server_->stop().code, 0);
  }

  temporary_folder folder_;
  ledger book_;
  std::unique_ptr<server_program> server_;
  std::unique_ptr<http_client> client_;
};

TEST_F(full_disk_test, PushesAreRejectedWithTheReasonAndWorkersContinue) {
  start();
  push_many(300);
  fill_disk(0);
  expect_refused();
  expect_refused();
  EXPECT_TRUE(has_reserve());
  work(200);
  EXPECT_FALSE(has_reserve()) << "the acks did not use the reserve: the disk was not full";
  expect_refused();
  make_space();
  expect_pushes_again();
  sluice::testing::eventually([&] { return has_reserve(); }, "the reserve to be restored");
  expect_nothing_lost();
}

TEST_F(full_disk_test, WorkersContinueWhenOtherWritersUsedTheReserve) {
  start();
  push_many(300);
  fill_disk(0);
  work(50);
  for (int i = 0; i < 4; ++i) {
    fill_disk(0);
    work(50);
  }
  make_space();
  expect_pushes_again();
  expect_nothing_lost();
}

TEST_F(full_disk_test, AKilledServerServesAgainOnAFullDisk) {
  start();
  push_many(300);
  fill_disk(0);
  work(50);
  for (int i = 0; i < 3; ++i) {
    kill();
    start();
    expect_refused();
    work(50);
  }
  kill();
  make_space();
  start();
  expect_pushes_again();
  expect_nothing_lost();
}

TEST_F(full_disk_test, AServerThatWasStoppedServesAgainOnAFullDisk) {
  start();
  push_many(100);
  fill_disk(0);
  work(20);
  EXPECT_EQ(server_->stop().code, 0);
  start();
  expect_refused();
  work(20);
  make_space();
  expect_pushes_again();
  expect_nothing_lost();
}

TEST_F(full_disk_test, TheDiskFillsUpDuringPushes) {
  start();
  fill_disk(std::int64_t{100} << 20);
  push_many(50);
  fill_disk(300'000);
  sluice::testing::eventually([&] { return push(9000).code == "disk_full"; },
                              "the disk to be full");
  work(50);
  make_space();
  expect_pushes_again();
  expect_nothing_lost();
}

TEST_F(full_disk_test, ShortWritesAreCompleted) {
  start();
  write_short();
  push_many(100);
  work(50);
  kill();
  start();
  work(50);
  expect_nothing_lost();
}

}  // namespace
}  // namespace sluice::crash::full_disk_test
