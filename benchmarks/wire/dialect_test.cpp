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

// A worker of a dialect, and what became of what it was shown.
class watched_worker {
 public:
  watched_worker(const dialect& speaks, std::size_t depth, std::uint64_t jobs)
      : worker_(speaks.worker(depth)) {
    log_.unclaimed = jobs;
    log_.started = [this](std::string_view of) { started.push_back(number_of_body(of)); };
    worker_->start(said, log_);
  }

  // Shows it `text` byte by byte, as a network may.
  void hear(std::string_view text) {
    said.clear();
    for (const char c : text) {
      in_ += c;
      in_.erase(0, worker_->heard(in_, said, log_));
    }
  }

  std::uint64_t finished() const { return log_.finished; }
  std::string left() const { return in_; }

  std::string said;
  std::vector<std::uint64_t> started;

 private:
  std::unique_ptr<job_worker> worker_;
  work_log log_;
  std::string in_;
};

TEST(bench_dialect_test, ABodySaysWhichJobItIs) {
  for (const std::uint64_t number : {0ULL, 7ULL, 1'234'567'890ULL}) {
    EXPECT_EQ(body(number).size(), body_bytes);
    EXPECT_EQ(number_of_body(body(number)), number);
  }
}

TEST(bench_dialect_test, ABodyThatCameBackChangedFailsTheBench) {
  EXPECT_EXIT(number_of_body("x" + body(1).substr(1)), ::testing::ExitedWithCode(3), "changed");
  EXPECT_EXIT(number_of_body(body(1) + "x"), ::testing::ExitedWithCode(3), "changed");
}

TEST(bench_dialect_test, ABeanstalkWorkerDeletesWhatItReservedThenReservesAgain) {
  watched_worker w(beanstalk_dialect(), 1, 2);
  EXPECT_EQ(w.said, "reserve\r\n");
  w.hear("RESERVED 17 100\r\n" + body(5) + "\r\n");
  EXPECT_EQ(w.said, "delete 17\r\n");
  EXPECT_EQ(w.started, std::vector<std::uint64_t>{5});
  w.hear("DELETED\r\n");
  EXPECT_EQ(w.said, "reserve\r\n");
  EXPECT_EQ(w.finished(), 1u);
  EXPECT_EQ(w.left(), "");
}

TEST(bench_dialect_test, AWorkerAsksForNoMoreJobsThanThereAre) {
  watched_worker w(beanstalk_dialect(), 64, 2);
  EXPECT_EQ(w.said, "reserve\r\nreserve\r\n");
  w.hear("RESERVED 1 100\r\n" + body(0) + "\r\n");
  w.hear("DELETED\r\n");
  EXPECT_EQ(w.said, "");
}

TEST(bench_dialect_test, AFaktoryWorkerAcksWhatItFetchedAndAsksAgainWhenThereWasNothing) {
  watched_worker w(faktory_dialect(), 1, 2);
  EXPECT_EQ(w.said, "FETCH default\r\n");
  w.hear("$-1\r\n");
  EXPECT_EQ(w.said, "FETCH default\r\n");
  const std::string job = R"({"args":[")" + body(9) + R"("],"jid":"bench-1"})";
  w.hear("$" + std::to_string(job.size()) + "\r\n" + job + "\r\n");
  EXPECT_EQ(w.said, "ACK {\"jid\":\"bench-1\"}\r\n");
  EXPECT_EQ(w.started, std::vector<std::uint64_t>{9});
  w.hear("+OK\r\n");
  EXPECT_EQ(w.said, "FETCH default\r\n");
  EXPECT_EQ(w.finished(), 1u);
}

TEST(bench_dialect_test, ProducersCountTheAnswersAndARefusalFailsTheBench) {
  const auto beanstalk = beanstalk_dialect().producer();
  std::uint64_t answered = 0;
  EXPECT_EQ(beanstalk->heard("INSERTED 1\r\nINSERTED 2\r\nINSER", answered), 24u);
  EXPECT_EQ(answered, 2u);
  EXPECT_EXIT(beanstalk->heard("OUT_OF_MEMORY\r\n", answered), ::testing::ExitedWithCode(3),
              "OUT_OF_MEMORY");
  const auto bulk = faktory_dialect(2).producer();
  answered = 0;
  EXPECT_EQ(bulk->heard("$2\r\n{}\r\n$2\r\n{", answered), 8u);
  EXPECT_EQ(answered, 1u);
  EXPECT_EXIT(bulk->heard("$14\r\n{\"a\":\"no way\"}\r\n", answered), ::testing::ExitedWithCode(3),
              "answered");
  std::string command;
  bulk->put(command, 0);
  EXPECT_TRUE(command.starts_with(R"(PUSHB [{"jid":"bench-1000000000",)")) << command;
  EXPECT_TRUE(command.ends_with("]}]\r\n")) << command;
}

}  // namespace
}  // namespace sluice::bench::dialect_test
