// put and use, and their errors.
#include "jobs/protocol/beanstalk/testing/beanstalk_words.hpp"

namespace sluice::jobs::beanstalk_put_test {
namespace {

using beanstalk_put_test = testing::beanstalk_words;
using namespace std::chrono_literals;

TEST_F(beanstalk_put_test, APutBecomesAJobOfTheQueue) {
  ask("put 5 0 10 5\r\nhello\r\n", "INSERTED 1\r\n");
  const job made = get(1);
  EXPECT_EQ(made.spec.queue, "default");
  EXPECT_EQ(made.spec.kind, "beanstalk");
  EXPECT_EQ(made.spec.args.data, "hello");
  EXPECT_EQ(made.spec.args.type, content_type::bytes);
  EXPECT_EQ(made.spec.priority, -5);
  EXPECT_EQ(made.spec.lease_for, 10s);
  EXPECT_EQ(made.state, job_state::ready);
}

TEST_F(beanstalk_put_test, APutIsAnsweredAfterItsCommit) {
  (void)first();
  settle();
  drive.block();
  say("put 0 0 10 1\r\na\r\n");
  drive.await_blocked();
  EXPECT_EQ(later_.pending(), 0U);
  EXPECT_EQ(first().wire().received(), 0U);
  drive.unblock();
  expect("INSERTED 1\r\n");
}

TEST_F(beanstalk_put_test, PipelinedPutsShareACommit) {
  in_one_commit([&] {
    std::string many;
    for (int i = 0; i < 50; ++i) many += "put 0 0 10 1\r\na\r\n";
    say(many);
    drive.unblock();
  });
  quiet();
  EXPECT_EQ(drive.adds().back(), 50U);
  EXPECT_EQ(counts().ready, 50U);
}

TEST_F(beanstalk_put_test, RepliesHaveTheOrderOfTheCommands) {
  say("put 0 0 10 1\r\na\r\nuse other\r\nput 0 0 10 1\r\nb\r\nlist-tube-used\r\nfoo\r\n"
      "put 0 0 10 1\r\nc\r\n");
  expect(
      "INSERTED 1\r\nUSING other\r\nINSERTED 2\r\nUSING other\r\nUNKNOWN_COMMAND\r\n"
      "INSERTED 3\r\n");
  EXPECT_EQ(get(1).spec.queue, "default");
  EXPECT_EQ(get(2).spec.queue, "other");
}

TEST_F(beanstalk_put_test, ADelayedPutWaitsForItsTime) {
  ask("put 0 30 10 1\r\na\r\n", "INSERTED 1\r\n");
  EXPECT_EQ(state(1), job_state::scheduled);
  ask("reserve-with-timeout 0\r\n", "TIMED_OUT\r\n");
  pass(30s);
  ask("reserve-with-timeout 0\r\n", "RESERVED 1 1\r\na\r\n");
}

TEST_F(beanstalk_put_test, ATimeToRunOfZeroIsASecond) {
  ask("put 0 0 0 1\r\na\r\n", "INSERTED 1\r\n");
  EXPECT_EQ(get(1).spec.lease_for, 1s);
}

TEST_F(beanstalk_put_test, TheLargestNumbersAreTaken) {
  ask("put 4294967295 4294967295 4294967295 1\r\na\r\n", "INSERTED 1\r\n");
  const job made = get(1);
  EXPECT_EQ(made.spec.priority, -4294967295);
  EXPECT_EQ(made.spec.lease_for, limits::duration_max);
  EXPECT_EQ(made.state, job_state::scheduled);
}

TEST_F(beanstalk_put_test, ABodyMayBeEmptyOrHaveAnyBytes) {
  ask("put 0 0 10 0\r\n\r\n", "INSERTED 1\r\n");
  const std::string body("\0\r\n\xff delete 1\r\n", 15);
  say("put 0 0 10 15\r\n" + body + "\r\n");
  expect("INSERTED 2\r\n");
  EXPECT_EQ(get(2).spec.args.data, body);
  ask("peek 1\r\n", "FOUND 1 0\r\n\r\n");
  ask("peek 2\r\n", "FOUND 2 15\r\n" + body + "\r\n");
}

TEST_F(beanstalk_put_test, ABodyWithoutItsEndIsRefusedAndTheNextCommandIsRead) {
  ask("put 0 0 10 5\r\nhelloXXlist-tube-used\r\n", "EXPECTED_CRLF\r\nUSING default\r\n");
  ask("put 0 0 10 5\r\nhello\rXlist-tube-used\r\n", "EXPECTED_CRLF\r\nUSING default\r\n");
  ask("put 0 0 10 5\r\nhelloXX\r\n", "EXPECTED_CRLF\r\nUNKNOWN_COMMAND\r\n");
  EXPECT_FALSE(has(1));
}

TEST_F(beanstalk_put_test, ABodyThatIsTooBigIsSkippedWithoutBeingKept) {
  server_options.job_bytes_max = 10;
  say("put 0 0 10 11\r\n");
  EXPECT_EQ(first().wire().unread(), 0U);
  for (int i = 0; i < 11; ++i) {
    say("x");
    EXPECT_EQ(first().wire().unread(), 0U);
  }
  first().expect_nothing();
  say("\r\nlist-tube-used\r\n");
  expect("JOB_TOO_BIG\r\nUSING default\r\n");
  ask("put 0 0 10 10\r\n0123456789\r\n", "INSERTED 1\r\n");
  ask("put 0 0 10 4294967295\r\nabc", "");
  first().expect_nothing();
}

TEST_F(beanstalk_put_test, ABodyThatIsTooBigAndNeverWholeIsAnsweredAtTheEnd) {
  auto skips = connect();
  skips.say("put 0 0 10 70000\r\nabc");
  skips.wire().half_close();
  skips.expect("JOB_TOO_BIG\r\n");
  skips.expect_end();
  auto late = connect();
  late.say("put 0 0 10 1\r\na\r\npeek 1\r\nput 0 0 10 70000\r\nabc");
  late.wire().half_close();
  late.expect("INSERTED 1\r\nFOUND 1 1\r\na\r\nJOB_TOO_BIG\r\n");
  late.expect_end();
}

TEST_F(beanstalk_put_test, ABodyCanArriveByteByByte) {
  for (const char c : std::string("put 0 0 10 5\r\nhello\r\nuse a\r\n")) say({&c, 1});
  expect("INSERTED 1\r\nUSING a\r\n");
}

TEST_F(beanstalk_put_test, AnInvalidNumberIsBadFormat) {
  for (const char* const wrong : {"put",
                                  "put ",
                                  "put 0",
                                  "put 0 0 10",
                                  "put 0 0 10 ",
                                  "put x 0 10 1",
                                  "put 0 x 10 1",
                                  "put 0 0 x 1",
                                  "put 0 0 10 x",
                                  "put -1 0 10 1",
                                  "put 0 -1 10 1",
                                  "put 0 0 -1 1",
                                  "put 0 0 10 -1",
                                  "put 4294967296 0 10 1",
                                  "put 0 4294967296 10 1",
                                  "put 0 0 4294967296 1",
                                  "put 0 0 10 4294967296",
                                  "put 0 0 10 99999999999999999999999",
                                  "put 0 0 10 1 ",
                                  "put 0 0 10 1 1",
                                  "put 0 0 10 1x",
                                  "put +1 0 10 1",
                                  "put 0x1 0 10 1",
                                  "put 1.0 0 10 1"}) {
    SCOPED_TRACE(wrong);
    ask(std::string(wrong) + "\r\n", "BAD_FORMAT\r\n");
  }
  EXPECT_FALSE(has(1));
}

TEST_F(beanstalk_put_test, LeadingZerosAndSpacesBeforeNumbersAreTaken) {
  ask("put 00 000 010 01\r\na\r\n", "INSERTED 1\r\n");
  ask("put   7  0   10  1\r\na\r\n", "INSERTED 2\r\n");
  EXPECT_EQ(get(2).spec.priority, -7);
}

TEST_F(beanstalk_put_test, UseNamesTheTubeOfLaterPuts) {
  ask("list-tube-used\r\n", "USING default\r\n");
  ask("use a_b+/;.$()x\r\n", "USING a_b+/;.$()x\r\n");
  ask("put 0 0 10 1\r\na\r\n", "INSERTED 1\r\n");
  EXPECT_EQ(get(1).spec.queue, "a_b+/;.$()x");
  ask("list-tube-used\r\n", "USING a_b+/;.$()x\r\n");
}

TEST_F(beanstalk_put_test, AnInvalidTubeIsBadFormat) {
  for (const std::string& wrong :
       {std::string("use"), std::string("use "), std::string("use  a"), std::string("use a "),
        std::string("use a b"), std::string("use -a"), std::string("use a@b"),
        std::string("use a\0b", 7), "use " + std::string(201, 'a'),
        std::string("use caf\xc3\xa9")}) {
    SCOPED_TRACE(wrong);
    ask(wrong + "\r\n", "BAD_FORMAT\r\n");
  }
}

TEST_F(beanstalk_put_test, ATubeHasUpToTwoHundredBytesOfTheAllowedCharacters) {
  for (const char c : std::string("aZ0+/;.$_()")) {
    const std::string name(200, c);
    SCOPED_TRACE(name);
    ask("use " + name + "\r\n", "USING " + name + "\r\n");
    ask("watch " + name + "\r\n", "WATCHING 2\r\n");
    const job_id id = put("0 0 10", "x");
    EXPECT_EQ(first().value("stats-tube " + name + "\r\n", "name"), name);
    EXPECT_EQ(get(id).spec.queue, name);
    ask("pause-tube " + name + " 0\r\n", "PAUSED\r\n");
    ask("reserve\r\n", with_body("RESERVED", id, "x"));
    ask("delete " + std::to_string(id) + "\r\n", "DELETED\r\n");
    ask("ignore " + name + "\r\n", "WATCHING 1\r\n");
  }
}

TEST_F(beanstalk_put_test, AFullQueueIsOutOfMemory) {
  configure({.capacity_jobs = 1});
  say("put 0 0 10 1\r\na\r\nput 0 0 10 1\r\nb\r\n");
  expect("INSERTED 1\r\nOUT_OF_MEMORY\r\n");
  ask("delete 1\r\n", "DELETED\r\n");
  ask("put 0 0 10 1\r\nb\r\n", "INSERTED 2\r\n");
}

TEST_F(beanstalk_put_test, APutThatAQueueDropsIsOutOfMemory) {
  configure({.capacity_jobs = 1, .when_full = overflow::drop_newest});
  say("put 0 0 10 1\r\na\r\nput 0 0 10 1\r\nb\r\n");
  expect("INSERTED 1\r\nOUT_OF_MEMORY\r\n");
}

TEST_F(beanstalk_put_test, AQueueThatBlocksDelaysThePutUntilThereIsCapacity) {
  configure({.capacity_jobs = 1, .when_full = overflow::block});
  ask("put 0 0 10 1\r\na\r\n", "INSERTED 1\r\n");
  say("put 0 0 10 1\r\nb\r\nlist-tubes\r\n");
  first().expect_nothing();
  auto other = connect();
  other.ask("delete 1\r\n", "DELETED\r\n");
  expect("INSERTED 2\r\nOK 14\r\n---\n- default\n\r\n");
}

TEST_F(beanstalk_put_test, APutWithoutCapacityInTimeIsOutOfMemory) {
  server_options.put_wait = 5s;
  configure({.capacity_jobs = 1, .when_full = overflow::block});
  ask("put 0 0 10 1\r\na\r\n", "INSERTED 1\r\n");
  say("put 0 0 10 1\r\nb\r\n");
  pass(4s);
  first().expect_nothing();
  pass(1s);
  expect("OUT_OF_MEMORY\r\n");
}

TEST_F(beanstalk_put_test, AFullDiskIsOutOfMemoryAndAFailingOneAnInternalError) {
  (void)first();
  drive.is_full();
  ask("put 0 0 10 1\r\na\r\n", "OUT_OF_MEMORY\r\n");
  drive.works();
  pass(2s);
  ask("put 0 0 10 1\r\na\r\n", "INSERTED 2\r\n");
  drive.fails(error_code::io_error);
  ask("put 0 0 10 1\r\na\r\n", "INTERNAL_ERROR\r\n");
  drive.works();
  pass(2s);
}

TEST_F(beanstalk_put_test, WhileItDrainsPutsAreRefusedAndOtherCommandsContinue) {
  ask("put 0 0 10 1\r\na\r\n", "INSERTED 1\r\n");
  server().is_draining = true;
  say("put 0 0 10 1\r\nb\r\nlist-tube-used\r\nput 0 0 10 1\r\nabc\r\nput 0 0 10 70000\r\n" +
      std::string(70'000, 'x') + "\r\n");
  expect("DRAINING\r\nUSING default\r\nEXPECTED_CRLF\r\nUNKNOWN_COMMAND\r\nJOB_TOO_BIG\r\n");
  ask("reserve\r\n", "RESERVED 1 1\r\na\r\n");
  ask("delete 1\r\n", "DELETED\r\n");
  EXPECT_EQ(first().value("stats\r\n", "draining"), "true");
}

TEST_F(beanstalk_put_test, AClosedEngineAcceptsPutsWhileThereIsCapacity) {
  (void)first();
  configure({.capacity_jobs = 1, .when_full = overflow::block});
  e().close();
  ask("put 0 0 10 1\r\na\r\n", "INSERTED 1\r\n");
  ask("put 0 0 10 1\r\na\r\n", "DRAINING\r\n");
}

TEST_F(beanstalk_put_test, AClientThatReadsNoRepliesIsBlockedAtTheLimit) {
  auto narrow = connect(4);
  settle();
  drive.block();
  std::string many;
  for (int i = 0; i < 10; ++i) many += "put 0 0 10 1\r\na\r\n";
  narrow.say(many);
  drive.await_blocked();
  EXPECT_EQ(narrow.wire().open_replies(), 4U);
  EXPECT_GT(narrow.wire().unread(), 0U);
  drive.unblock();
  quiet();
  EXPECT_EQ(narrow.wire().unread(), 0U);
  EXPECT_EQ(counts().ready, 10U);
  (void)narrow.wire().take();
}

// Clients must not use the server's own queues: the server signs and posts their jobs.
TEST_F(beanstalk_put_test, TheServersOwnQueuesAreNotTubes) {
  ask("use sluice/webhooks\r\nwatch sluice/webhooks\r\nuse sluice/\r\n",
      "BAD_FORMAT\r\nBAD_FORMAT\r\nBAD_FORMAT\r\n");
  put("0 0 10", "a");
  EXPECT_EQ(get(1).spec.queue, "default");
  ask("list-tubes-watched\r\n", "OK 14\r\n---\n- default\n\r\n");
  ask("use sluice\r\nuse my/sluice/x\r\nwatch sluices/a\r\n",
      "USING sluice\r\nUSING my/sluice/x\r\nWATCHING 2\r\n");
}

TEST_F(beanstalk_put_test, JobsInTheServersOwnQueuesAreSkipped) {
  const std::string own(webhook_queue);
  push({.queue = own, .kind = "sluice.webhook"});
  ask("pause-tube " + own + " 60\r\n", "NOT_FOUND\r\n");
  EXPECT_EQ(e().pause_left(own), 0ms);
  ask("peek 1\r\nreserve-job 1\r\ndelete 1\r\n", "NOT_FOUND\r\nNOT_FOUND\r\nNOT_FOUND\r\n");
  EXPECT_EQ(state(1), job_state::ready);
  push({.queue = own, .kind = "sluice.webhook", .run_at = time.now() + 1h});
  ask("kick-job 2\r\n", "NOT_FOUND\r\n");
  EXPECT_EQ(state(2), job_state::scheduled);
  EXPECT_EQ(first().value("stats-tube " + own + "\r\n", "current-jobs-ready"), "1");
  EXPECT_EQ(first().value("stats-job 1\r\n", "tube"), own);
}

}  // namespace
}  // namespace sluice::jobs::beanstalk_put_test
