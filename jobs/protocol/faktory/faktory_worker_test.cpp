// Workers: their connections, their beats, and their failures.

#include "jobs/protocol/faktory/testing/faktory_words.hpp"

namespace sluice::jobs::testing::faktory_worker_test {
namespace {

class FaktoryWorker : public faktory_words {
 protected:
  void push_some_jids(int count) {
    auto& c = client();
    for (int i = 0; i < count; ++i) {
      EXPECT_EQ(c.ask(push_line("job-000" + std::to_string(i))), "+OK");
    }
  }
  std::string beat(speaker& s, const std::string& wid, const std::string& more = "") {
    return s.ask(R"(BEAT {"wid":")" + wid + "\"" + more + "}");
  }
  std::string fail_job(speaker& s, const std::string& jid) {
    return s.ask(R"(FAIL {"jid":")" + jid +
                 R"(","errtype":"IOError","message":"no net","backtrace":["a:1","b:2"]})");
  }
};

TEST_F(FaktoryWorker, OneConnectionFetchesAndAnotherAcks) {
  push_some_jids(1);
  auto& one = worker("w");
  auto& two = worker("w");
  EXPECT_EQ(jid_in(one.ask("FETCH")), "\"job-0000\"");
  EXPECT_EQ(two.ask(R"(ACK {"jid":"job-0000"})"), "+OK");
  EXPECT_EQ(counts().unfinished(), 0U);
}

TEST_F(FaktoryWorker, ItKeepsItsJobsUntilItsLastConnectionCloses) {
  push_some_jids(3);
  auto& one = worker("w");
  auto& two = worker("w");
  auto& other = worker("x");
  (void)one.ask("FETCH");
  (void)one.ask("FETCH");
  (void)other.ask("FETCH");
  EXPECT_EQ(all().crew.list().workers.at(0).running, 2U);
  one.wire().close();
  settle();
  EXPECT_EQ(counts().running, 3U);
  two.wire().close();
  settle();
  EXPECT_EQ(counts().running, 1U);
  EXPECT_EQ(counts().ready, 2U);
  EXPECT_EQ(all().counts.lost.load(relaxed), 2U);
  const std::string again = other.ask("FETCH");
  EXPECT_EQ(member(again, "errtype"), "\"WorkerLost\"");
  EXPECT_EQ(member(again, "message"),
            "\"the worker w@h was lost: its connections closed without an END\"");
  EXPECT_EQ(member(again, "remaining"), "25");
}

TEST_F(FaktoryWorker, AWorkerThatSendsEndReturnsItsJobsUnchanged) {
  push_some_jids(1);
  for (int i = 0; i < 3; ++i) {
    auto& w = worker("w");
    EXPECT_EQ(member(w.ask("FETCH"), "failure"), "(none)");
    EXPECT_EQ(w.ask("END"), "+OK");
    settle();
    EXPECT_EQ(counts().ready, 1U) << "although the client keeps its socket open";
    EXPECT_TRUE(all().crew.list().workers.empty());
    w.wire().close();
  }
  EXPECT_EQ(all().counts.given_back.load(relaxed), 3U);
  EXPECT_EQ(all().counts.lost.load(relaxed), 0U);
}

// The end of a worker's last connection decides whether the worker is lost.
TEST_F(FaktoryWorker, AnEndOfOneConnectionIsNotTheEndOfTheWorker) {
  push_some_jids(1);
  auto& one = worker("w");
  auto& two = worker("w");
  (void)one.ask("FETCH");
  EXPECT_EQ(one.ask("END"), "+OK");
  one.wire().close();
  two.wire().close();
  settle();
  EXPECT_EQ(all().counts.lost.load(relaxed), 1U);
}

TEST_F(FaktoryWorker, AStoppingServerLosesNoWorker) {
  push_some_jids(1);
  auto& w = worker("w");
  (void)w.ask("FETCH");
  w.wire().finish_up();
  w.wire().close();
  settle();
  EXPECT_EQ(all().counts.lost.load(relaxed), 0U);
  EXPECT_EQ(counts().ready, 1U);
}

