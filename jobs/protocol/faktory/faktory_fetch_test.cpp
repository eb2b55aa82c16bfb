// FETCH and ACK: the choice of the job, waits, and expired jobs.

#include "jobs/json/text.hpp"
#include "jobs/protocol/faktory/testing/faktory_words.hpp"

namespace sluice::jobs::testing::faktory_fetch_test {
namespace {

class FaktoryFetch : public faktory_words {};

TEST_F(FaktoryFetch, AFetchedJobEqualsThePushedJob) {
  auto& c = client();
  EXPECT_EQ(c.ask(R"(PUSH {"jid":"12345678","jobtype":"Mail","args":[ 1, 12345678901234567890, )"
                  R"({"a":"\u00e9"}],"queue":"low","retry":3,"custom":{"locale": "fr"},)"
                  R"("created_at":"2020-01-01T00:00:00Z","own":null,"w\"o":[1]})"),
            "+OK");
  EXPECT_EQ(c.ask("FETCH low"),
            R"({"jid":"12345678","retry":3,"custom":{"locale": "fr"},)"
            R"("created_at":"2020-01-01T00:00:00Z","own":null,"w\"o":[1],"queue":"low",)"
            R"("jobtype":"Mail","args":[ 1, 12345678901234567890, {"a":"\u00e9"}],)"
            R"("enqueued_at":"2026-01-01T00:00:00.000Z"})");
}

TEST_F(FaktoryFetch, QueuesAreSearchedInTheGivenOrder) {
  auto& c = client();
  EXPECT_EQ(c.ask(push_line("in-low-1", R"("queue":"low")")), "+OK");
  EXPECT_EQ(c.ask(push_line("in-default")), "+OK");
  EXPECT_EQ(c.ask(push_line("in-high-1", R"("queue":"high")")), "+OK");
  EXPECT_EQ(jid_in(c.ask("FETCH high default low")), "\"in-high-1\"");
  EXPECT_EQ(jid_in(c.ask("FETCH high default low")), "\"in-default\"");
  EXPECT_EQ(jid_in(c.ask("FETCH high high default low")), "\"in-low-1\"");
}

TEST_F(FaktoryFetch, WithoutAQueueItIsTheDefaultOne) {
  auto& c = client();
  EXPECT_EQ(c.ask(push_line("12345678")), "+OK");
  EXPECT_EQ(jid_in(c.ask("FETCH")), "\"12345678\"");
}

TEST_F(FaktoryFetch, AQueueMustHaveAName) {
  EXPECT_TRUE(client().ask("FETCH default a@b").starts_with("-ERR the name of a queue may have"));
}

TEST_F(FaktoryFetch, ItWaitsTwoSecondsAndThenReturnsNull) {
  auto& c = client();
  c.begin_fetch();
  pass(1999ms);
  EXPECT_FALSE(c.has_heard());
  pass(1ms);
  EXPECT_EQ(c.hear(), "$-1");
}

TEST_F(FaktoryFetch, AJobDueBeforeTheEndOfTheWaitIsReturnedEvenIfBothAreDetectedLate) {
  auto& c = client();
  const std::string at = R"("at":")" + format_time(time.after(2s)) + '"';
  EXPECT_EQ(c.ask(push_line("12345678", at)), "+OK");
  c.begin_fetch();
  pass(1min);
  EXPECT_EQ(jid_in(c.hear()), "\"12345678\"");
}

TEST_F(FaktoryFetch, AJobThatArrivesMeanwhileIsReturned) {
  auto& w = worker();
  w.begin_fetch("FETCH a b");
  EXPECT_EQ(client().ask(push_line("12345678", R"("queue":"b")")), "+OK");
  EXPECT_EQ(jid_in(w.hear()), "\"12345678\"");
}

