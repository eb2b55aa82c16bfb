// INFO, QUEUE, FLUSH and MUTATE, the commands of operators and of client test suites.

#include "jobs/protocol/faktory/testing/faktory_words.hpp"

namespace sluice::jobs::testing::faktory_manage_test {
namespace {

class FaktoryManage : public faktory_words {
 protected:
  // Two retrying, two scheduled and two dead jobs: of each a "mail" and a "fax".
  speaker& with_some_of_each() {
    auto& c = client();
    for (const std::string kind : {"mail", "fax"}) {
      const auto line = [&](const std::string& jid, const std::string& more) {
        return R"(PUSH {"jid":")" + jid + R"(","jobtype":")" + kind + R"(","args":["of )" + jid +
               "\"]" + more + "}";
      };
      EXPECT_EQ(c.ask(line("retry-" + kind, "")), "+OK");
      (void)c.ask("FETCH");
      EXPECT_EQ(c.ask(R"(FAIL {"jid":"retry-)" + kind + "\"}"), "+OK");
      EXPECT_EQ(c.ask(line("dead-" + kind, R"(,"retry":-1)")), "+OK");
      (void)c.ask("FETCH");
      EXPECT_EQ(c.ask(R"(FAIL {"jid":"dead-)" + kind + "\"}"), "+OK");
      EXPECT_EQ(c.ask(line("later-" + kind, R"(,"at":"2026-02-01T00:00:00Z")")), "+OK");
    }
    expect_sets(2, 2, 2, 0);
    return c;
  }
  void expect_sets(std::uint64_t retries, std::uint64_t scheduled, std::uint64_t dead,
                   std::uint64_t ready) {
    const queue_counts c = counts();
    EXPECT_EQ(c.retrying, retries);
    EXPECT_EQ(c.scheduled, scheduled);
    EXPECT_EQ(c.dead, dead);
    EXPECT_EQ(c.ready, ready);
  }
};

TEST_F(FaktoryManage, InfoHasWhatClientsRead) {
  auto& c = with_some_of_each();
  EXPECT_EQ(c.ask(push_line("waiting-1")), "+OK");
  EXPECT_EQ(c.ask(push_line("waiting-2", R"("queue":"low")")), "+OK");
  (void)worker("w");
  pass(90s);
  const std::string info = c.ask("INFO");
  EXPECT_EQ(member(info, "server_utc_time"), "\"00:01:30 UTC\"");
  EXPECT_EQ(member(info, "now"), "\"2026-01-01T00:01:30.000Z\"");
  EXPECT_EQ(member(info, "tasks"),
            R"({"Busy":{"size":0},"Dead":{"size":2},"Retries":{"size":0},"Scheduled":{"size":2},)"
            R"("Workers":{"size":1,"reaped":0}})");
  EXPECT_EQ(member(info, "queues"), R"({"default":3,"low":1})");
  EXPECT_EQ(member(info, "default_size"), "3");
  EXPECT_EQ(member(info, "total_enqueued"), "4");
  EXPECT_EQ(member(info, "total_failures"), "4");
  EXPECT_EQ(member(info, "total_processed"), "4");
  EXPECT_EQ(member(info, "total_queues"), "2");
  EXPECT_EQ(member(info, "faktory_version"), "\"sluice\"");
  EXPECT_EQ(member(info, "uptime"), "90");
  EXPECT_EQ(member(info, "connections"), "2");
  EXPECT_EQ(member(info, "command_count"), "19");
  EXPECT_NE(member(info, "used_memory_mb"), "(none)");
  EXPECT_EQ(member(info, "description"), "\"Sluice\"");
  EXPECT_EQ(c.ask("INFO all"), "-ERR INFO takes no arguments");
}

TEST_F(FaktoryManage, FlushClearsEverything) {
  auto& c = with_some_of_each();
  EXPECT_EQ(c.ask(push_line("waiting-1")), "+OK");
  EXPECT_EQ(c.ask(push_line("waiting-2", R"("queue":"low")")), "+OK");
  EXPECT_EQ(jid_in(c.ask("FETCH low")), "\"waiting-2\"");
  EXPECT_EQ(c.ask("FLUSH now"), "-ERR FLUSH takes no arguments");
  EXPECT_EQ(c.ask("FLUSH"), "+OK");
  settle();
  EXPECT_TRUE(list_all({}).empty());
  EXPECT_EQ(c.ask(R"(ACK {"jid":"waiting-2"})"), "+OK");
  c.wire().close();
  settle();
  EXPECT_TRUE(list_all({}).empty());
}