TEST_F(FaktoryWorker, AJobThatCrashesItsWorkersFinallyIsDead) {
  EXPECT_EQ(client().ask(push_line("12345678", R"("retry":3)")), "+OK");
  const auto lose_one = [&] {
    auto& w = worker("w");
    EXPECT_EQ(jid_in(w.ask("FETCH")), "\"12345678\"");
    w.wire().close();
    settle();
  };
  lose_one();
  EXPECT_EQ(counts().ready, 1U) << "the first time at once";
  lose_one();
  EXPECT_EQ(counts().retrying, 1U);
  pass(15s);
  EXPECT_EQ(counts().retrying, 1U) << "then after the pause of a failure";
  pass(59s);  // 16 and up to 58 seconds
  lose_one();
  EXPECT_EQ(counts().retrying, 1U);
  pass(2min);  // 31 and up to 87 seconds
  lose_one();
  EXPECT_EQ(counts().dead, 1U);
  const auto dead = list_all({});
  ASSERT_EQ(dead.at(0).errors.size(), 4U);
  EXPECT_EQ(dead.at(0).errors.back().type, "WorkerLost");
}

TEST_F(FaktoryWorker, AJobLostAfterOrdinaryFailuresIsReadyAtOnce) {
  push_some_jids(1);
  auto& w = worker("w");
  (void)w.ask("FETCH");
  EXPECT_EQ(fail_job(w, "job-0000"), "+OK");
  pass(1min);
  (void)w.ask("FETCH");
  w.wire().close();
  settle();
  EXPECT_EQ(counts().ready, 1U);
}

TEST_F(FaktoryWorker, AJobWithoutRetriesEndsWithItsWorker) {
  EXPECT_EQ(client().ask(push_line("dead-then", R"("retry":-1)")), "+OK");
  EXPECT_EQ(client().ask(push_line("gone-then", R"("retry":0)")), "+OK");
  auto& w = worker("w");
  (void)w.ask("FETCH");
  (void)w.ask("FETCH");
  w.wire().close();
  settle();
  const auto left = list_all({});
  ASSERT_EQ(left.size(), 1U);
  EXPECT_EQ(left[0].state, job_state::dead);
}

TEST_F(FaktoryWorker, AWorkerWhoseBeatsStopReturnsItsJobs) {
  push_some_jids(1);
  auto& w = worker("w");
  EXPECT_EQ(beat(w, "w"), "+OK");
  (void)w.ask("FETCH");
  pass(59s);
  EXPECT_EQ(counts().running, 1U);
  EXPECT_EQ(beat(w, "w"), "+OK");
  pass(59s);
  EXPECT_EQ(counts().running, 1U);
  pass(2s);
  EXPECT_EQ(counts().ready, 1U);
  EXPECT_TRUE(all().crew.list().workers.empty());
  EXPECT_EQ(w.ask(R"(ACK {"jid":"job-0000"})"), "+OK");
  EXPECT_EQ(counts().ready, 1U);
  // It returns with its next BEAT.
  EXPECT_EQ(beat(w, "w"), "+OK");
  EXPECT_EQ(all().crew.list().workers.size(), 1U);
}

TEST_F(FaktoryWorker, ABeatOverAnyConnectionCountsForAll) {
  push_some_jids(1);
  auto& one = worker("w");
  auto& two = worker("w");
  EXPECT_EQ(beat(one, "w"), "+OK");
  (void)one.ask("FETCH");
  for (int i = 0; i < 5; ++i) {
    pass(40s);
    EXPECT_EQ(beat(two, "w"), "+OK");
  }
  EXPECT_EQ(counts().running, 1U);
  pass(70s);
  EXPECT_EQ(counts().ready, 1U);
}

TEST_F(FaktoryWorker, AWorkerIsLostEvenIfTheConnectionOfItsBeatsHasClosed) {
  push_some_jids(1);
  auto& one = worker("w");
  auto& two = worker("w");
  (void)two.ask("FETCH");
  pass(30s);
  EXPECT_EQ(beat(one, "w"), "+OK");
  one.wire().close();
  pass(31s);
  EXPECT_EQ(counts().running, 1U);
  pass(30s);
  EXPECT_EQ(counts().ready, 1U);
}

TEST_F(FaktoryWorker, AWorkerWithoutBeatsKeepsItsWholeReservation) {
  push_some_jids(1);
  auto& w = worker("w");
  (void)w.ask("FETCH");
  pass(29min);
  EXPECT_EQ(counts().running, 1U);
  pass(1min + 1s);
  EXPECT_EQ(counts().retrying, 1U);
}

TEST_F(FaktoryWorker, ABeatDoesNotExtendAReservation) {
  EXPECT_EQ(client().ask(push_line("12345678", R"("reserve_for":60)")), "+OK");
  auto& w = worker("w");
  (void)w.ask("FETCH");
  pass(30s);
  EXPECT_EQ(beat(w, "w"), "+OK");
  pass(31s);
  EXPECT_EQ(counts().retrying, 1U);
}

