// The stats and list commands, field by field, also for jobs of other protocols.
#include "jobs/protocol/beanstalk/detail/stats.hpp"
#include "jobs/protocol/beanstalk/testing/beanstalk_words.hpp"

namespace sluice::jobs::beanstalk_stats_test {
namespace {

using beanstalk_stats_test = testing::beanstalk_words;
using namespace std::chrono_literals;

std::string keys_of(const std::string& yaml) {
  std::string keys;
  std::size_t at = yaml.find('\n') + 1;
  while (at < yaml.size()) {
    keys += yaml.substr(at, yaml.find(':', at) - at) + " ";
    at = yaml.find('\n', at) + 1;
  }
  return keys;
}

TEST_F(beanstalk_stats_test, StatsHasEveryFieldInItsOrder) {
  const std::string all = first().text("stats\r\n");
  EXPECT_TRUE(all.starts_with("---\n"));
  EXPECT_EQ(
      keys_of(all),
      "current-jobs-urgent current-jobs-ready current-jobs-reserved current-jobs-delayed "
      "current-jobs-buried cmd-put cmd-peek cmd-peek-ready cmd-peek-delayed cmd-peek-buried "
      "cmd-reserve cmd-reserve-with-timeout cmd-delete cmd-release cmd-use cmd-watch cmd-ignore "
      "cmd-bury cmd-kick cmd-touch cmd-stats cmd-stats-job cmd-stats-tube cmd-list-tubes "
      "cmd-list-tube-used cmd-list-tubes-watched cmd-pause-tube job-timeouts total-jobs "
      "max-job-size current-tubes current-connections current-producers current-workers "
      "current-waiting total-connections pid version rusage-utime rusage-stime uptime "
      "binlog-oldest-index binlog-current-index binlog-records-migrated binlog-records-written "
      "binlog-max-size draining id hostname os platform ");
}

TEST_F(beanstalk_stats_test, StatsCountsWhatHappened) {
  server_options.version = "9.9";
  put("0 0 1", "a");
  put("0 100 10", "b");
  put("0 0 10", "c");
  ask("reserve\r\nreserve\r\nbury 3 0\r\n", "RESERVED 1 1\r\na\r\nRESERVED 3 1\r\nc\r\nBURIED\r\n");
  auto waits = connect();
  waits.say("watch other\r\nignore default\r\nreserve\r\n");
  pass(2s);
  const std::string all = first().text("stats\r\n");
  for (const char* const field : {"\ncurrent-jobs-ready: 1\n",
                                  "\ncurrent-jobs-reserved: 0\n",
                                  "\ncurrent-jobs-delayed: 1\n",
                                  "\ncurrent-jobs-buried: 1\n",
                                  "\ncmd-put: 3\n",
                                  "\ncmd-reserve: 3\n",
                                  "\ncmd-bury: 1\n",
                                  "\ncmd-watch: 1\n",
                                  "\ncmd-stats: 1\n",
                                  "\njob-timeouts: 1\n",
                                  "\ntotal-jobs: 3\n",
                                  "\nmax-job-size: 65535\n",
                                  "\ncurrent-tubes: 2\n",
                                  "\ncurrent-connections: 2\n",
                                  "\ncurrent-producers: 1\n",
                                  "\ncurrent-workers: 2\n",
                                  "\ncurrent-waiting: 1\n",
                                  "\ntotal-connections: 2\n",
                                  "\nversion: \"9.9\"\n",
                                  "\nuptime: 2\n",
                                  "\nbinlog-max-size: 10485760\n",
                                  "\ndraining: false\n"}) {
    EXPECT_NE(all.find(field), std::string::npos) << field << all;
  }
  (void)waits.wire().take();
}

TEST_F(beanstalk_stats_test, StatsTubeHasEveryFieldInItsOrder) {
  put("0 0 10", "a");
  put("0 0 10", "b");
  put("0 9 10", "c");
  ask("reserve\r\ndelete 1\r\nreserve\r\n",
      "RESERVED 1 1\r\na\r\nDELETED\r\nRESERVED 2 1\r\nb\r\n");
  EXPECT_EQ(first().text("stats-tube default\r\n"),
            "---\nname: default\ncurrent-jobs-urgent: 0\ncurrent-jobs-ready: 0\n"
            "current-jobs-reserved: 1\ncurrent-jobs-delayed: 1\ncurrent-jobs-buried: 0\n"
            "total-jobs: 3\ncurrent-using: 1\ncurrent-watching: 1\ncurrent-waiting: 0\n"
            "cmd-delete: 1\ncmd-pause-tube: 0\npause: 0\npause-time-left: 0\n");
}

TEST_F(beanstalk_stats_test, ReadyJobsOfAPriBelow1024AreUrgent) {
  for (const char* pri : {"0", "1023", "1024", "4294967295"}) put(std::string(pri) + " 0 10", "a");
  put("5 30 10", "delayed");
  ask("use other\r\n", "USING other\r\n");
  put("7 0 10", "b");
  EXPECT_EQ(first().value("stats-tube default\r\n", "current-jobs-urgent"), "2");
  EXPECT_EQ(first().value("stats-tube default\r\n", "current-jobs-ready"), "4");
  EXPECT_EQ(first().value("stats\r\n", "current-jobs-urgent"), "3");
  ask("reserve\r\n", "RESERVED 1 1\r\na\r\n");
  EXPECT_EQ(first().value("stats-tube default\r\n", "current-jobs-urgent"), "1");
}

TEST_F(beanstalk_stats_test, ATubeExistsWhileItHoldsJobsOrAClientNamesIt) {
  ask("stats-tube a\r\n", "NOT_FOUND\r\n");
  auto other = connect();
  other.ask("use a\r\n", "USING a\r\n");
  EXPECT_EQ(first().value("stats-tube a\r\n", "current-using"), "1");
  other.ask("watch b+\r\n", "WATCHING 2\r\n");
  EXPECT_EQ(first().value("stats-tube b+\r\n", "current-watching"), "1");
  EXPECT_EQ(first().text("list-tubes\r\n"), "---\n- a\n- b+\n- default\n");
  other.ask("put 0 0 10 1\r\na\r\n", "INSERTED 1\r\n");
  other.wire().close();
  EXPECT_EQ(first().text("list-tubes\r\n"), "---\n- a\n- default\n");
  ask("delete 1\r\n", "DELETED\r\n");
  EXPECT_EQ(first().text("list-tubes\r\n"), "---\n- default\n");
  ask("stats-tube a\r\nstats-tube\r\nstats-tube -a\r\n",
      "NOT_FOUND\r\nBAD_FORMAT\r\nBAD_FORMAT\r\n");
  EXPECT_EQ(first().value("stats-tube default\r\n", "name"), "default");
}

TEST_F(beanstalk_stats_test, StatsJobHasEveryFieldInItsOrder) {
  put("5 30 10", "a");
  pass(10s);
  EXPECT_EQ(first().text("stats-job 1\r\n"),
            "---\nid: 1\ntube: default\nstate: delayed\npri: 5\nage: 10\ndelay: 30\nttr: 10\n"
            "time-left: 20\nfile: 0\nreserves: 0\ntimeouts: 0\nreleases: 0\nburies: 0\nkicks: 0\n");
  ask("stats-job 99\r\nstats-job x\r\nstats-job\r\n", "NOT_FOUND\r\nBAD_FORMAT\r\nBAD_FORMAT\r\n");
}

TEST_F(beanstalk_stats_test, StatsJobCountsTheEventsOfTheJob) {
  put("5 0 4", "a");
  ask("reserve\r\n", "RESERVED 1 1\r\na\r\n");
  pass(1s);
  EXPECT_EQ(first().value("stats-job 1\r\n", "state"), "reserved");
  EXPECT_EQ(first().value("stats-job 1\r\n", "time-left"), "3");
  EXPECT_EQ(first().value("stats-job 1\r\n", "reserves"), "1");
  ask("release 1 7 20\r\n", "RELEASED\r\n");
  EXPECT_EQ(first().text("stats-job 1\r\n"),
            "---\nid: 1\ntube: default\nstate: delayed\npri: 7\nage: 1\ndelay: 20\nttr: 4\n"
            "time-left: 20\nfile: 0\nreserves: 1\ntimeouts: 0\nreleases: 1\nburies: 0\nkicks: 0\n");
  ask("kick-job 1\r\nreserve\r\n", "KICKED\r\nRESERVED 1 1\r\na\r\n");
  pass(4s);
  ask("reserve\r\nbury 1 9\r\n", "RESERVED 1 1\r\na\r\nBURIED\r\n");
  EXPECT_EQ(first().text("stats-job 1\r\n"),
            "---\nid: 1\ntube: default\nstate: buried\npri: 9\nage: 5\ndelay: 20\nttr: 4\n"
            "time-left: 0\nfile: 0\nreserves: 3\ntimeouts: 1\nreleases: 1\nburies: 1\nkicks: 1\n");
  ask("kick 1\r\n", "KICKED 1\r\n");
  EXPECT_EQ(first().value("stats-job 1\r\n", "state"), "ready");
  EXPECT_EQ(first().value("stats-job 1\r\n", "kicks"), "2");
  EXPECT_EQ(first().value("stats-job 1\r\n", "reserves"), "3");
}

TEST_F(beanstalk_stats_test, AKickOfDelayedJobsIsCountedForEachJob) {
  put("5 30 10", "a");
  put("5 20 10", "b");
  put("5 10 10", "c");
  ask("kick 2\r\n", "KICKED 2\r\n");
  EXPECT_EQ(first().value("stats-job 1\r\n", "kicks"), "0");
  EXPECT_EQ(first().value("stats-job 2\r\n", "kicks"), "1");
  EXPECT_EQ(first().value("stats-job 3\r\n", "kicks"), "1");
  ask("reserve\r\nrelease 3 5 60\r\nkick 9\r\n", "RESERVED 3 1\r\nc\r\nRELEASED\r\nKICKED 2\r\n");
  EXPECT_EQ(first().value("stats-job 3\r\n", "kicks"), "2");
  EXPECT_EQ(first().value("stats-job 1\r\n", "kicks"), "1");
}

TEST_F(beanstalk_stats_test, ABuriedJobThatIsReservedWasNotKicked) {
  put("5 0 60", "a");
  ask("reserve\r\nbury 1 5\r\nkick 1\r\nreserve\r\nbury 1 5\r\nkick-job 1\r\n",
      "RESERVED 1 1\r\na\r\nBURIED\r\nKICKED 1\r\nRESERVED 1 1\r\na\r\nBURIED\r\nKICKED\r\n");
  ask("reserve\r\nbury 1 5\r\nreserve-job 1\r\n",
      "RESERVED 1 1\r\na\r\nBURIED\r\nRESERVED 1 1\r\na\r\n");
  EXPECT_EQ(first().value("stats-job 1\r\n", "buries"), "3");
  EXPECT_EQ(first().value("stats-job 1\r\n", "kicks"), "2");
  ask("bury 1 5\r\n", "BURIED\r\n");
  EXPECT_EQ(first().value("stats-job 1\r\n", "kicks"), "2");
  ask("kick 1\r\n", "KICKED 1\r\n");
  EXPECT_EQ(first().value("stats-job 1\r\n", "kicks"), "3");
}

TEST_F(beanstalk_stats_test, TheTtrOfAJobWithoutOneIsThatOfItsQueue) {
  push({.kind = "k"});
  EXPECT_EQ(first().value("stats-job 1\r\n", "ttr"), "60");
  configure({.lease_for = 30s});
  EXPECT_EQ(first().value("stats-job 1\r\n", "ttr"), "30");
  ask("reserve-job 1\r\n", "RESERVED 1 0\r\n\r\n");
  EXPECT_EQ(first().value("stats-job 1\r\n", "time-left"), "30");
}

TEST_F(beanstalk_stats_test, ExpensiveCommandsYieldToOtherClients) {
  for (int i = 0; i < 100; ++i) push({.queue = "q" + std::to_string(i)});
  say("stats\r\nlist-tubes\r\nlist-tube-used\r\n");
  EXPECT_EQ(first().wire().unread(), 28U);
  EXPECT_TRUE(first().wire().wake());
  EXPECT_EQ(first().wire().unread(), 16U);
  EXPECT_TRUE(first().wire().wake());
  EXPECT_FALSE(first().wire().wake());
  EXPECT_TRUE(first().rest().ends_with("USING default\r\n"));
}

TEST_F(beanstalk_stats_test, ExpensiveCommandsBeforeTheEndAreAllAnswered) {
  for (int i = 0; i < 100; ++i) push({.queue = "q" + std::to_string(i)});
  say("stats\r\nlist-tubes\r\nstats\r\nlist-tube-used\r\n");
  EXPECT_EQ(first().wire().unread(), 35U);
  first().wire().half_close();
  EXPECT_EQ(first().wire().unread(), 0U);
  EXPECT_TRUE(first().wire().is_ended());
  EXPECT_TRUE(first().wire().take().ends_with("USING default\r\n"));
}

TEST_F(beanstalk_stats_test, MetricsHaveEveryCommand) {
  put("0 0 10", "a");
  ask("reserve\r\nfoo\r\n", "RESERVED 1 1\r\na\r\nUNKNOWN_COMMAND\r\n");
  std::string out;
  beanstalk::write_metrics(out, server(), {.open = 1, .accepted = 2});
  for (const char* const wanted :
       {"sluice_beanstalk_commands_total{command=\"put\"} 1\n",
        "sluice_beanstalk_commands_total{command=\"reserve\"} 1\n",
        "sluice_beanstalk_bad_commands_total 1\n", "sluice_beanstalk_reserved 1\n",
        "sluice_beanstalk_connections_total 2\n"}) {
    EXPECT_NE(out.find(wanted), std::string::npos) << wanted;
  }
  for (std::size_t i = 0; i < beanstalk::verb_count; ++i) {
    const auto name = std::string(beanstalk::to_string(static_cast<beanstalk::verb>(i)));
    EXPECT_NE(out.find("{command=\"" + name + "\"}"), std::string::npos) << name;
  }
}

TEST_F(beanstalk_stats_test, AJobOfTheEngineIsProcessedHere) {
  const job_id id =
      push({.queue = "mail:out", .kind = "mail", .args = {R"({"to":"ada"})"}, .priority = 3});
  ask("watch mail:out\r\nreserve\r\n", "WATCHING 2\r\nRESERVED 1 12\r\n{\"to\":\"ada\"}\r\n");
  EXPECT_EQ(first().value("stats-job 1\r\n", "pri"), "0");
  EXPECT_EQ(first().value("stats-job 1\r\n", "tube"), "mail:out");
  EXPECT_EQ(e().lease_of(id)->worker, "192.0.2.1:4000");
  ask("delete 1\r\n", "DELETED\r\n");
  EXPECT_FALSE(has(id));
}

TEST_F(beanstalk_stats_test, AJobThatWasPutHereIsProcessedByTheEngine) {
  put("3 0 10", "body");
  const leased_job taken = take();
  EXPECT_EQ(taken.job->spec.args.data, "body");
  EXPECT_EQ(taken.job->spec.kind, "beanstalk");
  ask("delete 1\r\nreserve-with-timeout 0\r\nstats-tube x\r\n",
      "NOT_FOUND\r\nTIMED_OUT\r\nNOT_FOUND\r\n");
  EXPECT_EQ(first().value("stats-job 1\r\n", "state"), "reserved");
  EXPECT_TRUE(ack(taken));
  ask("peek 1\r\n", "NOT_FOUND\r\n");
}

TEST_F(beanstalk_stats_test, AJobThatDiedOverAnotherProtocolIsBuried) {
  push({.kind = "k"});
  const leased_job taken = take();
  EXPECT_TRUE(fail(taken, {.type = "oops", .for_good = true}));
  EXPECT_EQ(first().value("stats-job 1\r\n", "state"), "buried");
  EXPECT_EQ(first().value("stats-tube default\r\n", "current-jobs-buried"), "1");
  ask("kick 1\r\n", "KICKED 1\r\n");
  EXPECT_EQ(state(1), job_state::ready);
}

TEST_F(beanstalk_stats_test, TwoClientsShareTheWork) {
  auto a = connect();
  auto b = connect();
  a.say("reserve\r\n");
  b.say("reserve\r\n");
  quiet();
  put("0 0 10", "1");
  put("0 0 10", "2");
  a.expect("RESERVED 1 1\r\n1\r\n");
  b.expect("RESERVED 2 1\r\n2\r\n");
  a.ask("delete 2\r\ndelete 1\r\n", "NOT_FOUND\r\nDELETED\r\n");
  b.ask("delete 2\r\n", "DELETED\r\n");
}

}  // namespace
}  // namespace sluice::jobs::beanstalk_stats_test