TEST_F(FaktoryManage, QueuesArePausedAndResumed) {
  auto& c = client();
  EXPECT_EQ(c.ask(push_line("12345678")), "+OK");
  EXPECT_EQ(c.ask("QUEUE PAUSE default low"), "+OK");
  EXPECT_TRUE(e().queue("default")->options.paused);
  EXPECT_TRUE(e().queue("low")->options.paused);
  EXPECT_EQ(c.ask("QUEUE RESUME default"), "+OK");
  EXPECT_FALSE(e().queue("default")->options.paused);
  EXPECT_TRUE(e().queue("low")->options.paused);
  EXPECT_EQ(c.ask("QUEUE PAUSE *"), "+OK");
  EXPECT_TRUE(e().queue("default")->options.paused);
  EXPECT_EQ(c.ask("QUEUE RESUME *"), "+OK");
  EXPECT_FALSE(e().queue("low")->options.paused);
  EXPECT_EQ(jid_in(c.ask("FETCH")), "\"12345678\"");
}

TEST_F(FaktoryManage, ManyQueuesArePausedInOneCommit) {
  auto& c = client();
  std::vector<job_spec> many;
  for (int i = 0; i < 200; ++i) many.push_back({.queue = "q" + std::to_string(i), .kind = "k"});
  for (const auto& pushed : e().push_many(std::move(many)).get()) ASSERT_TRUE(pushed);
  std::uint64_t before = 0;
  in_one_commit([&] {
    before = e().stats().commits;
    c.send("QUEUE PAUSE *");
  });
  EXPECT_EQ(c.hear(), "+OK");
  EXPECT_LE(e().stats().commits - before, 4U) << "one, the previous one, and the settling ones";
  for (const queue_info& q : e().queues()) {
    EXPECT_EQ(q.options.paused, q.name != "elsewhere") << q.name;  // which did not exist yet
  }
}

TEST_F(FaktoryManage, MoreQueuesThanFitOneCommitAreAllPausedAndFlushed) {
  auto& c = client();
  std::vector<job_spec> many;
  for (int i = 0; i < 700; ++i) many.push_back({.queue = "q" + std::to_string(i), .kind = "k"});
  for (const auto& pushed : e().push_many(std::move(many)).get()) ASSERT_TRUE(pushed);
  EXPECT_EQ(c.ask("QUEUE PAUSE *"), "+OK");
  for (const queue_info& q : e().queues()) EXPECT_TRUE(q.options.paused) << q.name;
  EXPECT_EQ(c.ask("QUEUE RESUME *"), "+OK");
  for (const queue_info& q : e().queues()) EXPECT_FALSE(q.options.paused) << q.name;
  EXPECT_EQ(c.ask("FLUSH"), "+OK");
  EXPECT_TRUE(list_all({}).empty());
}

TEST_F(FaktoryManage, APauseThatFailsOnTheDiskIsAnErrorAndStops) {
  auto& c = client();
  std::vector<job_spec> many;
  for (int i = 0; i < 700; ++i) many.push_back({.queue = "q" + std::to_string(i), .kind = "k"});
  for (const auto& pushed : e().push_many(std::move(many)).get()) ASSERT_TRUE(pushed);
  drive.fails(error_code::io_error);
  EXPECT_TRUE(c.ask("QUEUE PAUSE *").starts_with("-ERR "));
  drive.works();
  pass(2s);
  for (const queue_info& q : e().queues()) EXPECT_FALSE(q.options.paused) << q.name;
}

TEST_F(FaktoryManage, QueuesAreRemovedButNotTheirRetryingAndDeadJobs) {
  auto& c = with_some_of_each();
  EXPECT_EQ(c.ask(push_line("waiting-1")), "+OK");
  EXPECT_EQ(c.ask(push_line("waiting-2")), "+OK");
  EXPECT_EQ(c.ask(push_line("waiting-3", R"("queue":"low")")), "+OK");
  EXPECT_EQ(c.ask("QUEUE REMOVE default nowhere"), "+OK");
  expect_sets(2, 2, 2, 0);
  EXPECT_EQ(counts("low").ready, 1U);
  EXPECT_EQ(c.ask("QUEUE REMOVE *"), "+OK");
  EXPECT_EQ(counts("low").ready, 0U);
}