TEST_F(FaktoryWorker, ABeatMustNameAConnectedWorker) {
  auto& c = client();
  EXPECT_EQ(beat(c, "nobody"), "-ERR Unknown worker nobody");
  EXPECT_EQ(c.ask("BEAT {}"), "-ERR the field \"wid\" is missing");
  EXPECT_EQ(c.ask("BEAT"), "-ERR line 1, column 1: expected an object, found the end of the text");
}

TEST_F(FaktoryWorker, AWorkerGetsQuietAndTerminate) {
  auto& w = worker("w");
  auto& x = worker("x");
  EXPECT_TRUE(all().crew.set_state("w", worker_state::quiet));
  EXPECT_FALSE(all().crew.set_state("nobody", worker_state::quiet));
  EXPECT_EQ(beat(x, "x"), "+OK");
  EXPECT_EQ(beat(w, "w"), R"(+{"state":"quiet"})");
  EXPECT_EQ(beat(w, "w", R"(,"current_state":"quiet","rss_kb":1000)"), "+OK");
  EXPECT_EQ(all().crew.list().workers.at(0).rss_kb, 1000U);
  EXPECT_EQ(all().crew.list().workers.at(0).state, worker_state::quiet);
  all().crew.set_all_states(worker_state::terminate);
  EXPECT_EQ(beat(w, "w", R"(,"current_state":"quiet")"), R"(+{"state":"terminate"})");
  EXPECT_EQ(beat(x, "x"), R"(+{"state":"terminate"})");
  EXPECT_TRUE(all().crew.set_state("w", worker_state::quiet));  // too late
  EXPECT_EQ(beat(w, "w"), R"(+{"state":"terminate"})");
}

TEST_F(FaktoryWorker, AWorkerThatReportsQuietIsListedAsQuiet) {
  auto& w = worker("w");
  EXPECT_EQ(beat(w, "w", R"(,"current_state":"quiet")"), "+OK");
  EXPECT_EQ(all().crew.list().workers.at(0).state, worker_state::quiet);
}

TEST_F(FaktoryWorker, AReportedStateIsNotRequested) {
  auto& w = worker("w");
  EXPECT_EQ(beat(w, "w", R"(,"current_state":"quiet")"), "+OK");
  EXPECT_EQ(beat(w, "w"), "+OK");
  EXPECT_EQ(all().crew.list().workers.at(0).state, worker_state::running);
  EXPECT_EQ(beat(w, "w", R"(,"current_state":"terminate")"), "+OK");
  EXPECT_EQ(all().crew.list().workers.at(0).state, worker_state::terminate);
  EXPECT_TRUE(all().crew.set_state("w", worker_state::quiet));  // terminate was not requested
  EXPECT_EQ(beat(w, "w"), R"(+{"state":"quiet"})");
}

TEST_F(FaktoryWorker, AnUnknownStateCountsAsRunning) {
  auto& w = worker("w");
  EXPECT_EQ(beat(w, "w", R"(,"current_state":"dreaming")"), "+OK");
  EXPECT_EQ(all().crew.list().workers.at(0).state, worker_state::running);
}

TEST_F(FaktoryWorker, AWorkerThatReportsTerminateDoesNotGetQuiet) {
  auto& w = worker("w");
  EXPECT_TRUE(all().crew.set_state("w", worker_state::quiet));
  EXPECT_EQ(beat(w, "w", R"(,"current_state":"terminate")"), "+OK");
  EXPECT_EQ(all().crew.list().workers.at(0).state, worker_state::terminate);
}

TEST_F(FaktoryWorker, WorkersAreListedPageByPage) {
  for (const char* const wid : {"c", "a", "b"}) (void)worker(wid);
  const auto first = all().crew.list("", 2);
  ASSERT_EQ(first.workers.size(), 2U);
  EXPECT_EQ(first.workers[0].wid, "a");
  EXPECT_EQ(first.workers[1].wid, "b");
  EXPECT_EQ(first.cursor, "b");
  const auto second = all().crew.list(*first.cursor, 2);
  ASSERT_EQ(second.workers.size(), 1U);
  EXPECT_EQ(second.workers[0].wid, "c");
  EXPECT_EQ(second.cursor, std::nullopt);
  EXPECT_EQ(all().crew.list("", 3).cursor, std::nullopt);
}

