// PUSH and PUSHB: accepted and refused jobs.

#include "jobs/protocol/faktory/testing/faktory_words.hpp"

namespace sluice::jobs::testing::faktory_push_test {
namespace {

class FaktoryPush : public faktory_words {
 protected:
  job only_job() {
    const auto jobs = list_all({});
    EXPECT_EQ(jobs.size(), 1U);
    return jobs.empty() ? job{} : jobs.front();
  }
};

TEST_F(FaktoryPush, AJobIsAJobOfTheEngine) {
  auto& c = client();
  EXPECT_EQ(c.ask(R"(PUSH {"jid":"12345678","jobtype":"Mail","args":[1, "a", 1.10],)"
                  R"("queue":"low","custom":{"locale":"fr"},"mine":[ 1 ]})"),
            "+OK");
  const job j = only_job();
  EXPECT_EQ(j.spec.queue, "low");
  EXPECT_EQ(j.spec.kind, "Mail");
  EXPECT_EQ(j.spec.args.data, R"([1, "a", 1.10])");
  EXPECT_EQ(j.spec.metadata,
            R"({"faktory":{"jid":"12345678","custom":{"locale":"fr"},"mine":[ 1 ]}})");
  EXPECT_EQ(j.spec.retry.attempts_max, 26U);
  EXPECT_EQ(j.spec.lease_for, 1800s);
  EXPECT_EQ(j.spec.priority, 0);
  EXPECT_EQ(j.state, job_state::ready);
}

TEST_F(FaktoryPush, ItIsAnsweredAfterItsCommit) {
  auto& c = client();
  settle();
  drive.block();
  c.send(push_line("abcdefgh"));
  drive.await_blocked();
  EXPECT_FALSE(c.has_heard());
  drive.unblock();
  EXPECT_EQ(c.hear(), "+OK");
}

TEST_F(FaktoryPush, MissingAndInvalidFieldsAreNamed) {
  auto& c = client();
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "line 1, column 1: expected an object, found the end of the text"},
      {"[]", "line 1, column 1: expected an object, found an array"},
      {R"({"jid":"12345678")", "line 1, column 18: expected ',' or '}', found the end of the text"},
      {R"({"jobtype":"a","args":[]})", R"(the field "jid" is missing)"},
      {R"({"jid":"12345678","args":[]})", R"(the field "jobtype" is missing)"},
      {R"({"jid":"12345678","jobtype":"","args":[]})", R"(the field "jobtype" is missing)"},
      {R"({"jid":"12345678","jobtype":"a"})", R"(the field "args" is missing)"},
      {R"({"jid":"12345678","jobtype":"a","args":null})", R"(the field "args" is missing)"},
      {R"({"jid":"1234567","jobtype":"a","args":[]})",
       "jid: expected at least 8 and at most 256 bytes (line 1, column 8)"},
      {R"({"jid":"12345678","jobtype":"a","args":{}})",
       "args: expected an array, found an object (line 1, column 40)"},
      {R"({"jid":"12345678","jid":"12345678","jobtype":"a","args":[]})",
       "jid: duplicate field (line 1, column 19)"},
      {job_text("12345678", R"("queue":"a b")"),
       "the name of a queue may have letters, digits and . _ - / : + ; $ ( ) only; byte 2 is "
       "not allowed"},
      {job_text("12345678", R"("queue":"")"), "the name of a queue must not be empty"},
      {job_text("12345678", R"("custom":{"unique_for":10,"unique_until":"never"})"),
       R"(custom: unique_until: expected "start" or "success" (line 1, column 33))"},
      {job_text("12345678", R"("custom":{"bid":"nonsense"})"),
       "custom.bid: no such batch: nonsense"},
  };
  for (const auto& [text, why] : cases) EXPECT_EQ(c.ask("PUSH " + text), "-ERR " + why) << text;
  for (const std::string wrong : {"59", "86401", "-1", "1.5", "\"60\""}) {
    const std::string got = c.ask(push_line("12345678", "\"reserve_for\":" + wrong));
    EXPECT_TRUE(
        got.starts_with("-ERR reserve_for: expected a whole number from 60 to 86400, found"))
        << got;
  }
  for (const std::string wrong : {"-2", "1000000", "true"}) {
    const std::string got = c.ask(push_line("12345678", "\"retry\":" + wrong));
    EXPECT_TRUE(got.starts_with("-ERR retry: expected a whole number from -1 to 999999")) << got;
  }
  EXPECT_TRUE(c.ask(push_line("12345678", R"("at":"tomorrow")")).starts_with("-ERR at: "));
  EXPECT_TRUE(c.ask(push_line("12345678", R"("custom":[])")).starts_with("-ERR custom: "));
  EXPECT_TRUE(list_all({}).empty());
  EXPECT_EQ(c.ask(push_line("12345678")), "+OK");
}