TEST_F(FaktoryFetch, CommandsBehindItWait) {
  auto& w = worker();
  w.begin_fetch();
  w.send("INFO");
  EXPECT_FALSE(w.has_heard());
  pass(2s);
  EXPECT_EQ(w.hear(), "$-1");
  EXPECT_TRUE(w.hear().starts_with("{\"server_utc_time\""));
}

TEST_F(FaktoryFetch, AClientThatLeavesTakesNothing) {
  auto& w = worker();
  w.begin_fetch();
  w.wire().close();
  w.settle();
  EXPECT_EQ(e().stats().waiting_leases, 0U);
  EXPECT_EQ(client().ask(push_line("12345678")), "+OK");
  EXPECT_EQ(counts().ready, 1U);
}

TEST_F(FaktoryFetch, AJobLeasedWhileTheClientLeavesIsReleased) {
  auto& w = worker();
  w.begin_fetch();
  EXPECT_EQ(client().ask(push_line("12345678")), "+OK");
  sluice::testing::eventually([&] { return counts().running == 1; });
  w.wire().close();  // before the reply
  w.settle();
  settle();
  EXPECT_EQ(counts().ready, 1U);
  EXPECT_EQ(jid_in(client().ask("FETCH")), "\"12345678\"");
}

TEST_F(FaktoryFetch, AClientThatClosedItsSideStopsWaiting) {
  auto& w = worker();
  w.begin_fetch();
  w.wire().half_close();
  EXPECT_EQ(w.hear(), "$-1");
}

TEST_F(FaktoryFetch, AServerThatFinishesEndsAllWaits) {
  auto& w = worker();
  w.begin_fetch();
  w.wire().finish_up();
  EXPECT_EQ(w.hear(), "$-1");
  w.send("INFO");
  EXPECT_FALSE(w.has_heard());
}

TEST_F(FaktoryFetch, AConnectionWithoutAWidMayFetchAndReturnsItsJobsWhenItCloses) {
  auto& c = client();
  EXPECT_EQ(c.ask(push_line("12345678")), "+OK");
  EXPECT_EQ(jid_in(c.ask("FETCH")), "\"12345678\"");
  EXPECT_EQ(counts().running, 1U);
  c.wire().close();
  settle();
  EXPECT_EQ(counts().ready, 1U);
}

TEST_F(FaktoryFetch, APausedQueueReturnsNoJob) {
  auto& c = client();
  EXPECT_EQ(c.ask(push_line("12345678")), "+OK");
  EXPECT_EQ(c.ask("QUEUE PAUSE default"), "+OK");
  c.begin_fetch();
  pass(2s);
  EXPECT_EQ(c.hear(), "$-1");
}

TEST_F(FaktoryFetch, AnExpiredJobIsDroppedAndTheNextOneFetched) {
  auto& c = client();
  EXPECT_EQ(c.ask(push_line("expired-1", R"("custom":{"expires_at":"2026-01-01T00:00:10Z"})")),
            "+OK");
  EXPECT_EQ(c.ask(push_line("expired-2", R"("custom":{"expires_in":10})")), "+OK");
  EXPECT_EQ(c.ask(push_line("good-one", R"("custom":{"expires_in":1000})")), "+OK");
  pass(10s);
  EXPECT_EQ(jid_in(c.ask("FETCH")), "\"good-one\"");
  EXPECT_EQ(list_all({}).size(), 1U);
  EXPECT_EQ(all().counts.expired.load(relaxed), 2U);
}

TEST_F(FaktoryFetch, AFetchContinuesToWaitAfterDroppingAnExpiredJob) {
  auto& c = client();
  EXPECT_EQ(c.ask(push_line("expired-1", R"("custom":{"expires_in":1})")), "+OK");
  pass(1s);
  c.begin_fetch();
  pass(2s);
  EXPECT_EQ(c.hear(), "$-1");
}

