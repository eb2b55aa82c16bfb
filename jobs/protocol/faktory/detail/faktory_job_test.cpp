#include "jobs/protocol/faktory/detail/faktory_job.hpp"

#include <gtest/gtest.h>

namespace sluice::jobs::faktory::faktory_job_test {
namespace {

using namespace std::chrono_literals;

job job_of(std::string_view text) {
  auto read = read_job(text, {.now = {1'767'225'600'000}});
  EXPECT_TRUE(read) << (read ? "" : read.error().message);
  job j;
  j.id = 7;
  if (read) j.spec = std::move(read->spec);
  j.created_at = {1'767'225'600'000};
  return j;
}

std::string written(const job& j) {
  std::string out;
  write_job(out, j, facts_of(j));
  return out;
}

TEST(FaktoryJob, AParsedJobIsWrittenUnchanged) {
  const job j = job_of(R"({"jid":"12345678","jobtype":"a","args":[1],"x":{"y":[]}})");
  EXPECT_EQ(written(j),
            R"({"jid":"12345678","x":{"y":[]},"queue":"default","jobtype":"a","args":[1],)"
            R"("created_at":"2026-01-01T00:00:00.000Z","enqueued_at":"2026-01-01T00:00:00.000Z"})");
}

TEST(FaktoryJob, AWrittenJobCanBePushedAgain) {
  job j = job_of(R"({"jid":"12345678","jobtype":"a","args":[1],"retry":3})");
  j.attempts = 1;
  j.errors.push_back({1, j.created_at, "E", "m", "l1\nl2"});
  const job again = job_of(written(j));
  j.attempts = 0;
  j.errors.clear();
  EXPECT_EQ(again.spec.kind, j.spec.kind);
  EXPECT_EQ(again.spec.args, j.spec.args);
  EXPECT_EQ(again.spec.retry, j.spec.retry);
  EXPECT_EQ(again.spec.metadata.find("failure"), std::string::npos);
}

TEST(FaktoryJob, AFailureIsTheLastOne) {
  job j = job_of(R"({"jid":"12345678","jobtype":"a","args":[],"retry":3})");
  j.attempts = 2;
  j.errors.push_back({1, j.created_at, "E1", "first", ""});
  j.errors.push_back({2, j.created_at + 1s, "E2", "second", "a\nb"});
  j.due_at = j.created_at + 20s;
  const std::string text = written(j);
  EXPECT_NE(text.find(R"("failure":{"retry_count":1,"remaining":2,)"
                      R"("failed_at":"2026-01-01T00:00:01.000Z",)"
                      R"("next_at":"2026-01-01T00:00:20.000Z","message":"second",)"
                      R"("errtype":"E2","backtrace":["a","b"]})"),
            std::string::npos)
      << text;
}

TEST(FaktoryJob, NumbersHaveNames) {
  EXPECT_EQ(jid_of(42), "sluice-00000042");
  EXPECT_EQ(jid_of(123'456'789'012), "sluice-123456789012");
  EXPECT_EQ(id_of_jid("sluice-00000042"), 42U);
  EXPECT_EQ(bid_of(7), "b-00000007");
  EXPECT_EQ(id_of_bid("b-00000007"), 7U);
  for (const char* no : {"", "sluice-", "sluice-42", "sluice-0000004x", "sluice-00000000",
                         "b-00000007", "sluice--0000001", "sluice-99999999999999999999999"}) {
    EXPECT_EQ(id_of_jid(no), std::nullopt) << no;
  }
}

TEST(FaktoryJob, PausesGrowWithTheFourthPower) {
  EXPECT_EQ(pause_after_failures(0, 0), 15s);
  EXPECT_EQ(pause_after_failures(0, 0.999), 44s);
  EXPECT_EQ(pause_after_failures(1, 0), 16s);
  EXPECT_EQ(pause_after_failures(1, 0.999), 74s);
  EXPECT_EQ(pause_after_failures(3, 0.5), 81s + 15s + 60s);
  EXPECT_EQ(pause_after_failures(24, 0), 331'791s);
  EXPECT_EQ(pause_after_failures(4'000'000'000U, 0.5), 365 * 24h);
}

TEST(FaktoryJob, ACallbackNeedsNoJid) {
  auto read = read_job(R"({"jobtype":"a","args":[]})", {.needs_jid = false});
  ASSERT_TRUE(read);
  job j;
  j.id = 9;
  j.spec = std::move(read->spec);
  const std::string text = written(j);
  EXPECT_TRUE(text.starts_with(R"({"jid":"sluice-00000009","queue":"default","jobtype":"a")"))
      << text;
}

TEST(FaktoryJob, ANameMayNeedEscapes) {
  const job j = job_of(R"({"jid":"12345678","jobtype":"a","args":[],"a\"\n":1})");
  EXPECT_NE(written(j).find(R"("a\"\n":1)"), std::string::npos) << written(j);
}

}  // namespace
}  // namespace sluice::jobs::faktory::faktory_job_test