TEST_F(FaktoryManage, ASweepEndsWithItsPageWhenTheServerStops) {
  std::vector<job_spec> many(1200, {.kind = "k", .run_at = time.now() + 1h});
  for (const auto& pushed : e().push_many(std::move(many)).get()) ASSERT_TRUE(pushed);
  auto& c = client();
  c.send(R"(MUTATE {"cmd":"clear","target":"scheduled"})");
  c.wire().finish_up();
  EXPECT_EQ(c.hear(), "-ERR Server is shutting down");
  EXPECT_EQ(counts().scheduled, 700U) << "finished actions are not undone";
  c.settle();
  EXPECT_EQ(counts().scheduled, 700U);
}

TEST_F(FaktoryManage, ASweepEndsWithItsPageWhenItsClientHasGone) {
  std::vector<job_spec> many(1200, {.kind = "k"});
  for (const auto& pushed : e().push_many(std::move(many)).get()) ASSERT_TRUE(pushed);
  auto& c = client();
  c.send("QUEUE REMOVE default");
  c.wire().close();
  c.settle();
  EXPECT_EQ(counts().ready, 700U);
}

TEST_F(FaktoryManage, ASweepFailsWhenTheEngineHasStopped) {
  std::vector<job_spec> many(1200, {.kind = "k", .run_at = time.now() + 1h});
  for (const auto& pushed : e().push_many(std::move(many)).get()) ASSERT_TRUE(pushed);
  auto& c = client();
  c.send(R"(MUTATE {"cmd":"clear","target":"scheduled"})");
  e().stop();
  EXPECT_EQ(c.hear(), "-ERR Server is shutting down");
  c.wire().close();
  engine_.reset();  // no call is possible any more
}

TEST_F(FaktoryManage, AnInvalidQueueCommandNamesTheExpectedArguments) {
  auto& c = client();
  EXPECT_EQ(c.ask("QUEUE"), "-ERR expected QUEUE PAUSE, QUEUE RESUME or QUEUE REMOVE");
  EXPECT_EQ(c.ask("QUEUE STOP a"), "-ERR expected QUEUE PAUSE, QUEUE RESUME or QUEUE REMOVE");
  EXPECT_EQ(c.ask("QUEUE PAUSE"), "-ERR expected the names of queues, or *");
  EXPECT_TRUE(c.ask("QUEUE PAUSE a@").starts_with("-ERR the name of a queue may have"));
}

TEST_F(FaktoryManage, ClearIgnoresTheFilter) {
  auto& c = with_some_of_each();
  EXPECT_EQ(c.ask(R"(MUTATE {"cmd":"clear","target":"retries","filter":{"jobtype":"none"}})"),
            "+OK");
  expect_sets(0, 2, 2, 0);
  EXPECT_EQ(c.ask(R"(MUTATE {"cmd":"clear","target":"scheduled"})"), "+OK");
  expect_sets(0, 0, 2, 0);
  EXPECT_EQ(c.ask(R"(MUTATE {"cmd":"clear","target":"dead"})"), "+OK");
  expect_sets(0, 0, 0, 0);
}

TEST_F(FaktoryManage, DiscardRemovesTheJobsOfAJobtype) {
  auto& c = with_some_of_each();
  EXPECT_EQ(c.ask(R"(MUTATE {"cmd":"discard","target":"retries","filter":{"jobtype":"fax"}})"),
            "+OK");
  EXPECT_EQ(c.ask(R"(MUTATE {"cmd":"discard","target":"scheduled","filter":{"jobtype":"fa"}})"),
            "+OK");
  EXPECT_EQ(c.ask(R"(MUTATE {"cmd":"discard","target":"dead","filter":{"jobtype":"mail"}})"),
            "+OK");
  expect_sets(1, 2, 1, 0);
}