TEST_F(FaktoryFetch, AnExpiredJobThatCannotBeDroppedIsReleased) {
  auto& c = client();
  EXPECT_EQ(c.ask(push_line("expired-1", R"("custom":{"expires_in":1})")), "+OK");
  pass(1s);
  drive.fails(error_code::io_error);
  EXPECT_TRUE(c.ask("FETCH").starts_with("-ERR "));
  EXPECT_EQ(all().counts.expired.load(relaxed), 0U);
  drive.works();
  pass(2s);
  EXPECT_EQ(counts().running, 0U);
  EXPECT_EQ(counts().ready, 1U);
  EXPECT_EQ(c.ask(push_line("good-one")), "+OK");
  EXPECT_EQ(jid_in(c.ask("FETCH")), "\"good-one\"");
  EXPECT_EQ(all().counts.expired.load(relaxed), 1U);
}

TEST_F(FaktoryFetch, ExpiryOfAScheduledJobCountsFromItsTime) {
  auto& c = client();
  EXPECT_EQ(
      c.ask(push_line("12345678", R"("at":"2026-01-01T01:00:00Z","custom":{"expires_in":60})")),
      "+OK");
  pass(1h + 59s);
  EXPECT_EQ(jid_in(c.ask("FETCH")), "\"12345678\"");
}

TEST_F(FaktoryFetch, ConsecutiveAcksAreOneCommit) {
  auto& c = client();
  std::string acks;
  for (int i = 0; i < 50; ++i) {
    const std::string jid = "job-" + std::to_string(1000 + i);
    EXPECT_EQ(c.ask(push_line(jid)), "+OK");
    (void)c.ask("FETCH");
    acks += R"(ACK {"jid":")" + jid + "\"}\r\n";
  }
  settle();
  const std::size_t before = drive.adds().size();
  c.wire().send(acks);
  for (int i = 0; i < 50; ++i) EXPECT_EQ(c.hear(), "+OK");
  EXPECT_EQ(drive.adds().size(), before + 1);
  EXPECT_EQ(counts().unfinished(), 0U);
}

TEST_F(FaktoryFetch, AnAckIsAnsweredAfterItsCommit) {
  auto& c = client();
  EXPECT_EQ(c.ask(push_line("12345678")), "+OK");
  (void)c.ask("FETCH");
  settle();
  drive.block();
  c.send(R"(ACK {"jid":"12345678"})");
  drive.await_blocked();
  EXPECT_FALSE(c.has_heard());
  drive.unblock();
  EXPECT_EQ(c.hear(), "+OK");
}

TEST_F(FaktoryFetch, AnAckOfAnUnknownJobIsFine) {
  auto& c = client();
  EXPECT_EQ(c.ask(R"(ACK {"jid":"nobody-knows"})"), "+OK");
  EXPECT_EQ(c.ask("ACK {}"), "-ERR the field \"jid\" is missing");
  EXPECT_EQ(c.ask("ACK 12345678"), "-ERR line 1, column 1: expected an object, found a number");
}

TEST_F(FaktoryFetch, AnExpiredReservationCountsAsAFailure) {
  auto& c = client();
  EXPECT_EQ(c.ask(push_line("12345678", R"("reserve_for":60)")), "+OK");
  (void)c.ask("FETCH");
  pass(61s);
  EXPECT_EQ(counts().retrying, 1U);
  EXPECT_EQ(c.ask(R"(ACK {"jid":"12345678"})"), "+OK");  // too late, and no harm
  pass(16s);
  const std::string again = c.ask("FETCH");
  EXPECT_EQ(jid_in(again), "\"12345678\"");
  EXPECT_EQ(member(again, "errtype"), "\"lease_expired\"");
}

TEST_F(FaktoryFetch, AnAckThatFailsOnTheDiskCanBeRepeated) {
  auto& c = client();
  EXPECT_EQ(c.ask(push_line("12345678")), "+OK");
  (void)c.ask("FETCH");
  drive.fails(error_code::io_error);
  EXPECT_TRUE(c.ask(R"(ACK {"jid":"12345678"})").starts_with("-ERR "));
  drive.works();
  pass(2s);
  EXPECT_EQ(c.ask(R"(ACK {"jid":"12345678"})"), "+OK");
  EXPECT_EQ(counts().unfinished(), 0U);
}

