// Command lines, and what they ask for.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <string>
#include <vector>

#include "jobs/cli/arguments.hpp"

namespace sluice::jobs::cli {
namespace {

using namespace std::chrono_literals;

std::variant<arguments, no_command> parse(std::vector<const char*> words) {
  words.insert(words.begin(), "sluice");
  return parse_arguments(static_cast<int>(words.size()), words.data());
}

template <class Command>
Command asked(std::vector<const char*> words) {
  const auto parsed = parse(std::move(words));
  if (const auto* none = std::get_if<no_command>(&parsed)) {
    ADD_FAILURE() << none->text;
    return {};
  }
  return std::get<Command>(std::get<arguments>(parsed));
}

// What a wrong command line is told.
std::string complaint(std::vector<const char*> words) {
  const auto parsed = parse(std::move(words));
  const auto* none = std::get_if<no_command>(&parsed);
  if (none == nullptr) return "it was understood";
  EXPECT_EQ(none->code, exit_code::bad_usage);
  return none->text;
}

class environment {
 public:
  environment(const char* name, const char* value) : name_(name) { ::setenv(name, value, 1); }
  ~environment() { ::unsetenv(name_); }
  environment(const environment&) = delete;
  environment& operator=(const environment&) = delete;

 private:
  const char* name_;
};

TEST(ParseServe, HasSafeDefaults) {
  const auto serve = asked<serve_arguments>({"serve"});
  EXPECT_EQ(serve.server.listen, (listen_address{"127.0.0.1", 7433}));
  EXPECT_EQ(serve.server.sync, sync_mode::full);
  EXPECT_EQ(serve.server.shutdown_grace, 30s);
  EXPECT_FALSE(serve.server.memory);
}

TEST(ParseServe, TakesFlagsBeforeTheEnvironment) {
  const environment data("SLUICE_DATA", "/from/environment");
  const environment listen("SLUICE_LISTEN", "127.0.0.1:1");
  const environment sync("SLUICE_SYNC", "off");
  auto serve = asked<serve_arguments>({"serve"});
  EXPECT_EQ(serve.server.data, "/from/environment");
  EXPECT_EQ(serve.server.listen.port, 1);
  EXPECT_EQ(serve.server.sync, sync_mode::off);
  serve = asked<serve_arguments>({"serve", "--data", "/d", "--listen", ":2", "--sync", "interval"});
  EXPECT_EQ(serve.server.data, "/d");
  EXPECT_EQ(serve.server.listen.port, 2);
  EXPECT_EQ(serve.server.sync, sync_mode::interval);
}

TEST(ParseServe, LetsPortReplaceThatOfTheAddress) {
  const auto serve = asked<serve_arguments>({"serve", "--port", "0", "--listen", "[::1]:5"});
  EXPECT_EQ(serve.server.listen, (listen_address{"::1", 0}));
}

TEST(ParseServe, SaysWhatIsWrongWithAValue) {
  EXPECT_NE(complaint({"serve", "--sync", "maybe"}).find("full|interval|off"), std::string::npos);
  EXPECT_NE(complaint({"serve", "--listen", "0.0.0.0:1"}).find("no authentication"),
            std::string::npos);
  EXPECT_NE(complaint({"serve", "--shutdown-grace", "soon"}).find("--shutdown-grace"),
            std::string::npos);
  EXPECT_NE(complaint({"serve", "--port", "70000"}).find("--port"), std::string::npos);
  EXPECT_NE(complaint({"serve", "--max-body", "0"}).find("--max-body is from 1KB to 1GB"),
            std::string::npos);
  EXPECT_NE(complaint({"serve", "--sync", "interval", "--sync-interval", "0"})
                .find("--sync-interval is from 1ms to 1h"),
            std::string::npos);
  EXPECT_NE(complaint({"serve", "--max-connections", "0"}).find("--max-connections is from 1"),
            std::string::npos);
}

TEST(ParsePush, TakesTheKindAndTheArgs) {
  auto push = asked<push_arguments>({"push", "mail", R"({"to":1})"});
  EXPECT_EQ(push.spec.kind, "mail");
  EXPECT_EQ(push.args, R"({"to":1})");
  EXPECT_EQ(push.wait, milliseconds(30s)) << "a full queue that blocks is not waited for for ever";
  push = asked<push_arguments>({"push", "--kind", "mail", "[1]"});
  EXPECT_EQ(push.spec.kind, "mail");
  EXPECT_EQ(push.args, "[1]");
  push = asked<push_arguments>({"push", "mail", "[1,[2]]"});
  EXPECT_EQ(push.args, "[1,[2]]");
  push = asked<push_arguments>({"push", "mail", "-"});
  EXPECT_EQ(push.args, "-");
}

TEST(ParsePush, TakesEverythingThatAJobHas) {
  const auto push = asked<push_arguments>({"push",
                                           "mail",
                                           "--queue",
                                           "q",
                                           "--priority",
                                           "-3",
                                           "--at",
                                           "2026-01-31T12:00:00Z",
                                           "--unique",
                                           "k",
                                           "--unique-until",
                                           "elapsed",
                                           "--unique-for",
                                           "1h",
                                           "--attempts",
                                           "3",
                                           "--retry-first",
                                           "1s",
                                           "--retry-factor",
                                           "3",
                                           "--retry-longest",
                                           "1m",
                                           "--retry-jitter",
                                           "0",
                                           "--lease-for",
                                           "5s",
                                           "--time-limit",
                                           "10s",
                                           "--keep-for",
                                           "7d",
                                           "--metadata",
                                           "{}"});
  const job_spec& s = push.spec;
  EXPECT_EQ(s.queue, "q");
  EXPECT_EQ(s.priority, -3);
  EXPECT_EQ(s.run_at.ms, 1'769'860'800'000);
  EXPECT_EQ(s.unique, (unique_key{"k", unique_until::elapsed, 1h}));
  EXPECT_EQ(s.retry, (retry_policy{3, 1s, 3.0, 1min, 0.0}));
  EXPECT_EQ(s.lease_for, 5s);
  EXPECT_EQ(s.time_limit, 10s);
  EXPECT_EQ(s.keep_for, milliseconds(7 * 24h));
  EXPECT_EQ(s.metadata, "{}");
}

TEST(ParsePush, RefusesWhatDoesNotGoTogether) {
  EXPECT_NE(complaint({"push"}).find("which kind"), std::string::npos);
  EXPECT_NE(complaint({"push", "a", "--delay", "1s", "--at", "2026-01-31T12:00:00Z"}).find("--at"),
            std::string::npos);
  EXPECT_NE(complaint({"push", "a", "--unique-for", "1s"}).find("--unique"), std::string::npos);
  EXPECT_NE(complaint({"push", "a", "--ndjson", "f"}).find("--ndjson"), std::string::npos);
  EXPECT_NE(complaint({"push", "a", "b", "c"}), "it was understood");
  EXPECT_NE(complaint({"push", "-k", "a", "b", "c"}).find("one argument"), std::string::npos);
}

TEST(ParseConnection, TakesTheUrlFromTheEnvironment) {
  EXPECT_EQ(asked<get_arguments>({"get", "1"}).to.url, "http://127.0.0.1:7433");
  const environment url("SLUICE_URL", "http://127.0.0.1:9");
  EXPECT_EQ(asked<get_arguments>({"get", "1"}).to.url, "http://127.0.0.1:9");
  EXPECT_EQ(asked<get_arguments>({"get", "1", "--url", "http://localhost:1"}).to.url,
            "http://localhost:1");
}

TEST(ParseGet, TakesAnIdAndATime) {
  const auto get = asked<get_arguments>({"get", "42", "--wait", "1m", "--json"});
  EXPECT_EQ(get.id, 42U);
  EXPECT_EQ(get.wait, milliseconds(1min));
  EXPECT_TRUE(get.to.json);
  EXPECT_NE(complaint({"get"}).find("id"), std::string::npos);
  EXPECT_NE(complaint({"get", "abc"}).find("abc"), std::string::npos);
}

TEST(ParseWork, TakesACommandForTheShellOrAProgram) {
  EXPECT_EQ(asked<work_arguments>({"work", "--exec", "a | b"}).shell, "a | b");
  const auto work = asked<work_arguments>(
      {"work", "--queue", "a,b", "--queue", "c", "-c", "4", "--", "prog", "--flag", "[1]"});
  EXPECT_EQ(work.command, (std::vector<std::string>{"prog", "--flag", "[1]"}));
  EXPECT_EQ(work.queues, (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(work.concurrency, 4U);
  EXPECT_NE(complaint({"work"}).find("--exec"), std::string::npos);
  EXPECT_NE(complaint({"work", "--exec", "a", "--", "b"}).find("--exec"), std::string::npos);
  EXPECT_NE(complaint({"work", "--exec", "a", "-c", "0"}).find("concurrency"), std::string::npos);
}

TEST(ParseQueues, ListsOrChangesOne) {
  using action = queues_arguments::action;
  EXPECT_EQ(asked<queues_arguments>({"queues"}).what, action::list);
  const auto set =
      asked<queues_arguments>({"queues", "set", "mail", "--capacity", "10", "--capacity-bytes",
                               "64MB", "--when-full", "block", "--keep-dead", "1h", "--json"});
  EXPECT_EQ(set.what, action::set);
  EXPECT_EQ(set.name, "mail");
  EXPECT_EQ(set.patch.capacity_jobs, 10U);
  EXPECT_EQ(set.patch.capacity_bytes, 64U << 20);
  EXPECT_EQ(set.patch.when_full, overflow::block);
  EXPECT_EQ(set.patch.keep_dead, milliseconds(1h));
  EXPECT_FALSE(set.patch.paused);
  EXPECT_TRUE(set.to.json);
  EXPECT_EQ(asked<queues_arguments>({"queues", "pause", "q"}).what, action::pause);
  EXPECT_TRUE(asked<queues_arguments>({"queues", "purge", "q", "--yes"}).yes);
  EXPECT_NE(complaint({"queues", "pause"}).find("name"), std::string::npos);
  EXPECT_NE(complaint({"queues", "explode", "q"}), "it was understood");
  EXPECT_NE(complaint({"queues", "set", "q", "--when-full", "caller_runs"}), "it was understood");
}

TEST(ParseJobs, ListsOrActsOnSome) {
  using action = jobs_arguments::action;
  const auto list = asked<jobs_arguments>(
      {"jobs", "--state", "dead", "--queue", "q", "--kind", "k", "--limit", "5", "--after", "7"});
  EXPECT_EQ(list.what, action::list);
  EXPECT_EQ(list.filter.state, job_state::dead);
  EXPECT_EQ(list.filter.limit, 5U);
  EXPECT_EQ(list.filter.after, 7U);
  const auto retry = asked<jobs_arguments>({"jobs", "retry", "1", "2"});
  EXPECT_EQ(retry.what, action::retry);
  EXPECT_EQ(retry.ids, (std::vector<job_id>{1, 2}));
  EXPECT_EQ(asked<jobs_arguments>({"jobs", "delete", "3"}).what, action::remove);
  EXPECT_NE(complaint({"jobs", "--state", "lost"}).find("scheduled|ready"), std::string::npos);
  EXPECT_NE(complaint({"jobs", "--limit", "0"}).find("--limit"), std::string::npos);
  EXPECT_NE(complaint({"jobs", "cancel"}).find("ids"), std::string::npos);
}

TEST(Parse, GivesHelpWithExamplesForEveryCommand) {
  for (const char* command :
       {"serve", "push", "get", "work", "queues", "jobs", "stats", "version"}) {
    const auto parsed = parse({command, "--help"});
    const auto* none = std::get_if<no_command>(&parsed);
    ASSERT_NE(none, nullptr) << command;
    EXPECT_EQ(none->code, exit_code::ok);
    EXPECT_NE(none->text.find("Examples:\n  sluice " + std::string(command)), std::string::npos)
        << none->text;
  }
  const auto parsed = parse({"--help"});
  EXPECT_NE(std::get<no_command>(parsed).text.find("Exit codes:"), std::string::npos);
}

TEST(Parse, SaysWhereHelpIsWhenItDoesNotUnderstand) {
  EXPECT_NE(complaint({}).find("sluice --help"), std::string::npos);
  EXPECT_NE(complaint({"fly"}).find("sluice --help"), std::string::npos);
  EXPECT_NE(complaint({"get", "1", "--fast"}).find("'sluice get --help'"), std::string::npos);
  EXPECT_NE(complaint({"queues", "set", "q", "--fast"}).find("--fast"), std::string::npos);
}

}  // namespace
}  // namespace sluice::jobs::cli
