#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "benchmarks/beanstalk/beanstalk_dialect.hpp"
#include "benchmarks/faktory/faktory_dialect.hpp"

namespace sluice::bench::dialect_test {
namespace {

std::string body(std::uint64_t number) {
  std::string text;
  append_body(text, number);
  return text;
}

// A worker of a dialect, and a record of its output and the jobs it started.
class watched_worker {
 public:
  watched_worker(const dialect& protocol, std::size_t depth, std::uint64_t jobs)
      : worker_(protocol.worker(depth)) {
    log_.unclaimed = jobs;
    log_.started = [this](std::string_view of) { started.push_back(number_of_body(of)); };
    worker_->start(sent, log_);
  }

  // Passes `text` to the worker byte by byte, as a network may.
  void receive(std::string_view text) {
    sent.clear();
    for (const char c : text) {
      in_ += c;
      in_.erase(0, worker_->consume(in_, sent, log_));
    }
  }

  std::uint64_t finished() const { return log_.finished; }
  std::string left() const { return in_; }

  std::string sent;
  std::vector<std::uint64_t> started;

 private:
  std::unique_ptr<job_worker> worker_;
  work_log log_;
  std::string in_;
};

TEST(bench_dialect_test, ABodyContainsTheNumberOfItsJob) {
  for (const std::uint64_t number : {0ULL, 7ULL, 1'234'567'890ULL}) {
    EXPECT_EQ(body(number).size(), body_bytes);
    EXPECT_EQ(number_of_body(body(number)), number);
  }
}

TEST(bench_dialect_test, AChangedBodyFailsTheBench) {
  EXPECT_EXIT(number_of_body("x" + body(1).substr(1)), ::testing::ExitedWithCode(3), "changed");
  EXPECT_EXIT(number_of_body(body(1) + "x"), ::testing::ExitedWithCode(3), "changed");
}

TEST(bench_dialect_test, ABeanstalkWorkerDeletesAJobThenReservesAgain) {
  watched_worker w(beanstalk_dialect(), 1, 2);
  EXPECT_EQ(w.sent, "reserve\r\n");
  w.receive("RESERVED 17 100\r\n" + body(5) + "\r\n");
  EXPECT_EQ(w.sent, "delete 17\r\n");
  EXPECT_EQ(w.started, std::vector<std::uint64_t>{5});
  w.receive("DELETED\r\n");
  EXPECT_EQ(w.sent, "reserve\r\n");
  EXPECT_EQ(w.finished(), 1u);
  EXPECT_EQ(w.left(), "");
}

TEST(bench_dialect_test, AWorkerRequestsEachJobOnce) {
  watched_worker w(beanstalk_dialect(), 64, 2);
  EXPECT_EQ(w.sent, "reserve\r\nreserve\r\n");
  w.receive("RESERVED 1 100\r\n" + body(0) + "\r\n");
  w.receive("DELETED\r\n");
  EXPECT_EQ(w.sent, "");
}

TEST(bench_dialect_test, AFaktoryWorkerAcksAJobAndRepeatsAnEmptyFetch) {
  watched_worker w(faktory_dialect(), 1, 2);
  EXPECT_EQ(w.sent, "FETCH default\r\n");
  w.receive("$-1\r\n");
  EXPECT_EQ(w.sent, "FETCH default\r\n");
  const std::string job = R"({"args":[")" + body(9) + R"("],"jid":"bench-1"})";
  w.receive("$" + std::to_string(job.size()) + "\r\n" + job + "\r\n");
  EXPECT_EQ(w.sent, "ACK {\"jid\":\"bench-1\"}\r\n");
  EXPECT_EQ(w.started, std::vector<std::uint64_t>{9});
  w.receive("+OK\r\n");
  EXPECT_EQ(w.sent, "FETCH default\r\n");
  EXPECT_EQ(w.finished(), 1u);
}

TEST(bench_dialect_test, ProducersCountRepliesAndARejectionFailsTheBench) {
  const auto beanstalk = beanstalk_dialect().producer();
  std::uint64_t answered = 0;
  EXPECT_EQ(beanstalk->consume("INSERTED 1\r\nINSERTED 2\r\nINSER", answered), 24u);
  EXPECT_EQ(answered, 2u);
  EXPECT_EXIT(beanstalk->consume("OUT_OF_MEMORY\r\n", answered), ::testing::ExitedWithCode(3),
              "OUT_OF_MEMORY");
  const auto bulk = faktory_dialect(2).producer();
  answered = 0;
  EXPECT_EQ(bulk->consume("$2\r\n{}\r\n$2\r\n{", answered), 8u);
  EXPECT_EQ(answered, 1u);
  EXPECT_EXIT(bulk->consume("$14\r\n{\"a\":\"no way\"}\r\n", answered),
              ::testing::ExitedWithCode(3), "answered");
  std::string command;
  bulk->put(command, 0);
  EXPECT_TRUE(command.starts_with(R"(PUSHB [{"jid":"bench-1000000000",)")) << command;
  EXPECT_TRUE(command.ends_with("]}]\r\n")) << command;
}

}  // namespace
}  // namespace sluice::bench::dialect_test