TEST_F(FaktoryManage, RequeueTakesJobsByTheirJids) {
  auto& c = with_some_of_each();
  EXPECT_EQ(c.ask(R"(MUTATE {"cmd":"requeue","target":"retries",)"
                  R"("filter":{"jids":["retry-mail","dead-mail","other"]}})"),
            "+OK");
  expect_sets(1, 2, 2, 1);
  EXPECT_EQ(c.ask(R"(MUTATE {"cmd":"requeue","target":"dead","filter":{"jids":["dead-fax"]}})"),
            "+OK");
  EXPECT_EQ(c.ask(R"(MUTATE {"cmd":"requeue","target":"scheduled","filter":null})"), "+OK");
  expect_sets(1, 0, 1, 4);
}

TEST_F(FaktoryManage, KillTakesJobsByAPatternOfTheirWholeText) {
  auto& c = with_some_of_each();
  EXPECT_EQ(
      c.ask(R"(MUTATE {"cmd":"kill","target":"scheduled","filter":{"regexp":"*of later-m*"}})"),
      "+OK");
  expect_sets(2, 1, 3, 0);
  EXPECT_EQ(c.ask(R"(MUTATE {"cmd":"kill","target":"retries","filter":{"regexp":"of retry"}})"),
            "+OK");
  expect_sets(2, 1, 3, 0);
  EXPECT_EQ(c.ask(R"(MUTATE {"cmd":"kill","target":"retries",)"
                  R"("filter":{"regexp":"*retry*","jobtype":"mail","jids":["retry-mail"]}})"),
            "+OK");
  expect_sets(1, 1, 4, 0);
  EXPECT_EQ(c.ask(R"(MUTATE {"cmd":"kill","target":"dead"})"), "+OK");
  expect_sets(1, 1, 4, 0);
  const auto dead = list_all({.state = job_state::dead, .kind = "mail"});
  EXPECT_EQ(dead.back().errors.back().type, "Killed");
}