TEST_F(FaktoryPush, NullCountsAsOmitted) {
  EXPECT_EQ(
      client().ask(push_line("12345678", R"("queue":null,"at":null,"retry":null,)"
                                         R"("reserve_for":null,"custom":null,"priority":null)")),
      "+OK");
  EXPECT_EQ(only_job().spec.queue, "default");
}

TEST_F(FaktoryPush, OptionsSetTheJobsOptions) {
  auto& c = client();
  EXPECT_EQ(c.ask(push_line("12345678", R"("reserve_for":60,"retry":3,"priority":9)")), "+OK");
  const job j = only_job();
  EXPECT_EQ(j.spec.lease_for, 60s);
  EXPECT_EQ(j.spec.retry.attempts_max, 4U);
  EXPECT_EQ(j.spec.priority, 4);
}

TEST_F(FaktoryPush, AtSetsTheTime) {
  auto& c = client();
  EXPECT_EQ(c.ask(push_line("scheduled", R"("at":"2026-01-01T01:00:00.123456789Z")")), "+OK");
  EXPECT_EQ(c.ask(push_line("at-once-1", R"("at":"")")), "+OK");
  EXPECT_EQ(c.ask(push_line("at-once-2", R"("at":"0001-01-01T00:00:00Z")")), "+OK");
  EXPECT_EQ(c.ask(push_line("at-once-3", R"("at":"2025-01-01T00:00:00Z")")), "+OK");
  EXPECT_EQ(counts().scheduled, 1U);
  EXPECT_EQ(counts().ready, 3U);
  pass(1h + 124ms);
  EXPECT_EQ(counts().ready, 4U);
}

TEST_F(FaktoryPush, ABulkPushIsAnsweredWithTheRefusedJobs) {
  auto& c = client();
  EXPECT_EQ(c.ask("PUSHB [" + job_text("11111111") + "," + job_text("22222222") + "]"), "{}");
  EXPECT_EQ(c.ask("PUSHB []"), "{}");
  EXPECT_EQ(counts().ready, 2U);
  EXPECT_EQ(c.ask("PUSHB [" + job_text("33333333") + R"(,{"jid":"44444444","args":[]},)" +
                  job_text("short") + "]"),
            R"({"44444444":"the field \"jobtype\" is missing",)"
            R"x("short":"jid: expected at least 8 and at most 256 bytes (line 1, column 8)"})x");
  EXPECT_EQ(counts().ready, 3U);
}

TEST_F(FaktoryPush, ABulkPushWithoutAJidIsRefusedAsAWhole) {
  auto& c = client();
  EXPECT_EQ(c.ask("PUSHB [" + job_text("33333333") + R"(,{"jobtype":"a","args":[]}])"),
            R"(-ERR job 2: the field "jid" is missing)");
  EXPECT_EQ(c.ask("PUSHB {}"), "-ERR line 1, column 1: expected an array, found an object");
  EXPECT_EQ(c.ask("PUSHB [1]"), "-ERR [0]: expected an object, found a number (line 1, column 2)");
  EXPECT_TRUE(list_all({}).empty());
}