TEST_F(FaktoryWorker, AQuietWorkerGetsNoJobs) {
  push_some_jids(2);
  auto& w = worker("w");
  EXPECT_EQ(jid_in(w.ask("FETCH")), "\"job-0000\"");
  EXPECT_TRUE(all().crew.set_state("w", worker_state::quiet));
  w.send("FETCH");
  pass(milliseconds(1999));
  EXPECT_EQ(w.wire().open_replies(), 1U);
  pass(milliseconds(2));
  EXPECT_EQ(w.hear(), "$-1");
  EXPECT_EQ(counts().ready, 1U);
  EXPECT_EQ(w.ask(R"(ACK {"jid":"job-0000"})"), "+OK");
  EXPECT_EQ(jid_in(worker("x").ask("FETCH")), "\"job-0001\"");
}

TEST_F(FaktoryWorker, AFailureIsFollowedByAnotherAttempt) {
  push_some_jids(1);
  auto& w = worker();
  (void)w.ask("FETCH");
  EXPECT_EQ(fail_job(w, "job-0000"), "+OK");
  EXPECT_EQ(counts().retrying, 1U);
  pass(14s);
  EXPECT_EQ(counts().retrying, 1U);
  pass(31s);  // 15 and up to 29 seconds after the first failure
  const std::string job = w.ask("FETCH");
  EXPECT_EQ(member(job, "retry_count"), "0");
  EXPECT_EQ(member(job, "remaining"), "25");
  EXPECT_EQ(member(job, "failed_at"), "\"2026-01-01T00:00:00.000Z\"");
  EXPECT_EQ(member(job, "message"), "\"no net\"");
  EXPECT_EQ(member(job, "errtype"), "\"IOError\"");
  EXPECT_EQ(member(job, "backtrace"), R"(["a:1","b:2"])");
  EXPECT_EQ(fail_job(w, "job-0000"), "+OK");
  pass(1min + 20s);  // 16 and up to 58 seconds
  EXPECT_EQ(member(w.ask("FETCH"), "retry_count"), "1");
}

TEST_F(FaktoryWorker, AJobThatFailsTooOftenIsDead) {
  auto& w = worker();
  EXPECT_EQ(w.ask(push_line("12345678", R"("retry":1)")), "+OK");
  (void)w.ask("FETCH");
  EXPECT_EQ(fail_job(w, "12345678"), "+OK");
  pass(1min);
  (void)w.ask("FETCH");
  EXPECT_EQ(fail_job(w, "12345678"), "+OK");
  EXPECT_EQ(counts().dead, 1U);
}

TEST_F(FaktoryWorker, WithoutARetryItIsDiscarded) {
  auto& w = worker();
  EXPECT_EQ(w.ask(push_line("12345678", R"("retry":0)")), "+OK");
  (void)w.ask("FETCH");
  EXPECT_EQ(fail_job(w, "12345678"), "+OK");
  settle();
  EXPECT_TRUE(list_all({}).empty());
}

TEST_F(FaktoryWorker, WithARetryOfMinusOneItIsDeadAtOnce) {
  auto& w = worker();
  EXPECT_EQ(w.ask(push_line("12345678", R"("retry":-1)")), "+OK");
  (void)w.ask("FETCH");
  EXPECT_EQ(fail_job(w, "12345678"), "+OK");
  EXPECT_EQ(counts().dead, 1U);
}

TEST_F(FaktoryWorker, AFailureMayHaveFewOrUnusualFields) {
  push_some_jids(3);
  auto& w = worker();
  (void)w.ask("FETCH");
  (void)w.ask("FETCH");
  (void)w.ask("FETCH");
  EXPECT_EQ(w.ask(R"(FAIL {"jid":"job-0000"})"), "+OK");
  EXPECT_EQ(w.ask(R"(FAIL {"jid":"job-0001","errtype":1234,"message":null,"backtrace":null})"),
            "+OK");
  EXPECT_EQ(w.ask(R"(FAIL {"jid":"job-0002","backtrace":"one line","more":[]})"), "+OK");
  const auto jobs = list_all({});
  EXPECT_EQ(jobs.at(1).errors.at(0).type, "1234");
  EXPECT_EQ(jobs.at(2).errors.at(0).backtrace, "one line");
}

TEST_F(FaktoryWorker, AJobLimitsTheStoredLinesOfABacktrace) {
  auto& w = worker();
  EXPECT_EQ(w.ask(push_line("one-line", R"("backtrace":1)")), "+OK");
  EXPECT_EQ(w.ask(push_line("no-line-1", R"("backtrace":0)")), "+OK");
  (void)w.ask("FETCH");
  (void)w.ask("FETCH");
  EXPECT_EQ(fail_job(w, "one-line"), "+OK");
  EXPECT_EQ(fail_job(w, "no-line-1"), "+OK");
  const auto jobs = list_all({});
  EXPECT_EQ(jobs.at(0).errors.at(0).backtrace, "a:1");
  EXPECT_EQ(jobs.at(1).errors.at(0).backtrace, "");
}