TEST_F(FaktoryManage, ASweepCoversMoreThanAPage) {
  auto& c = client();
  std::string line = "PUSHB [";
  for (int i = 0; i < 1200; ++i) {
    line += (i == 0 ? "" : ",") +
            job_text("job-" + std::to_string(10'000 + i), R"("at":"2026-02-01T00:00:00Z")");
  }
  EXPECT_EQ(c.ask(line + "]"), "{}");
  EXPECT_EQ(c.ask(R"(MUTATE {"cmd":"requeue","target":"scheduled","filter":{"regexp":"*job-1*"}})"),
            "+OK");
  expect_sets(0, 0, 0, 1200);
  EXPECT_EQ(c.ask("QUEUE REMOVE default"), "+OK");
  expect_sets(0, 0, 0, 0);
}

TEST_F(FaktoryManage, ManyInfosAboutManyQueuesYield) {
  for (int i = 0; i < 200; ++i) configure({}, "queue-" + std::to_string(i));
  auto& c = client();
  const std::string infos = "INFO\r\nINFO\r\nINFO\r\nEND\r\n";
  c.wire().send(infos);
  EXPECT_EQ(member(c.wire().try_read().value_or(""), "total_queues"), "200");
  for (int i = 0; i < 2; ++i) {
    EXPECT_FALSE(c.has_heard());
    EXPECT_TRUE(c.wire().wake(time.timers().now()));
    EXPECT_EQ(member(c.wire().try_read().value_or(""), "total_queues"), "200");
  }
  EXPECT_EQ(c.hear(), "+OK");
  // Also for a half-closed client.
  auto& last = client();
  last.wire().send(infos.substr(0, 12));
  last.wire().half_close();
  EXPECT_EQ(member(last.wire().try_read().value_or(""), "total_queues"), "200");
  EXPECT_FALSE(last.wire().is_ended());
  EXPECT_TRUE(last.wire().wake(time.timers().now()));
  EXPECT_EQ(member(last.wire().try_read().value_or(""), "total_queues"), "200");
  EXPECT_TRUE(last.wire().is_ended());
}

TEST_F(FaktoryManage, ASweepThatSearchesMuchTextYields) {
  auto& c = client();
  for (int i = 0; i < 40; ++i) {
    EXPECT_EQ(c.ask(R"(PUSH {"jid":"large-)" + std::to_string(10 + i) +
                    R"(","jobtype":"t","at":"2026-02-01T00:00:00Z","args":[")" +
                    std::string(60'000, 'a') + "\"]}"),
              "+OK");
  }
  const std::string hard = "*" + std::string(250, 'a') + "b*";
  for (const auto& [pattern, left] : {std::pair(hard, 40U), std::pair(std::string("*aaaa*"), 0U)}) {
    c.send(R"(MUTATE {"cmd":"discard","target":"scheduled","filter":{"regexp":")" + pattern +
           "\"}}");
    int turns = 0;
    for (;; ++turns) {
      c.settle();
      if (!c.wire().wake(time.timers().now())) break;
    }
    EXPECT_GE(turns, 5);
    EXPECT_EQ(c.hear(), "+OK");
    EXPECT_EQ(counts().scheduled, left);
  }
}

TEST_F(FaktoryManage, ASweepThatYieldedEndsWithItsClient) {
  auto& c = client();
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(c.ask(R"(PUSH {"jid":"large-)" + std::to_string(10 + i) +
                    R"(","jobtype":"t","at":"2026-02-01T00:00:00Z","args":[")" +
                    std::string(60'000, 'a') + "\"]}"),
              "+OK");
  }
  c.send(R"(MUTATE {"cmd":"discard","target":"scheduled","filter":{"regexp":"*aaaa*"}})");
  c.settle();
  c.wire().close();
  settle();
  EXPECT_GT(counts().scheduled, 0U);
  EXPECT_LT(counts().scheduled, 10U);
}

TEST_F(FaktoryManage, JobsOfALimitedOrPausedQueueCanBeKilled) {
  auto& c = client();
  const std::string later = R"("queue":"narrow","at":"2026-02-01T00:00:00Z")";
  configure({.rate = 0.001, .rate_burst = 1, .concurrency = 1}, "narrow");
  EXPECT_EQ(c.ask(push_line("retries-1", R"("queue":"narrow")")), "+OK");
  (void)c.ask("FETCH narrow");
  EXPECT_EQ(c.ask(R"(FAIL {"jid":"retries-1"})"), "+OK");
  configure({.rate = 1000}, "narrow");
  EXPECT_EQ(c.ask(push_line("running-1", R"("queue":"narrow")")), "+OK");
  EXPECT_EQ(jid_in(c.ask("FETCH narrow")), "\"running-1\"");
  std::string line = "PUSHB [";
  for (int i = 0; i < 700; ++i) {
    line += (i == 0 ? "" : ",") + job_text("job-" + std::to_string(10'000 + i), later);
  }
  EXPECT_EQ(c.ask(line + "]"), "{}");
  EXPECT_EQ(c.ask("QUEUE PAUSE narrow"), "+OK");
  EXPECT_EQ(c.ask(R"(MUTATE {"cmd":"kill","target":"scheduled"})"), "+OK");
  EXPECT_EQ(c.ask(R"(MUTATE {"cmd":"kill","target":"retries"})"), "+OK");
  EXPECT_EQ(counts("narrow").dead, 701U);
  EXPECT_EQ(counts("narrow").running, 1U);
  EXPECT_EQ(c.ask(R"(ACK {"jid":"running-1"})"), "+OK");
}

TEST_F(FaktoryManage, AKilledJobIsDeadDespiteItsRetries) {
  auto& c = client();
  for (const std::string retry : {"-1", "0", "1", "25"}) {
    EXPECT_EQ(
        c.ask(push_line("job-of-" + retry, R"("at":"2026-02-01T00:00:00Z","retry":)" + retry)),
        "+OK");
  }
  EXPECT_EQ(c.ask(R"(MUTATE {"cmd":"kill","target":"scheduled"})"), "+OK");
  expect_sets(0, 0, 4, 0);
  EXPECT_EQ(c.ask(R"(MUTATE {"cmd":"requeue","target":"dead"})"), "+OK");
  expect_sets(0, 0, 0, 4);
}

TEST_F(FaktoryManage, ADiskFailureIsAnError) {
  auto& c = with_some_of_each();
  EXPECT_EQ(c.ask(push_line("waiting-1")), "+OK");
  for (const std::string line :
       {R"(MUTATE {"cmd":"clear","target":"retries"})",
        R"(MUTATE {"cmd":"requeue","target":"scheduled"})",
        R"(MUTATE {"cmd":"kill","target":"scheduled"})", "QUEUE REMOVE default", "FLUSH"}) {
    drive.fails(error_code::io_error);
    EXPECT_TRUE(c.ask(line).starts_with("-ERR ")) << line;
    drive.works();
    pass(2s);
  }
}

TEST_F(FaktoryManage, AFlushThatCannotEndTheFetchedJobsIsAnErrorAndLeavesThemFetched) {
  auto& c = client();
  EXPECT_EQ(c.ask(push_line("fetched-1")), "+OK");
  (void)c.ask("FETCH");
  settle();
  drive.fails(error_code::io_error);
  EXPECT_TRUE(c.ask("FLUSH").starts_with("-ERR "));
  drive.works();
  pass(2s);
  EXPECT_EQ(counts().running, 1U);
  EXPECT_EQ(c.ask(R"(ACK {"jid":"fetched-1"})"), "+OK");
  EXPECT_EQ(counts().unfinished(), 0U);
}

TEST_F(FaktoryManage, TheServersOwnQueueIsSkipped) {
  const std::string own(webhook_queue);
  push({.queue = own, .kind = "sluice.webhook"});
  push({.queue = own, .kind = "sluice.webhook", .run_at = time.now() + 24h});
  auto& c = client();
  for (const std::string cmd : {"clear", "discard", "requeue", "kill"}) {
    EXPECT_EQ(c.ask(R"(MUTATE {"cmd":")" + cmd + R"(","target":"scheduled"})"), "+OK");
  }
  EXPECT_EQ(c.ask("QUEUE REMOVE * " + own), "+OK");
  EXPECT_EQ(c.ask("FLUSH"), "+OK");
  EXPECT_EQ(counts(own).ready, 1U);
  EXPECT_EQ(counts(own).scheduled, 1U);
}

TEST_F(FaktoryManage, AnInvalidMutationNamesTheExpectedFields) {
  auto& c = client();
  EXPECT_EQ(c.ask("MUTATE {}"), "-ERR the field \"cmd\" is missing");
  EXPECT_EQ(c.ask(R"(MUTATE {"cmd":"kill"})"), "-ERR the field \"target\" is missing");
  EXPECT_EQ(c.ask(R"(MUTATE {"cmd":"eat","target":"dead"})"),
            R"x(-ERR cmd: expected "kill", "requeue", "discard" or "clear" (line 1, column 8))x");
  EXPECT_EQ(c.ask(R"(MUTATE {"cmd":"kill","target":"queues"})"),
            R"x(-ERR target: expected "retries", "scheduled" or "dead" (line 1, column 24))x");
}

TEST_F(FaktoryManage, PatternsMatchAsInRedis) {
  using faktory::matches;
  EXPECT_TRUE(matches("*", ""));
  EXPECT_TRUE(matches("*", "anything"));
  EXPECT_TRUE(matches("a*c", "abbbc"));
  EXPECT_FALSE(matches("a*c", "abbbd"));
  EXPECT_TRUE(matches("*a*b*", "xxaxxbxx"));
  EXPECT_FALSE(matches("*b*a*", "xxaxxbxx"));
  EXPECT_TRUE(matches("a?c", "abc"));
  EXPECT_FALSE(matches("a?c", "ac"));
  EXPECT_TRUE(matches("[abc]x", "bx"));
  EXPECT_FALSE(matches("[^abc]x", "bx"));
  EXPECT_TRUE(matches("[a-c]x", "bx"));
  EXPECT_TRUE(matches("[c-a]x", "bx"));
  EXPECT_TRUE(matches("\\*", "*"));
  EXPECT_FALSE(matches("\\*", "a"));
  EXPECT_FALSE(matches("", "a"));
  EXPECT_TRUE(matches("", ""));
  EXPECT_FALSE(matches("[", "a"));
  EXPECT_TRUE(matches("\\", "\\"));
  EXPECT_FALSE(matches(std::string(100, '*') + "b", std::string(100'000, 'a')));
  EXPECT_TRUE(matches(std::string(63, 'a') + "?b", std::string(64, 'a') + "b"));
  EXPECT_TRUE(matches("*" + std::string(200, 'a') + "[^a]*c", std::string(500, 'a') + "bc"));
  EXPECT_FALSE(matches("*" + std::string(200, 'a') + "[^a]*c", std::string(199, 'a') + "bc"));
  std::string hard;
  for (int i = 0; i < 30; ++i) hard += "*a";
  EXPECT_FALSE(matches(hard + "b", std::string(20'000, 'a')));
}

}  // namespace
}  // namespace sluice::jobs::testing::faktory_manage_test