TEST_F(FaktoryPush, MoreThanTheEngineAcceptsAtOnceArePushedInParts) {
  auto& c = client();
  std::string line = "PUSHB [";
  for (int i = 0; i < 2500; ++i) {
    line += (i == 0 ? "" : ",") + job_text("job-" + std::to_string(10'000 + i));
  }
  EXPECT_EQ(c.ask(line + "]"), "{}");
  EXPECT_EQ(counts().ready, 2500U);
}

TEST_F(FaktoryPush, TenThousandMayArriveAtOnceAndNotOneMore) {
  auto& c = client();
  std::string line = "PUSHB [" + job_text("job-10000");
  for (int i = 1; i < 10'000; ++i) line += "," + job_text("job-" + std::to_string(10'000 + i));
  EXPECT_EQ(c.ask(line + "," + job_text("job-20000") + "]"), "-ERR PUSHB takes at most 10000 jobs");
  EXPECT_TRUE(e().queues().empty());
  EXPECT_EQ(c.ask(line + "]"), "{}");
  EXPECT_EQ(counts().ready, 10'000U);
  EXPECT_EQ(all().counts.pushed.load(relaxed), 10'000U);
  EXPECT_EQ(jid_in(c.ask("FETCH")), "\"job-10000\"");
}

TEST_F(FaktoryPush, AUniqueJobIsPushedOnce) {
  auto& c = client();
  const std::string unique = R"("custom":{"unique_for":600})";
  EXPECT_EQ(c.ask(push_line("11111111", unique)), "+OK");
  EXPECT_EQ(c.ask(push_line("22222222", unique)), "-NOTUNIQUE Job not unique");
  EXPECT_EQ(c.ask("PUSHB [" + job_text("33333333", unique) + "]"),
            R"({"33333333":"Job not unique"})");
  EXPECT_EQ(c.ask(push_line("44444444", R"("queue":"other",)" + unique)), "+OK");
  EXPECT_EQ(c.ask(R"(PUSH {"jid":"55555555","jobtype":"mail","args":[2],)" + unique + "}"), "+OK");
  EXPECT_EQ(c.ask(R"(PUSH {"jid":"66666666","jobtype":"fax","args":[1],)" + unique + "}"), "+OK");
  EXPECT_EQ(c.ask(R"(PUSH {"jid":"77777777","jobtype":"mail","args":[ 1 ],)" + unique + "}"),
            "-NOTUNIQUE Job not unique");
}

TEST_F(FaktoryPush, AUniqueJobFreesItsKeyWhenItIsDone) {
  auto& c = client();
  const std::string unique = R"("custom":{"unique_for":600})";
  EXPECT_EQ(c.ask(push_line("11111111", unique)), "+OK");
  (void)c.ask("FETCH default");
  EXPECT_EQ(c.ask(push_line("22222222", unique)), "-NOTUNIQUE Job not unique");
  EXPECT_EQ(c.ask(R"(ACK {"jid":"11111111"})"), "+OK");
  EXPECT_EQ(c.ask(push_line("22222222", unique)), "+OK");
}

TEST_F(FaktoryPush, AUniqueJobUntilStartFreesItsKeyWhenItIsFetched) {
  auto& c = client();
  const std::string unique = R"("custom":{"unique_for":600,"unique_until":"start"})";
  EXPECT_EQ(c.ask(push_line("11111111", unique)), "+OK");
  EXPECT_EQ(c.ask(push_line("22222222", unique)), "-NOTUNIQUE Job not unique");
  (void)c.ask("FETCH default");
  EXPECT_EQ(c.ask(push_line("22222222", unique)), "+OK");
}

TEST_F(FaktoryPush, AUniqueKeyEndsAfterUniqueFor) {
  auto& c = client();
  const std::string unique = R"("custom":{"unique_for":600.5})";
  EXPECT_EQ(c.ask(push_line("11111111", unique)), "+OK");
  pass(600s);
  EXPECT_EQ(c.ask(push_line("22222222", unique)), "-NOTUNIQUE Job not unique");
  pass(1s);
  EXPECT_EQ(c.ask(push_line("22222222", unique)), "+OK");
}

TEST_F(FaktoryPush, AScheduledJobIsUniqueDuringItsDelayToo) {
  auto& c = client();
  const std::string unique = R"("custom":{"unique_for":600})";
  EXPECT_EQ(c.ask(push_line("11111111", R"("at":"2026-01-01T01:00:00Z",)" + unique)), "+OK");
  pass(1h + 599s);
  EXPECT_EQ(c.ask(push_line("22222222", unique)), "-NOTUNIQUE Job not unique");
  pass(2s);
  EXPECT_EQ(c.ask(push_line("22222222", unique)), "+OK");
}

TEST_F(FaktoryPush, AFullQueueReturnsAnError) {
  configure({.capacity_jobs = 1});
  auto& c = client();
  EXPECT_EQ(c.ask(push_line("11111111")), "+OK");
  const std::string got = c.ask(push_line("22222222"));
  EXPECT_TRUE(got.starts_with("-ERR ") && got.find("default") != std::string::npos &&
              got.find("full") != std::string::npos)
      << got;
  EXPECT_TRUE(c.ask("PUSHB [" + job_text("33333333") + "]").starts_with(R"({"33333333":")"));
}

TEST_F(FaktoryPush, AQueueThatDropsReturnsAnError) {
  configure({.capacity_jobs = 1, .when_full = overflow::drop_newest});
  auto& c = client();
  EXPECT_EQ(c.ask(push_line("11111111")), "+OK");
  EXPECT_EQ(c.ask(push_line("22222222")), "-ERR the queue is full and drops what arrives");
}

TEST_F(FaktoryPush, AQueueThatBlocksAcceptsTheJobWhenThereIsCapacity) {
  configure({.capacity_jobs = 1, .when_full = overflow::block});
  auto& c = client();
  EXPECT_EQ(c.ask(push_line("11111111")), "+OK");
  c.send(push_line("22222222"));
  sluice::testing::eventually([&] { return e().stats().waiting_pushes == 1; });
  EXPECT_FALSE(c.has_heard());
  c.send("INFO");  // waits behind it
  EXPECT_GT(c.wire().unread(), 0U);
  EXPECT_TRUE(ack(take()));
  EXPECT_EQ(c.hear(), "+OK");
  EXPECT_TRUE(c.hear().starts_with("{"));
}

TEST_F(FaktoryPush, AQueueThatBlocksForTooLongRefusesTheJob) {
  configure({.capacity_jobs = 1, .when_full = overflow::block});
  auto& c = client();
  EXPECT_EQ(c.ask(push_line("11111111")), "+OK");
  c.send(push_line("22222222"));
  sluice::testing::eventually([&] { return e().stats().waiting_pushes == 1; });
  pass(wire_options.push_wait - 1ms);
  EXPECT_FALSE(c.has_heard());
  pass(2ms);
  EXPECT_EQ(c.hear(), "-ERR the queue is full and had no capacity in time");
  c.send("PUSHB [" + job_text("33333333") + "]");
  sluice::testing::eventually([&] { return e().stats().waiting_pushes == 1; });
  pass(wire_options.push_wait + 1ms);
  EXPECT_EQ(c.hear(), R"({"33333333":"the queue is full and had no capacity in time"})");
  EXPECT_EQ(counts().ready, 1U);
}

TEST_F(FaktoryPush, AClientThatLeavesPushesNoFurtherJobs) {
  configure({.capacity_jobs = 1, .when_full = overflow::block});
  auto& c = client();
  EXPECT_EQ(c.ask(push_line("11111111")), "+OK");
  c.send(push_line("22222222"));
  sluice::testing::eventually([&] { return e().stats().waiting_pushes == 1; });
  c.wire().close();
  c.settle();
  EXPECT_EQ(e().stats().waiting_pushes, 0U);
  EXPECT_EQ(counts().ready, 1U);
}

TEST_F(FaktoryPush, ConsecutivePushesAreOneCommit) {
  auto& c = client();
  settle();
  const std::size_t before = drive.adds().size();
  std::string lines;
  for (int i = 0; i < 100; ++i) lines += push_line("job-" + std::to_string(1000 + i)) + "\r\n";
  c.wire().send(lines);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(c.hear(), "+OK");
  const auto adds = drive.adds();
  ASSERT_EQ(adds.size(), before + 1);
  EXPECT_EQ(adds.back(), 100U);
}

TEST_F(FaktoryPush, RepliesHaveTheOrderOfTheCommands) {
  auto& c = client();
  c.wire().send(push_line("11111111") + "\r\nPUSH nonsense\r\n" + push_line("22222222") +
                "\r\nFETCH default\r\nJUMP\r\nACK {\"jid\":\"11111111\"}\r\nACK {}\r\n"
                "ACK {\"jid\":\"some-jid\"}\r\nFETCH default\r\nEND\r\n");
  EXPECT_EQ(c.hear(), "+OK");
  EXPECT_TRUE(c.hear().starts_with("-ERR line 1, column 1: expected an object"));
  EXPECT_EQ(c.hear(), "+OK");
  EXPECT_EQ(jid_in(c.hear()), "\"11111111\"");
  EXPECT_EQ(c.hear(), "-ERR Unknown command JUMP");
  EXPECT_EQ(c.hear(), "+OK");
  EXPECT_EQ(c.hear(), "-ERR the field \"jid\" is missing");
  EXPECT_EQ(c.hear(), "+OK");
  EXPECT_EQ(jid_in(c.hear()), "\"22222222\"");
  EXPECT_EQ(c.hear(), "+OK");
  EXPECT_TRUE(c.wire().is_ended());
}

TEST_F(FaktoryPush, RepliesAreOpenedUpToTheLimitOnly) {
  auto& c = client();
  c.wire().set_replies_max(3);
  std::string lines;
  for (int i = 0; i < 10; ++i) lines += push_line("job-" + std::to_string(1000 + i)) + "\n";
  c.wire().send(lines);
  EXPECT_EQ(c.wire().open_replies(), 3U);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(c.hear(), "+OK");
}

TEST_F(FaktoryPush, ADiskThatFailsIsReported) {
  auto& c = client();
  EXPECT_EQ(c.ask(push_line("11111111")), "+OK");
  drive.fails(error_code::io_error);
  EXPECT_TRUE(c.ask(push_line("22222222")).starts_with("-ERR "));
}

TEST_F(FaktoryPush, WhileItClosesPushesAreAccepted) {
  auto& c = client();
  all().is_closed.store(true, relaxed);
  e().close();
  EXPECT_EQ(c.ask(push_line("11111111")), "+OK");
  EXPECT_EQ(c.ask("PUSHB [" + job_text("22222222") + "]"), "{}");
  const std::string batch = c.ask(R"(BATCH NEW {"success":{"jobtype":"a","args":[]}})");
  EXPECT_FALSE(batch.starts_with("-ERR")) << batch;
}

TEST_F(FaktoryPush, AnEngineThatHasStoppedIsReported) {
  auto& c = client();
  e().stop();
  EXPECT_EQ(c.ask(push_line("11111111")), "-ERR Server is shutting down");
}

// Clients close a connection after an error, and lose their jobs with it; and a client that gets an
// immediate null polls.
TEST_F(FaktoryPush, WhileItClosesAFetchReturnsNullButNotAtOnce) {
  auto& c = client();
  c.begin_fetch();
  e().close();
  c.settle();
  all().is_closed.store(true, relaxed);
  pass(milliseconds(1999));
  EXPECT_EQ(c.wire().open_replies(), 1U);
  pass(milliseconds(2));
  EXPECT_EQ(c.hear(), "$-1");
  c.send("FETCH");
  pass(milliseconds(1999));
  EXPECT_EQ(c.wire().open_replies(), 1U);
  pass(milliseconds(2));
  EXPECT_EQ(c.hear(), "$-1");
}

}  // namespace
}  // namespace sluice::jobs::testing::faktory_push_test