// Workers repeat a failed command forever.
TEST_F(FaktoryWorker, AFailureOfAJobThatIsNotHeldIsAccepted) {
  push_some_jids(1);
  auto& w = worker();
  EXPECT_EQ(fail_job(w, "nobody-knows"), "+OK");
  (void)w.ask("FETCH");
  EXPECT_EQ(fail_job(w, "job-0000"), "+OK");
  EXPECT_EQ(fail_job(w, "job-0000"), "+OK");
  EXPECT_EQ(all().counts.failed.load(relaxed), 1U);
  EXPECT_EQ(w.ask("FAIL {}"), "-ERR the field \"jid\" is missing");
}

TEST_F(FaktoryWorker, AReportAboutALostJobDoesNotAffectItsNewHolder) {
  for (const bool fails : {true, false}) {
    push_some_jids(1);
    auto& lost = worker("a");
    (void)lost.ask("FETCH");
    lost.wire().close();
    settle();
    auto& now = worker("b");
    EXPECT_EQ(jid_in(now.ask("FETCH")), "\"job-0000\"");
    auto& back = worker("a");
    EXPECT_EQ(fails ? fail_job(back, "job-0000") : back.ask(R"(ACK {"jid":"job-0000"})"), "+OK");
    EXPECT_EQ(client().ask(R"(ACK {"jid":"job-0000"})"), "+OK") << "nor a report by a stranger";
    EXPECT_EQ(counts().running, 1U);
    const auto acked_before = all().counts.acked.load(relaxed);
    EXPECT_EQ(now.ask(R"(ACK {"jid":"job-0000"})"), "+OK");
    EXPECT_EQ(all().counts.acked.load(relaxed), acked_before + 1);
    EXPECT_EQ(counts().unfinished(), 0U);
    for (auto* const one : {&now, &back}) one->wire().close();
  }
  EXPECT_EQ(all().counts.failed.load(relaxed), 0U);
}

TEST_F(FaktoryWorker, AReportAfterAnExpiredLeaseDoesNotAffectTheNextLease) {
  push_some_jids(1);
  auto& slow = worker("a");
  (void)slow.ask("FETCH");
  pass(31min);
  pass(1min);
  auto& now = worker("b");
  EXPECT_EQ(jid_in(now.ask("FETCH")), "\"job-0000\"");
  EXPECT_EQ(fail_job(slow, "job-0000"), "+OK");
  EXPECT_EQ(counts().running, 1U);
  EXPECT_EQ(now.ask(R"(ACK {"jid":"job-0000"})"), "+OK");
  EXPECT_EQ(counts().unfinished(), 0U);
}

TEST_F(FaktoryWorker, AJobOfAnotherApiUsesItsOwnRetryPolicy) {
  push({.kind = "k", .retry = {.attempts_max = 2, .first = 1s, .jitter = 0}});
  auto& w = worker();
  (void)w.ask("FETCH");
  EXPECT_EQ(fail_job(w, "sluice-00000001"), "+OK");
  pass(1s);
  EXPECT_EQ(jid_in(w.ask("FETCH")), "\"sluice-00000001\"");
}

TEST_F(FaktoryWorker, AFailThatFailsOnTheDiskCanBeRepeated) {
  push_some_jids(1);
  auto& w = worker();
  (void)w.ask("FETCH");
  drive.fails(error_code::io_error);
  EXPECT_TRUE(fail_job(w, "job-0000").starts_with("-ERR "));
  drive.works();
  pass(2s);
  EXPECT_EQ(fail_job(w, "job-0000"), "+OK");
  EXPECT_EQ(counts().retrying, 1U);
}

TEST_F(FaktoryWorker, WhileTheServerClosesAWorkerMayFinishItsJobs) {
  push_some_jids(2);
  auto& w = worker("w");
  (void)w.ask("FETCH");
  (void)w.ask("FETCH");
  all().is_closed.store(true, relaxed);
  EXPECT_EQ(w.ask(R"(ACK {"jid":"job-0000"})"), "+OK");
  EXPECT_EQ(fail_job(w, "job-0001"), "+OK");
}

}  // namespace
}  // namespace sluice::jobs::testing::faktory_worker_test
