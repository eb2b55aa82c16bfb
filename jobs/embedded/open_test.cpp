#include "jobs/embedded/open.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <string>

#include "jobs/worker/worker.hpp"
#include "sluice/base/testing/temporary_folder.hpp"

namespace sluice::jobs::open_test {
namespace {

using namespace std::chrono_literals;

class Open : public ::testing::Test {
 protected:
  sluice::testing::temporary_folder folder_;
  const std::string path_ = folder_.file("jobs.db");
};

TEST_F(Open, DoesAJobWithoutAServer) {
  auto jobs = open(path_).value();
  worker w(work_from(*jobs));
  w.handle("double", [](int n) { return 2 * n; });
  w.start();
  const auto pushed = jobs->push({.kind = "double", .args = encode(21)}).get();
  ASSERT_TRUE(pushed) << pushed.error().message;
  EXPECT_EQ(decode<int>(*jobs->wait(pushed->id).get()->result).value(), 42);
}

TEST_F(Open, FindsEarlierJobsAfterAReopen) {
  for (const sync_mode mode : {sync_mode::full, sync_mode::interval, sync_mode::off}) {
    const std::string path = path_ + std::string(to_string(mode));
    job_id id = 0;
    {
      auto jobs = open(path, {.sync = mode}).value();
      id = jobs->push({.kind = "later", .args = encode("x")}).get()->id;
    }
    auto jobs = open(path, {.sync = mode}).value();
    EXPECT_EQ(jobs->get(id).get()->spec.args, encode("x"));
  }
}

TEST_F(Open, KeepsTheLeaseOfAWorkerThatOutlivesTheEngineFromOtherWorkers) {
  lease_ref lease;
  {
    auto jobs = open(path_).value();
    (void)jobs->push({.kind = "long"}).get();
    lease = jobs->lease({}).get()->front().ref();
  }
  auto jobs = open(path_).value();
  EXPECT_EQ(jobs->lease({}, deadline::after(0s)).get().error().code, error_code::timed_out);
  EXPECT_TRUE(jobs->ack(lease).get());
}

TEST_F(Open, RejectsASecondProgramAndNamesTheFirst) {
  auto first = open(path_).value();
  const auto second = open(path_);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, error_code::locked);
}

TEST_F(Open, RejectsAFileOfAnotherKind) {
  std::ofstream(path_) << "This is a text about something else, and long enough to be looked at.\n"
                       << std::string(4096, '.');
  const auto opened = open(path_);
  ASSERT_FALSE(opened);
  EXPECT_TRUE(opened.error().code == error_code::corrupt ||
              opened.error().code == error_code::invalid)
      << to_string(opened.error().code);
  EXPECT_FALSE(open(""));
  EXPECT_FALSE(open(folder_.file("no/such/folder/jobs.db")));
}

TEST_F(Open, RejectsAnIntervalThatWouldNeverSync) {
  for (const milliseconds never : {milliseconds(0), milliseconds(-1)}) {
    const auto opened = open(path_, {.sync = sync_mode::interval, .flush_every = never});
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().code, error_code::invalid);
    EXPECT_NE(opened.error().message.find("at least 1 ms"), std::string::npos);
  }
  EXPECT_TRUE(open(path_, {.sync = sync_mode::full, .flush_every = 0ms})) << "it is not used";
}

}  // namespace
}  // namespace sluice::jobs::open_test
