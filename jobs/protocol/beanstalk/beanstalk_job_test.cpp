// Commands about one job or one tube: delete, release, bury, kick, peek, pause.
#include "jobs/protocol/beanstalk/testing/beanstalk_words.hpp"

namespace sluice::jobs::beanstalk_job_test {
namespace {

using beanstalk_job_test = testing::beanstalk_words;
using namespace std::chrono_literals;

TEST_F(beanstalk_job_test, AJobInAnyStateButReservedByAnotherCanBeDeleted) {
  put("0 0 10", "reserved");
  put("0 0 10", "buried");
  put("0 100 10", "delayed");
  put("0 0 10", "ready");
  auto worker = connect();
  worker.ask("reserve\r\nreserve\r\n", "RESERVED 1 8\r\nreserved\r\nRESERVED 2 6\r\nburied\r\n");
  worker.ask("bury 2 0\r\n", "BURIED\r\n");
  ask("delete 1\r\ndelete 2\r\ndelete 3\r\ndelete 4\r\ndelete 4\r\n",
      "NOT_FOUND\r\nDELETED\r\nDELETED\r\nDELETED\r\nNOT_FOUND\r\n");
  EXPECT_TRUE(has(1));
}

TEST_F(beanstalk_job_test, AnEndedJobIsNotFoundAlthoughItsQueueKeepsIt) {
  configure({.keep_done = 1h});
  put("0 0 10", "a");
  ask("reserve\r\ndelete 1\r\n", "RESERVED 1 1\r\na\r\nDELETED\r\n");
  EXPECT_EQ(state(1), job_state::done);
  ask("delete 1\r\npeek 1\r\nstats-job 1\r\nkick-job 1\r\nreserve-job 1\r\n",
      "NOT_FOUND\r\nNOT_FOUND\r\nNOT_FOUND\r\nNOT_FOUND\r\nNOT_FOUND\r\n");
  put("0 100 10", "b");
  EXPECT_TRUE(e().cancel(2).get());
  ask("delete 2\r\npeek 2\r\nkick-job 2\r\n", "NOT_FOUND\r\nNOT_FOUND\r\nNOT_FOUND\r\n");
  EXPECT_TRUE(has(1));
}

TEST_F(beanstalk_job_test, AClientCannotEndAJobReservedByAnother) {
  put("0 0 10", "a");
  auto worker = connect();
  worker.ask("reserve\r\n", "RESERVED 1 1\r\na\r\n");
  ask("release 1 0 0\r\nbury 1 0\r\ntouch 1\r\nkick-job 1\r\n",
      "NOT_FOUND\r\nNOT_FOUND\r\nNOT_FOUND\r\nNOT_FOUND\r\n");
  ask("release 99 0 0\r\nbury 99 0\r\ntouch 99\r\nkick-job 99\r\ndelete 99\r\ndelete 0\r\n"
      "delete 18446744073709551615\r\n",
      "NOT_FOUND\r\nNOT_FOUND\r\nNOT_FOUND\r\nNOT_FOUND\r\nNOT_FOUND\r\nNOT_FOUND\r\n"
      "NOT_FOUND\r\n");
  worker.ask("delete 1\r\n", "DELETED\r\n");
}

TEST_F(beanstalk_job_test, AReleasedJobIsReadyWithItsNewPriority) {
  put("0 0 10", "a");
  put("5 0 10", "b");
  ask("reserve\r\n", "RESERVED 1 1\r\na\r\n");
  ask("release 1 10 0\r\n", "RELEASED\r\n");
  ask("release 1 10 0\r\n", "NOT_FOUND\r\n");
  EXPECT_EQ(get(1).spec.priority, -10);
  ask("reserve\r\nreserve\r\n", "RESERVED 2 1\r\nb\r\nRESERVED 1 1\r\na\r\n");
}

TEST_F(beanstalk_job_test, AReleaseWithADelayWaitsForIt) {
  put("0 0 10", "a");
  ask("reserve\r\nrelease 1 0 30\r\n", "RESERVED 1 1\r\na\r\nRELEASED\r\n");
  ask("reserve-with-timeout 0\r\n", "TIMED_OUT\r\n");
  EXPECT_EQ(first().value("stats-job 1\r\n", "state"), "delayed");
  pass(30s);
  ask("reserve-with-timeout 0\r\n", "RESERVED 1 1\r\na\r\n");
}

TEST_F(beanstalk_job_test, ABuriedJobStaysUntilItIsKicked) {
  put("0 0 10", "a");
  ask("reserve\r\nbury 1 7\r\nbury 1 7\r\n", "RESERVED 1 1\r\na\r\nBURIED\r\nNOT_FOUND\r\n");
  const job buried = get(1);
  EXPECT_EQ(buried.state, job_state::dead);
  EXPECT_EQ(buried.errors.back().type, "buried");
  EXPECT_EQ(buried.spec.priority, -7);
  pass(1h);
  ask("reserve-with-timeout 0\r\n", "TIMED_OUT\r\n");
  ask("kick-job 1\r\nkick-job 1\r\n", "KICKED\r\nNOT_FOUND\r\n");
  ask("reserve\r\n", "RESERVED 1 1\r\na\r\n");
}

TEST_F(beanstalk_job_test, KickTakesBuriedJobsFirstAndElseDelayedOnes) {
  for (int i = 0; i < 3; ++i) put("0 0 10", "b");
  put("0 100 10", "d");
  put("0 50 10", "d");
  ask("reserve\r\nreserve\r\nreserve\r\n",
      "RESERVED 1 1\r\nb\r\nRESERVED 2 1\r\nb\r\nRESERVED 3 1\r\nb\r\n");
  ask("bury 1 0\r\nbury 2 0\r\nbury 3 0\r\n", "BURIED\r\nBURIED\r\nBURIED\r\n");
  ask("kick 0\r\nkick 2\r\nkick 10\r\nkick 1\r\nkick 18446744073709551615\r\nkick 1\r\n",
      "KICKED 0\r\nKICKED 2\r\nKICKED 1\r\nKICKED 1\r\nKICKED 1\r\nKICKED 0\r\n");
  EXPECT_EQ(counts().ready, 5U);
}

TEST_F(beanstalk_job_test, KickAffectsTheUsedTube) {
  put("0 100 10", "a");
  ask("use empty\r\nkick 10\r\nuse default\r\nkick 10\r\n",
      "USING empty\r\nKICKED 0\r\nUSING default\r\nKICKED 1\r\n");
}

TEST_F(beanstalk_job_test, ADelayedJobCanBeKickedById) {
  put("0 100 10", "a");
  put("0 0 10", "b");
  ask("kick-job 1\r\nkick-job 2\r\n", "KICKED\r\nNOT_FOUND\r\n");
  EXPECT_EQ(state(1), job_state::ready);
}

TEST_F(beanstalk_job_test, PeekShowsAJobAndChangesNothing) {
  ask("peek 1\r\npeek-ready\r\npeek-delayed\r\npeek-buried\r\n",
      "NOT_FOUND\r\nNOT_FOUND\r\nNOT_FOUND\r\nNOT_FOUND\r\n");
  put("9 0 10", "less");
  put("1 0 10", "more");
  put("0 100 10", "later");
  put("0 50 10", "sooner");
  put("0 0 10", "buried");
  ask("reserve-job 5\r\nbury 5 0\r\n", "RESERVED 5 6\r\nburied\r\nBURIED\r\n");
  ask("peek 1\r\npeek-ready\r\npeek-delayed\r\npeek-buried\r\n",
      "FOUND 1 4\r\nless\r\nFOUND 2 4\r\nmore\r\nFOUND 4 6\r\nsooner\r\nFOUND 5 6\r\nburied\r\n");
  ask("reserve-job 1\r\npeek 1\r\n", "RESERVED 1 4\r\nless\r\nFOUND 1 4\r\nless\r\n");
  ask("use other\r\npeek-ready\r\npeek 2\r\n", "USING other\r\nNOT_FOUND\r\nFOUND 2 4\r\nmore\r\n");
}

TEST_F(beanstalk_job_test, PeekBuriedShowsWhatKickTakes) {
  for (int i = 0; i < 3; ++i) put("0 0 10", "x");
  ask("reserve\r\nreserve\r\nreserve\r\n", with_body("RESERVED", 1, "x") +
                                               with_body("RESERVED", 2, "x") +
                                               with_body("RESERVED", 3, "x"));
  ask("bury 3 0\r\nbury 1 0\r\nbury 2 0\r\n", "BURIED\r\nBURIED\r\nBURIED\r\n");
  // It finds neither the buried job nor the job reserved by id.
  ask("reserve-job 1\r\n", with_body("RESERVED", 1, "x"));
  for (const job_id next : {2U, 3U}) {
    ask("peek-buried\r\nkick 1\r\n", with_body("FOUND", next, "x") + "KICKED 1\r\n");
    EXPECT_EQ(get(next).state, job_state::ready);
  }
  ask("peek-buried\r\n", "NOT_FOUND\r\n");
}

TEST_F(beanstalk_job_test, PeekDelayedSkipsReservedJobs) {
  put("0 100 10", "x");
  put("0 200 10", "x");
  ask("reserve-job 1\r\npeek-delayed\r\n",
      with_body("RESERVED", 1, "x") + with_body("FOUND", 2, "x"));
}

TEST_F(beanstalk_job_test, APausedTubeGivesNoJobsForAWhile) {
  put("0 0 10", "a");
  ask("pause-tube default 5\r\n", "PAUSED\r\n");
  EXPECT_EQ(first().value("stats-tube default\r\n", "pause"), "5");
  EXPECT_EQ(first().value("stats-tube default\r\n", "pause-time-left"), "5");
  EXPECT_EQ(first().value("stats-tube default\r\n", "cmd-pause-tube"), "1");
  ask("reserve-with-timeout 0\r\n", "TIMED_OUT\r\n");
  say("reserve\r\n");
  pass(4999ms);
  first().expect_nothing();
  pass(1ms);
  expect("RESERVED 1 1\r\na\r\n");
  EXPECT_EQ(first().value("stats-tube default\r\n", "pause"), "0");
}

TEST_F(beanstalk_job_test, APauseOfZeroEndsAPause) {
  put("0 0 10", "a");
  ask("pause-tube default 4294967295\r\n", "PAUSED\r\n");
  ask("reserve-with-timeout 0\r\n", "TIMED_OUT\r\n");
  ask("pause-tube default 0\r\n", "PAUSED\r\n");
  ask("reserve-with-timeout 0\r\n", "RESERVED 1 1\r\na\r\n");
}

TEST_F(beanstalk_job_test, ATubeThatIsOnlyUsedCanBePaused) {
  ask("pause-tube q 5\r\n", "NOT_FOUND\r\n");
  ask("use q\r\npause-tube q 5\r\nput 0 0 10 1\r\na\r\n", "USING q\r\nPAUSED\r\nINSERTED 1\r\n");
  ask("watch q\r\nreserve-with-timeout 0\r\n", "WATCHING 2\r\nTIMED_OUT\r\n");
}

TEST_F(beanstalk_job_test, QuitEndsTheConnectionAfterItsLastReply) {
  say("put 0 0 10 1\r\na\r\nquit\r\nlist-tube-used\r\n");
  expect("INSERTED 1\r\n");
  first().expect_end();
}

TEST_F(beanstalk_job_test, ALineThatIsTooLongIsBadFormatUpToItsEnd) {
  ask(std::string(222, 'a') + "\r\nlist-tube-used\r\n", "UNKNOWN_COMMAND\r\nUSING default\r\n");
  ask(std::string(223, 'a') + "\r\nlist-tube-used\r\n", "BAD_FORMAT\r\nUSING default\r\n");
  ask(std::string(5000, 'a') + "\r\nlist-tube-used\r\n", "BAD_FORMAT\r\nUSING default\r\n");
  for (int i = 0; i < 5000; ++i) say("x");
  expect("BAD_FORMAT\r\n");
  EXPECT_EQ(first().wire().unread(), 0U);
  say("\r\nlist-tube-used\r\n");
  expect("USING default\r\n");
}

TEST_F(beanstalk_job_test, UnknownCommandsAreReported) {
  ask("\r\n", "UNKNOWN_COMMAND\r\n");
  ask("foo\r\nPUT 0 0 0 0\r\n reserve\r\nstatsx\r\n",
      "UNKNOWN_COMMAND\r\nUNKNOWN_COMMAND\r\nUNKNOWN_COMMAND\r\nUNKNOWN_COMMAND\r\n");
  ask(std::string("pe\0ek 1\r\n", 9), "UNKNOWN_COMMAND\r\n");
  ask(std::string("peek 1\0\r\n", 9), "BAD_FORMAT\r\n");
  ask("list-tube-used\n", "USING default\r\n");
  ask("GET / HTTP/1.1\r\n\r\n", "UNKNOWN_COMMAND\r\n");
  first().expect_end();
}

// Every command, on a job of the tube a.
std::string all_commands(job_id id) {
  const std::string n = std::to_string(id);
  return "watch a\r\nreserve\r\nstats-job " + n + "\r\ntouch " + n + "\r\nrelease " + n +
         " 3 0\r\nreserve-with-timeout 1\r\nbury " + n +
         " 2\r\npeek-buried\r\nkick 5\r\npeek-ready\r\npeek " + n + "\r\nreserve-job " + n +
         "\r\ndelete " + n +
         "\r\nput 0 0 10 3\r\nabc\r\nlist-tubes\r\nlist-tube-used\r\nlist-tubes-watched\r\n"
         "pause-tube a 0\r\nstats-tube a\r\nignore a\r\nkick-job " +
         n + "\r\npeek-delayed\r\nstats\r\nreserve-with-timeout 0\r\n";
}

TEST_F(beanstalk_job_test, EveryCommandCanArriveInOnePieceAndByteByByte) {
  const auto talk_all = [&](bool in_one_piece) {
    auto client = connect();
    client.ask("use a\r\n", "USING a\r\n");
    const std::string all = all_commands(client.put("0 0 10", "abc"));
    if (in_one_piece) client.say(all);
    for (const char c : in_one_piece ? std::string() : all) client.say({&c, 1});
    const std::string answers = client.rest();
    EXPECT_TRUE(answers.starts_with("WATCHING 2\r\nRESERVED ")) << answers;
    EXPECT_TRUE(answers.ends_with("\r\nTIMED_OUT\r\n")) << answers;
    EXPECT_EQ(e().purge("a").get().value(), 1U);
    client.wire().close();
    return std::ranges::count(answers, '\n');
  };
  EXPECT_EQ(talk_all(true), talk_all(false));
}

TEST_F(beanstalk_job_test, AJobWhoseEndFailsOnTheDiskIsStillReserved) {
  put("0 0 100", "a");
  ask("reserve\r\n", "RESERVED 1 1\r\na\r\n");
  drive.fails(error_code::io_error);
  ask("delete 1\r\nrelease 1 5 5\r\nbury 1 5\r\n",
      "INTERNAL_ERROR\r\nINTERNAL_ERROR\r\nINTERNAL_ERROR\r\n");
  drive.works();
  pass(2s);
  EXPECT_EQ(server().reserved.load(), 1U);
  ask("delete 1\r\n", "DELETED\r\n");
  EXPECT_FALSE(has(1));
}

TEST_F(beanstalk_job_test, ACommandThatFailsOnTheDiskIsAnInternalErrorAndCanBeRepeated) {
  put("0 0 100", "a");
  put("0 1000 100", "b");
  put("0 0 100", "c");
  ask("reserve-job 3\r\nbury 3 0\r\n", "RESERVED 3 1\r\nc\r\nBURIED\r\n");
  for (const std::string once : {"delete 1", "delete 2", "delete 3", "kick-job 3", "kick 10"}) {
    drive.fails(error_code::io_error);
    ask(once + "\r\n", "INTERNAL_ERROR\r\n");
    drive.works();
    pass(2s);
  }
  ask("kick-job 3\r\nkick 10\r\n", "KICKED\r\nKICKED 1\r\n");
  ask("delete 1\r\ndelete 2\r\ndelete 3\r\n", "DELETED\r\nDELETED\r\nDELETED\r\n");
}

// The disk is slow: the client got the job before its transaction was committed.
TEST_F(beanstalk_job_test, AWorkerThatWaitsHasAJobBeforeItsPutIsAnswered) {
  put("0 0 100", "a");
  ask("reserve\r\ndelete 1\r\n", "RESERVED 1 1\r\na\r\nDELETED\r\n");
  auto worker = connect();
  worker.say("reserve\r\n");
  settle();
  drive.block();
  say("put 0 0 100 1\r\nb\r\n");
  worker.expect("RESERVED 2 1\r\nb\r\n");
  drive.await_blocked();
  EXPECT_EQ(worker.value("stats-job 2\r\n", "state"), "reserved");
  worker.ask("peek 2\r\n", "FOUND 2 1\r\nb\r\n");
  worker.say("delete 2\r\n");
  drive.unblock();
  expect("INSERTED 2\r\n");
  worker.expect("DELETED\r\n");
}

TEST_F(beanstalk_job_test, AWorkerHasLostAJobThatCouldNotBeStored) {
  put("0 0 100", "a");
  ask("reserve\r\ndelete 1\r\n", "RESERVED 1 1\r\na\r\nDELETED\r\n");
  auto worker = connect();
  worker.say("reserve\r\n");
  settle();
  drive.fails(error_code::disk_full);
  ask("put 0 0 100 1\r\nb\r\n", "INTERNAL_ERROR\r\n");
  worker.expect("RESERVED 2 1\r\nb\r\n");
  worker.ask("touch 2\r\nrelease 2 0 0\r\ndelete 2\r\n", "NOT_FOUND\r\nNOT_FOUND\r\nNOT_FOUND\r\n");
  ask("put 0 0 100 1\r\nc\r\n", "OUT_OF_MEMORY\r\n");
  drive.works();
  pass(2s);
}

}  // namespace
}  // namespace sluice::jobs::beanstalk_job_test
