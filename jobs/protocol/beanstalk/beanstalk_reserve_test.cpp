// The reserve commands, DEADLINE_SOON, and the ends of reserved jobs.
#include "jobs/protocol/beanstalk/testing/beanstalk_words.hpp"

namespace sluice::jobs::beanstalk_reserve_test {
namespace {

using beanstalk_reserve_test = testing::beanstalk_words;
using namespace std::chrono_literals;

TEST_F(beanstalk_reserve_test, AReserveGivesTheBodyAsItWas) {
  put("0 0 10", "hello");
  ask("reserve\r\n", "RESERVED 1 5\r\nhello\r\n");
  EXPECT_EQ(state(1), job_state::running);
  ask("delete 1\r\n", "DELETED\r\n");
  EXPECT_FALSE(has(1));
  ask("delete 1\r\n", "NOT_FOUND\r\n");
}

TEST_F(beanstalk_reserve_test, TheMostUrgentJobOfAllWatchedTubesIsFirst) {
  say("use a\r\nput 10 0 10 1\r\n1\r\nuse b\r\nput 5 0 10 1\r\n2\r\nuse a\r\nput 5 0 10 1\r\n3\r\n"
      "put 4294967295 0 10 1\r\n4\r\nput 0 0 10 1\r\n5\r\n");
  expect(
      "USING a\r\nINSERTED 1\r\nUSING b\r\nINSERTED 2\r\nUSING a\r\nINSERTED 3\r\n"
      "INSERTED 4\r\nINSERTED 5\r\n");
  auto worker = connect();
  worker.ask("watch a\r\nwatch b\r\nignore default\r\n",
             "WATCHING 2\r\nWATCHING 3\r\nWATCHING 2\r\n");
  worker.say("reserve\r\nreserve\r\nreserve\r\nreserve\r\nreserve\r\n");
  worker.expect(
      "RESERVED 5 1\r\n5\r\nRESERVED 2 1\r\n2\r\nRESERVED 3 1\r\n3\r\n"
      "RESERVED 1 1\r\n1\r\nRESERVED 4 1\r\n4\r\n");
}

TEST_F(beanstalk_reserve_test, AReserveWaitsForAJobAndBlocksTheCommandsBehindIt) {
  say("reserve\r\nlist-tube-used\r\nwatch a\r\n");
  first().expect_nothing();
  EXPECT_EQ(server().waiting.load(), 1U);
  auto producer = connect();
  EXPECT_EQ(producer.value("stats-tube default\r\n", "current-waiting"), "1");
  producer.ask("put 0 0 10 1\r\na\r\n", "INSERTED 1\r\n");
  expect("RESERVED 1 1\r\na\r\nUSING default\r\nWATCHING 2\r\n");
  EXPECT_EQ(server().waiting.load(), 0U);
}

TEST_F(beanstalk_reserve_test, PipelinedReservesAreServedTogetherUpToTheNumberOfJobs) {
  say("reserve\r\nreserve\r\nreserve\r\nlist-tube-used\r\n");
  first().expect_nothing();
  auto producer = connect();
  producer.say("put 0 0 10 1\r\na\r\nput 0 0 10 1\r\nb\r\n");
  producer.expect("INSERTED 1\r\nINSERTED 2\r\n");
  expect("RESERVED 1 1\r\na\r\nRESERVED 2 1\r\nb\r\n");
  first().expect_nothing();
  producer.ask("put 0 0 10 1\r\nc\r\n", "INSERTED 3\r\n");
  expect("RESERVED 3 1\r\nc\r\nUSING default\r\n");
}

// A megabyte, and one more job.
TEST_F(beanstalk_reserve_test, JobsLeasedForSeveralReservesAreKeptUpToALimit) {
  constexpr int jobs = 16;
  server_options.job_bytes_max = 1 << 20;
  const std::string body(400 << 10, 'x');
  for (int i = 0; i < jobs; ++i) put("0 0 10", body);
  std::string reserves;
  for (int i = 0; i < jobs; ++i) reserves += "reserve\r\n";
  say(reserves);
  for (job_id id = 1; id <= jobs; ++id) expect(with_body("RESERVED", id, body));
  // Three at a time: 13 were released, then 10, 7, 4 and 1.
  EXPECT_EQ(e().stats().given_back, 35U);
  EXPECT_EQ(e().stats().running, 16U);
}

TEST_F(beanstalk_reserve_test, DeletesAndReservesInTurnAreServedInOrder) {
  for (int i = 0; i < 6; ++i) put("0 0 10", std::to_string(i));
  say("reserve\r\nreserve\r\n");
  expect("RESERVED 1 1\r\n0\r\nRESERVED 2 1\r\n1\r\n");
  say("delete 1\r\nreserve\r\ndelete 2\r\nreserve\r\ndelete 3\r\nreserve\r\n");
  expect(
      "DELETED\r\nRESERVED 3 1\r\n2\r\nDELETED\r\nRESERVED 4 1\r\n3\r\nDELETED\r\n"
      "RESERVED 5 1\r\n4\r\n");
  EXPECT_EQ(counts().running, 2U);
  EXPECT_EQ(counts().ready, 1U);
}

// With a limit of three replies, the second reserve is not read before the deletes are committed,
// so its job is available.
TEST_F(beanstalk_reserve_test, DeletesOfReservedJobsDoNotSeparateReserves) {
  for (int i = 0; i < 4; ++i) put("0 0 10", std::to_string(i));
  auto narrow = connect(3);
  narrow.ask("reserve\r\nreserve\r\n", "RESERVED 1 1\r\n0\r\nRESERVED 2 1\r\n1\r\n");
  settle();
  drive.block();
  narrow.say("delete 1\r\nreserve\r\ndelete 2\r\nreserve\r\n");
  drive.await_blocked();
  EXPECT_EQ(e().stats().leased, 4U);
  drive.unblock();
  narrow.expect("DELETED\r\nRESERVED 3 1\r\n2\r\nDELETED\r\nRESERVED 4 1\r\n3\r\n");
}

TEST_F(beanstalk_reserve_test, ADeleteBetweenReservesFindsAJobThatIsReady) {
  for (int i = 0; i < 3; ++i) put("0 0 10", std::to_string(i));
  say("reserve\r\ndelete 2\r\nreserve\r\n");
  expect("RESERVED 1 1\r\n0\r\nDELETED\r\nRESERVED 3 1\r\n2\r\n");
  EXPECT_FALSE(has(2));
}

TEST_F(beanstalk_reserve_test, ADeleteBetweenReservesFindsTheJobOfTheFirstReserve) {
  for (int i = 0; i < 3; ++i) put("0 0 10", std::to_string(i));
  say("reserve\r\ndelete 1\r\nreserve\r\ndelete 2\r\nreserve\r\ndelete 2\r\n");
  expect(
      "RESERVED 1 1\r\n0\r\nDELETED\r\nRESERVED 2 1\r\n1\r\nDELETED\r\n"
      "RESERVED 3 1\r\n2\r\nNOT_FOUND\r\n");
}

TEST_F(beanstalk_reserve_test, ADeleteBetweenReservesFindsAJobWhoseLeaseExpired) {
  put("0 0 1", "a");
  ask("reserve\r\n", "RESERVED 1 1\r\na\r\n");
  put("0 0 10", "b");
  put("5 0 10", "c");
  pass(1s);
  say("reserve\r\ndelete 1\r\nreserve\r\n");
  expect("RESERVED 2 1\r\nb\r\nDELETED\r\nRESERVED 3 1\r\nc\r\n");
}

// A delete frees a slot of the queue's concurrency limit.
TEST_F(beanstalk_reserve_test, AReserveGetsAJobReleasedByThePreviousDelete) {
  put("0 0 10", "a");
  put("0 0 10", "b");
  configure({.concurrency = 1});
  ask("reserve\r\n", "RESERVED 1 1\r\na\r\n");
  ask("reserve-with-timeout 0\r\n", "TIMED_OUT\r\n");
  say("delete 1\r\nreserve-with-timeout 0\r\nlist-tube-used\r\n");
  expect("DELETED\r\nRESERVED 2 1\r\nb\r\nUSING default\r\n");
}

TEST_F(beanstalk_reserve_test, AReserveAfterADeleteGetsAnAvailableJob) {
  options.running_max = 1;
  put("0 0 100", "a");
  put("0 0 100", "b");
  ask("reserve\r\n", "RESERVED 1 1\r\na\r\n");
  say("delete 1\r\nreserve\r\n");
  expect("DELETED\r\nRESERVED 2 1\r\nb\r\n");
}

TEST_F(beanstalk_reserve_test, AClientThatLeavesWhileAReserveWaitsForItsDeletesTakesNothing) {
  auto worker = connect();
  put("0 0 10", "a");
  put("0 0 10", "b");
  configure({.concurrency = 1});
  worker.ask("reserve\r\n", "RESERVED 1 1\r\na\r\n");
  settle();
  drive.block();
  worker.say("delete 1\r\nreserve-with-timeout 0\r\n");
  drive.await_blocked();
  worker.wire().close();
  drive.unblock();
  quiet();
  EXPECT_EQ(counts().ready, 1U);
  EXPECT_EQ(counts().running, 0U);
}

TEST_F(beanstalk_reserve_test, PipelinedDeletesShareACommit) {
  for (int i = 0; i < 20; ++i) put("0 0 10", "x");
  std::string reserves;
  std::string deletes;
  for (int i = 1; i <= 20; ++i) {
    reserves += "reserve\r\n";
    deletes += "delete " + std::to_string(i) + "\r\n";
  }
  say(reserves);
  quiet();
  (void)first().wire().take();
  const std::uint64_t before = e().stats().commits;
  say(deletes);
  quiet();
  std::string answers;
  for (int i = 0; i < 20; ++i) answers += "DELETED\r\n";
  EXPECT_EQ(first().wire().take(), answers);
  EXPECT_EQ(e().stats().acked, 20U);
  EXPECT_LE(e().stats().commits, before + 2);
}

TEST_F(beanstalk_reserve_test, ATimeoutOfZeroDoesNotWait) {
  ask("reserve-with-timeout 0\r\n", "TIMED_OUT\r\n");
  put("0 0 10", "a");
  ask("reserve-with-timeout 0\r\nreserve-with-timeout 0\r\n", "RESERVED 1 1\r\na\r\nTIMED_OUT\r\n");
}

TEST_F(beanstalk_reserve_test, ATimeoutEndsTheWait) {
  say("reserve-with-timeout 5\r\n");
  pass(4s);
  first().expect_nothing();
  pass(1s);
  expect("TIMED_OUT\r\n");
  say("reserve-with-timeout 5\r\n");
  pass(4s);
  connect().put("0 0 10", "a");
  expect("RESERVED 1 1\r\na\r\n");
}

TEST_F(beanstalk_reserve_test, AJobDueByTheTimeoutIsReturnedEvenIfBothAreDetectedLate) {
  put("0 2 10", "a");
  say("reserve-with-timeout 2\r\n");
  first().expect_nothing();
  pass(1min);
  expect("RESERVED 1 1\r\na\r\n");
}

TEST_F(beanstalk_reserve_test, ADelayIsNeverCutShort) {
  pass(300us);
  put("0 2 10", "a");
  pass(2s - 1ns);
  ask("reserve-with-timeout 0\r\n", "TIMED_OUT\r\n");
  pass(1ms);
  ask("reserve-with-timeout 0\r\n", "RESERVED 1 1\r\na\r\n");
}

TEST_F(beanstalk_reserve_test, ATimeoutBelowZeroMeansNoLimit) {
  say("reserve-with-timeout -1\r\n");
  pass(1000h);
  first().expect_nothing();
  connect().put("0 0 10", "a");
  expect("RESERVED 1 1\r\na\r\n");
}

TEST_F(beanstalk_reserve_test, TheLongestTimeoutWaits) {
  say("reserve-with-timeout 18446744073709551615\r\n");
  first().expect_nothing();
  connect().put("0 0 10", "a");
  expect("RESERVED 1 1\r\na\r\n");
}

TEST_F(beanstalk_reserve_test, AReservedJobThatIsNotEndedInTimeIsReadyAgain) {
  put("0 0 2", "a");
  ask("reserve\r\n", "RESERVED 1 1\r\na\r\n");
  auto other = connect();
  other.say("reserve\r\n");
  pass(1999ms);
  other.expect_nothing();
  pass(1ms);
  other.expect("RESERVED 1 1\r\na\r\n");
  ask("delete 1\r\n", "NOT_FOUND\r\n");
  ask("release 1 0 0\r\nbury 1 0\r\ntouch 1\r\n", "NOT_FOUND\r\nNOT_FOUND\r\nNOT_FOUND\r\n");
  other.ask("delete 1\r\n", "DELETED\r\n");
}

TEST_F(beanstalk_reserve_test, AJobWhoseLeaseExpiredCanBeDeletedWhileItIsNotReserved) {
  put("0 0 1", "a");
  ask("reserve\r\n", "RESERVED 1 1\r\na\r\n");
  pass(1s);
  EXPECT_EQ(state(1), job_state::ready);
  ask("delete 1\r\n", "DELETED\r\n");
  EXPECT_FALSE(has(1));
}

TEST_F(beanstalk_reserve_test, InTheLastSecondAReserveThatWouldWaitGetsDeadlineSoon) {
  put("0 0 1", "a");
  ask("reserve\r\n", "RESERVED 1 1\r\na\r\n");
  ask("reserve\r\n", "DEADLINE_SOON\r\n");
  ask("reserve-with-timeout 0\r\n", "DEADLINE_SOON\r\n");
  ask("reserve-with-timeout 10\r\n", "DEADLINE_SOON\r\n");
  ask("delete 1\r\n", "DELETED\r\n");
  ask("reserve-with-timeout 0\r\n", "TIMED_OUT\r\n");
}

TEST_F(beanstalk_reserve_test, ReadyJobsAreGivenInTheLastSecondToo) {
  put("0 0 1", "a");
  put("0 0 10", "b");
  ask("reserve\r\nreserve\r\n", "RESERVED 1 1\r\na\r\nRESERVED 2 1\r\nb\r\n");
}

TEST_F(beanstalk_reserve_test, AWaitEndsWhenTheLastSecondOfAReservedJobBegins) {
  put("0 0 10", "a");
  put("0 0 20", "b");
  ask("reserve\r\nreserve\r\n", "RESERVED 1 1\r\na\r\nRESERVED 2 1\r\nb\r\n");
  say("reserve\r\n");
  pass(8999ms);
  first().expect_nothing();
  pass(1ms);
  expect("DEADLINE_SOON\r\n");
  ask("touch 1\r\n", "TOUCHED\r\n");
  say("reserve-with-timeout 5\r\n");
  pass(5s);
  expect("TIMED_OUT\r\n");
}

TEST_F(beanstalk_reserve_test, AnEndThatIsNoLongerNearDoesNotEndTheWait) {
  put("0 0 5", "a");
  put("0 0 60", "b");
  ask("reserve\r\nreserve\r\n", "RESERVED 1 1\r\na\r\nRESERVED 2 1\r\nb\r\n");
  ask("delete 1\r\n", "DELETED\r\n");
  say("reserve-with-timeout 30\r\n");
  pass(10s);
  first().expect_nothing();
  pass(20s);
  expect("TIMED_OUT\r\n");
  say("reserve\r\n");
  pass(29s);
  expect("DEADLINE_SOON\r\n");
}

TEST_F(beanstalk_reserve_test, AReserveThatOutlastsItsLeasesGetsTheJobsAgain) {
  put("0 0 3", "a");
  ask("reserve\r\n", "RESERVED 1 1\r\na\r\n");
  say("reserve\r\n");
  pass(2s);
  expect("DEADLINE_SOON\r\n");
  say("reserve\r\n");
  expect("DEADLINE_SOON\r\n");
  pass(1s);
  ask("reserve\r\n", "RESERVED 1 1\r\na\r\n");
  ask("delete 1\r\n", "DELETED\r\n");
}

TEST_F(beanstalk_reserve_test, TouchRestartsTheTimeToRun) {
  put("0 0 10", "a");
  ask("reserve\r\n", "RESERVED 1 1\r\na\r\n");
  for (int i = 0; i < 5; ++i) {
    pass(9s);
    ask("touch 1\r\n", "TOUCHED\r\n");
  }
  EXPECT_EQ(first().value("stats-job 1\r\n", "time-left"), "10");
  pass(10s);
  ask("touch 1\r\n", "NOT_FOUND\r\n");
  EXPECT_EQ(server().reserved.load(), 0U);
}

TEST_F(beanstalk_reserve_test, AConnectionThatClosesReleasesItsJobsAtOnce) {
  auto worker = connect();
  for (int i = 0; i < 3; ++i) put("0 0 100", "a");
  worker.say("reserve\r\nreserve\r\n");
  worker.expect("RESERVED 1 1\r\na\r\nRESERVED 2 1\r\na\r\n");
  worker.wire().close();
  quiet();
  EXPECT_EQ(counts().ready, 3U);
  EXPECT_EQ(get(1).attempts, 0U);
  ask("reserve\r\n", "RESERVED 1 1\r\na\r\n");
}

TEST_F(beanstalk_reserve_test, AQuitReleasesJobsAtOnceEvenIfTheSocketStaysOpen) {
  auto worker = connect();
  for (int i = 0; i < 3; ++i) put("0 0 100", "a");
  worker.say("reserve\r\nreserve\r\ndelete 1\r\nreserve-job 3\r\nquit\r\n");
  worker.expect("RESERVED 1 1\r\na\r\nRESERVED 2 1\r\na\r\nDELETED\r\nRESERVED 3 1\r\na\r\n");
  worker.expect_end();
  ask("reserve-with-timeout 0\r\nreserve-with-timeout 0\r\nreserve-with-timeout 0\r\n",
      "RESERVED 2 1\r\na\r\nRESERVED 3 1\r\na\r\nTIMED_OUT\r\n");
  EXPECT_EQ(server().reserved.load(), 2U);
  EXPECT_EQ(server().connections.load(), 1U);
}

TEST_F(beanstalk_reserve_test, AQuitBehindAReserveThatWaitsWaitsToo) {
  auto worker = connect();
  worker.say("reserve\r\nquit\r\n");
  worker.expect_nothing();
  const job_id id = put("0 0 100", "a");
  worker.expect(with_body("RESERVED", id, "a"));
  worker.expect_end();
  ask("reserve-with-timeout 0\r\n", with_body("RESERVED", id, "a"));
}

TEST_F(beanstalk_reserve_test, AConnectionThatClosesWhileItWaitsTakesNothing) {
  auto worker = connect();
  worker.say("reserve\r\nreserve\r\n");
  worker.expect_nothing();
  worker.wire().close();
  quiet();
  EXPECT_EQ(server().waiting.load(), 0U);
  put("0 0 100", "a");
  quiet();
  EXPECT_EQ(counts().ready, 1U);
}

TEST_F(beanstalk_reserve_test, JobsLeasedForReservesThatAreNotReachedAreReleased) {
  for (int i = 0; i < 5; ++i) put("0 0 100", "a");
  auto narrow = connect(2);
  settle();
  drive.block();
  narrow.say("use x\r\nput 0 0 9 1\r\na\r\nreserve\r\nreserve\r\nreserve\r\n");
  drive.await_blocked();
  drive.unblock();
  quiet();
  narrow.wire().close();
  quiet();
  EXPECT_EQ(counts().ready, 5U);
}

TEST_F(beanstalk_reserve_test, AClientThatClosedItsSideDoesNotWait) {
  auto worker = connect();
  worker.say("reserve\r\nreserve-with-timeout 10\r\nlist-tube-used\r\n");
  worker.expect_nothing();
  worker.wire().half_close();
  worker.expect("TIMED_OUT\r\nTIMED_OUT\r\nUSING default\r\n");
  worker.expect_end();
}

TEST_F(beanstalk_reserve_test, CommandsBeforeTheEndAreExecuted) {
  auto producer = connect();
  producer.say("put 0 0 10 1\r\na\r\nreserve\r\ndelete 1\r\nput 0 0 10 4\r\nab");
  producer.wire().half_close();
  producer.expect("INSERTED 1\r\nRESERVED 1 1\r\na\r\nDELETED\r\n");
  producer.expect_end();
}

TEST_F(beanstalk_reserve_test, AServerThatStopsEndsTheWait) {
  auto worker = connect();
  worker.say("reserve\r\nlist-tube-used\r\n");
  worker.expect_nothing();
  worker.wire().finish_up();
  worker.expect("TIMED_OUT\r\n");
  worker.expect_end();
}

TEST_F(beanstalk_reserve_test, AClosingEngineEndsConnectionsWithoutReservedJobs) {
  put("0 0 100", "a");
  auto holder = connect();
  holder.ask("reserve\r\n", "RESERVED 1 1\r\na\r\n");
  auto idle = connect();
  idle.say("reserve\r\n");
  holder.say("reserve\r\n");
  quiet();
  e().close();
  idle.expect("TIMED_OUT\r\n");
  idle.expect_end();
  holder.expect("TIMED_OUT\r\n");
  holder.ask("delete 1\r\n", "DELETED\r\n");
}

TEST_F(beanstalk_reserve_test, TooManyReservedJobsAreOutOfMemory) {
  options.running_max = 1;
  put("0 0 100", "a");
  put("0 0 100", "b");
  ask("reserve\r\n", "RESERVED 1 1\r\na\r\n");
  ask("reserve\r\n", "OUT_OF_MEMORY\r\n");
}

TEST_F(beanstalk_reserve_test, ReserveJobTakesAJobInAnyStateButReserved) {
  put("0 0 10", "ready");
  put("0 100 10", "delayed");
  put("0 0 10", "buried");
  auto other = connect();
  other.ask("reserve-job 3\r\nbury 3 0\r\n", "RESERVED 3 6\r\nburied\r\nBURIED\r\n");
  ask("reserve-job 1\r\n", "RESERVED 1 5\r\nready\r\n");
  ask("reserve-job 2\r\n", "RESERVED 2 7\r\ndelayed\r\n");
  ask("reserve-job 3\r\n", "RESERVED 3 6\r\nburied\r\n");
  ask("reserve-job 3\r\n", "NOT_FOUND\r\n");
  other.ask("reserve-job 1\r\nreserve-job 99\r\nreserve-job 0\r\n",
            "NOT_FOUND\r\nNOT_FOUND\r\nNOT_FOUND\r\n");
  ask("delete 1\r\ndelete 2\r\ndelete 3\r\n", "DELETED\r\nDELETED\r\nDELETED\r\n");
}

TEST_F(beanstalk_reserve_test, ReserveJobTakesFromATubeThatIsPaused) {
  put("0 0 10", "a");
  ask("pause-tube default 60\r\nreserve-with-timeout 0\r\nreserve-job 1\r\n",
      "PAUSED\r\nTIMED_OUT\r\nRESERVED 1 1\r\na\r\n");
}

TEST_F(beanstalk_reserve_test, ReserveJobTakesFromTubesThatAreNotWatched) {
  put("0 0 10", "a");
  auto other = connect();
  other.ask("watch x\r\nignore default\r\nreserve-job 1\r\n",
            "WATCHING 2\r\nWATCHING 1\r\nRESERVED 1 1\r\na\r\n");
  other.ask("delete 1\r\n", "DELETED\r\n");
  EXPECT_EQ(first().value("stats-tube default\r\n", "cmd-delete"), "1");
}

TEST_F(beanstalk_reserve_test, WatchAndIgnoreCountTheTubes) {
  ask("watch a\r\nwatch a\r\nignore a\r\nignore a\r\nignore default\r\n",
      "WATCHING 2\r\nWATCHING 2\r\nWATCHING 1\r\nWATCHING 1\r\nNOT_IGNORED\r\n");
  ask("watch -a\r\nignore -a\r\nwatch\r\nignore\r\n",
      "BAD_FORMAT\r\nBAD_FORMAT\r\nBAD_FORMAT\r\nBAD_FORMAT\r\n");
  ask("watch b\r\nwatch c+\r\nlist-tubes-watched\r\n",
      "WATCHING 2\r\nWATCHING 3\r\nOK 23\r\n---\n- default\n- b\n- c+\n\r\n");
}

TEST_F(beanstalk_reserve_test, WatchingTooManyTubesIsOutOfMemory) {
  for (int i = 2; i <= 1000; ++i) {
    ask("watch t" + std::to_string(i) + "\r\n", "WATCHING " + std::to_string(i) + "\r\n");
  }
  ask("watch one-more\r\n", "OUT_OF_MEMORY\r\n");
  ask("watch t5\r\n", "WATCHING 1000\r\n");
  put("0 0 10", "a");
  ask("reserve\r\n", "RESERVED 1 1\r\na\r\n");
}

}  // namespace
}  // namespace sluice::jobs::beanstalk_reserve_test