TEST_F(FaktoryFetch, TwoJobsMayHaveOneJid) {
  auto& c = client();
  EXPECT_EQ(c.ask(push_line("same-jid")), "+OK");
  EXPECT_EQ(c.ask(push_line("same-jid")), "+OK");
  auto& one = worker("w-1");
  auto& two = worker("w-2");
  EXPECT_EQ(jid_in(one.ask("FETCH")), "\"same-jid\"");
  EXPECT_EQ(jid_in(two.ask("FETCH")), "\"same-jid\"");
  EXPECT_EQ(one.ask(R"(ACK {"jid":"same-jid"})"), "+OK");
  EXPECT_EQ(counts().running, 1U);
  one.wire().close();
  settle();
  EXPECT_EQ(counts().running, 1U);
  EXPECT_EQ(two.ask(R"(ACK {"jid":"same-jid"})"), "+OK");
  EXPECT_EQ(counts().unfinished(), 0U);
}

// Jobs of other protocols.

TEST_F(FaktoryFetch, AJobOfAnotherApiHasAJidOfItsNumber) {
  const job_id id = push({.kind = "mail",
                          .args = {R"({"to":"ada"})"},
                          .retry = {.attempts_max = 5},
                          .metadata = R"({"trace":"x"})"});
  auto& w = worker();
  EXPECT_EQ(w.ask("FETCH"),
            R"({"jid":"sluice-00000001","retry":4,"reserve_for":1800,"custom":{"trace":"x"},)"
            R"("queue":"default","jobtype":"mail","args":[{"to":"ada"}],)"
            R"("created_at":"2026-01-01T00:00:00.000Z","enqueued_at":"2026-01-01T00:00:00.000Z"})");
  EXPECT_EQ(e().lease_of(id)->until, time.now() + 1800s);
  EXPECT_EQ(w.ask(R"(ACK {"jid":"sluice-00000001"})"), "+OK");
  EXPECT_FALSE(has(id));
}

TEST_F(FaktoryFetch, ArgsOfAnotherApiAreAnArray) {
  auto& w = worker();
  push({.kind = "k", .args = {" [1,2]"}});
  EXPECT_EQ(member(w.ask("FETCH"), "args"), " [1,2]");
  push({.kind = "k", .args = {"\"text\""}});
  EXPECT_EQ(member(w.ask("FETCH"), "args"), "[\"text\"]");
  push({.kind = "k", .args = {"\x01\x02", content_type::bytes}});
  EXPECT_EQ(member(w.ask("FETCH"), "args"), "[\"AQI=\"]");
  push({.kind = "k"});
  EXPECT_EQ(member(w.ask("FETCH"), "args"), "[]");
}

TEST_F(FaktoryFetch, AJobOfThisProtocolIsProcessedByAnother) {
  EXPECT_EQ(client().ask(push_line("12345678", R"("custom":{"a":1})")), "+OK");
  const leased_job job = take();
  EXPECT_EQ(job.job->spec.kind, "mail");
  EXPECT_EQ(job.job->spec.args.data, "[1]");
  EXPECT_EQ(job.job->spec.metadata, R"({"faktory":{"jid":"12345678","custom":{"a":1}}})");
  EXPECT_TRUE(ack(job));
}

TEST_F(FaktoryFetch, MetadataThatOnlyLooksLikeOursIsPassedUnchanged) {
  push({.kind = "k", .args = {"[]"}, .metadata = R"({"faktory":{"jid":7},"x":1})"});
  const std::string job = worker().ask("FETCH");
  EXPECT_EQ(member(job, "custom"), R"({"faktory":{"jid":7},"x":1})");
  EXPECT_EQ(jid_in(job), "\"sluice-00000001\"");
}

}  // namespace
}  // namespace sluice::jobs::testing::faktory_fetch_test
