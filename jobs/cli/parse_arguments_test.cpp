// Parsing of command lines.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <string>
#include <vector>

#include "jobs/cli/arguments.hpp"

namespace sluice::jobs::cli::parse_arguments_test {
namespace {

using namespace std::chrono_literals;

std::variant<arguments, no_command> parse(std::vector<const char*> words) {
  words.insert(words.begin(), "sluice");
  return parse_arguments(static_cast<int>(words.size()), words.data());
}

template <class Command>
Command parse_as(std::vector<const char*> words) {
  const auto parsed = parse(std::move(words));
  if (const auto* none = std::get_if<no_command>(&parsed)) {
    ADD_FAILURE() << none->text;
    return {};
  }
  return std::get<Command>(std::get<arguments>(parsed));
}

// Returns the error of an invalid command line.
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
  const auto serve = parse_as<serve_arguments>({"serve"});
  EXPECT_EQ(serve.server.listen, (listen_address{"127.0.0.1", 7433}));
  EXPECT_EQ(serve.server.sync, sync_mode::full);
  EXPECT_EQ(serve.server.shutdown_grace, 30s);
  EXPECT_FALSE(serve.server.memory);
}

TEST(ParseServe, PrefersFlagsToTheEnvironment) {
  const environment data("SLUICE_DATA", "/from/environment");
  const environment listen("SLUICE_LISTEN", "127.0.0.1:1");
  const environment sync("SLUICE_SYNC", "off");
  auto serve = parse_as<serve_arguments>({"serve"});
  EXPECT_EQ(serve.server.data, "/from/environment");
  EXPECT_EQ(serve.server.listen.port, 1);
  EXPECT_EQ(serve.server.sync, sync_mode::off);
  serve =
      parse_as<serve_arguments>({"serve", "--data", "/d", "--listen", ":2", "--sync", "interval"});
  EXPECT_EQ(serve.server.data, "/d");
  EXPECT_EQ(serve.server.listen.port, 2);
  EXPECT_EQ(serve.server.sync, sync_mode::interval);
}

TEST(ParseServe, ReplacesThePortOfTheAddress) {
  const auto serve = parse_as<serve_arguments>({"serve", "--port", "0", "--listen", "[::1]:5"});
  EXPECT_EQ(serve.server.listen, (listen_address{"::1", 0}));
}

TEST(ParseServe, ReportsAnInvalidValue) {
  EXPECT_NE(complaint({"serve", "--sync", "maybe"}).find("full|interval|off"), std::string::npos);
  EXPECT_NE(complaint({"serve", "--listen", "example.com:1"}).find("--listen"), std::string::npos);
  EXPECT_NE(complaint({"serve", "--shutdown-grace", "soon"}).find("--shutdown-grace"),
            std::string::npos);
  EXPECT_NE(complaint({"serve", "--port", "70000"}).find("--port"), std::string::npos);
  EXPECT_NE(complaint({"serve", "--max-body", "0"}).find("--max-body must be from 1KB to 1GB"),
            std::string::npos);
  EXPECT_NE(complaint({"serve", "--sync", "interval", "--sync-interval", "0"})
                .find("--sync-interval must be from 1ms to 1h"),
            std::string::npos);
  EXPECT_NE(complaint({"serve", "--max-connections", "0"}).find("--max-connections must be from 1"),
            std::string::npos);
}

TEST(ParsePush, TakesTheKindAndTheArgs) {
  auto push = parse_as<push_arguments>({"push", "mail", R"({"to":1})"});
  EXPECT_EQ(push.spec.kind, "mail");
  EXPECT_EQ(push.args, R"({"to":1})");
  EXPECT_EQ(push.wait, milliseconds(30s))
      << "the wait for a full queue that blocks must be limited";
  push = parse_as<push_arguments>({"push", "--kind", "mail", "[1]"});
  EXPECT_EQ(push.spec.kind, "mail");
  EXPECT_EQ(push.args, "[1]");
  push = parse_as<push_arguments>({"push", "mail", "[1,[2]]"});
  EXPECT_EQ(push.args, "[1,[2]]");
  push = parse_as<push_arguments>({"push", "mail", "-"});
  EXPECT_EQ(push.args, "-");
}

TEST(ParsePush, TakesAllFieldsOfAJob) {
  const auto push = parse_as<push_arguments>({"push",
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

TEST(ParsePush, RejectsContradictoryFlags) {
  EXPECT_NE(complaint({"push"}).find("KIND: is missing"), std::string::npos);
  EXPECT_NE(complaint({"push", "a", "--delay", "1s", "--at", "2026-01-31T12:00:00Z"}).find("--at"),
            std::string::npos);
  EXPECT_NE(complaint({"push", "a", "--unique-for", "1s"}).find("--unique"), std::string::npos);
  EXPECT_NE(complaint({"push", "a", "--ndjson", "f"}).find("--ndjson"), std::string::npos);
  EXPECT_NE(complaint({"push", "a", "b", "c"}), "it was understood");
  EXPECT_NE(complaint({"push", "-k", "a", "b", "c"}).find("one argument"), std::string::npos);
}

TEST(ParseConnection, TakesTheUrlFromTheEnvironment) {
  EXPECT_EQ(parse_as<get_arguments>({"get", "1"}).server.url, "http://127.0.0.1:7433");
  const environment url("SLUICE_URL", "http://127.0.0.1:9");
  EXPECT_EQ(parse_as<get_arguments>({"get", "1"}).server.url, "http://127.0.0.1:9");
  EXPECT_EQ(parse_as<get_arguments>({"get", "1", "--url", "http://localhost:1"}).server.url,
            "http://localhost:1");
}

TEST(ParseGet, TakesAnIdAndATime) {
  const auto get = parse_as<get_arguments>({"get", "42", "--wait", "1m", "--json"});
  EXPECT_EQ(get.id, 42U);
  EXPECT_EQ(get.wait, milliseconds(1min));
  EXPECT_TRUE(get.server.json);
  EXPECT_NE(complaint({"get"}).find("id"), std::string::npos);
  EXPECT_NE(complaint({"get", "abc"}).find("abc"), std::string::npos);
}

TEST(ParseWork, TakesACommandForTheShellOrAProgram) {
  EXPECT_EQ(parse_as<work_arguments>({"work", "--exec", "a | b"}).shell, "a | b");
  const auto work = parse_as<work_arguments>(
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
  EXPECT_EQ(parse_as<queues_arguments>({"queues"}).operation, action::list);
  const auto set =
      parse_as<queues_arguments>({"queues", "set", "mail", "--capacity", "10", "--capacity-bytes",
                                  "64MB", "--when-full", "block", "--keep-dead", "1h", "--json"});
  EXPECT_EQ(set.operation, action::set);
  EXPECT_EQ(set.name, "mail");
  EXPECT_EQ(set.patch.capacity_jobs, 10U);
  EXPECT_EQ(set.patch.capacity_bytes, 64U << 20);
  EXPECT_EQ(set.patch.when_full, overflow::block);
  EXPECT_EQ(set.patch.keep_dead, milliseconds(1h));
  EXPECT_FALSE(set.patch.paused);
  EXPECT_TRUE(set.server.json);
  EXPECT_EQ(parse_as<queues_arguments>({"queues", "pause", "q"}).operation, action::pause);
  EXPECT_TRUE(parse_as<queues_arguments>({"queues", "purge", "q", "--yes"}).yes);
  EXPECT_NE(complaint({"queues", "pause"}).find("name"), std::string::npos);
  EXPECT_NE(complaint({"queues", "explode", "q"}), "it was understood");
  EXPECT_NE(complaint({"queues", "set", "q", "--when-full", "caller_runs"}), "it was understood");
}

TEST(ParseJobs, ListsOrActsOnSome) {
  using action = jobs_arguments::action;
  const auto list = parse_as<jobs_arguments>(
      {"jobs", "--state", "dead", "--queue", "q", "--kind", "k", "--limit", "5", "--after", "7"});
  EXPECT_EQ(list.operation, action::list);
  EXPECT_EQ(list.filter.state, job_state::dead);
  EXPECT_EQ(list.filter.limit, 5U);
  EXPECT_EQ(list.filter.after, 7U);
  const auto retry = parse_as<jobs_arguments>({"jobs", "retry", "1", "2"});
  EXPECT_EQ(retry.operation, action::retry);
  EXPECT_EQ(retry.ids, (std::vector<job_id>{1, 2}));
  EXPECT_EQ(parse_as<jobs_arguments>({"jobs", "delete", "3"}).operation, action::remove);
  EXPECT_NE(complaint({"jobs", "--state", "lost"}).find("scheduled|held|ready"), std::string::npos);
  EXPECT_NE(complaint({"jobs", "--limit", "0"}).find("--limit"), std::string::npos);
  EXPECT_NE(complaint({"jobs", "cancel"}).find("ids"), std::string::npos);
}

TEST(ParsePush, TakesDependenciesAndABatch) {
  const auto push =
      parse_as<push_arguments>({"push", "a", "--key", "k", "--batch", "9", "--after", "1,2:end",
                                "--after", "3:failure", "--webhook", "https://example.com/hook"});
  EXPECT_EQ(push.spec.key, "k");
  EXPECT_EQ(push.spec.batch, 9U);
  EXPECT_EQ(push.spec.webhook, "https://example.com/hook");
  EXPECT_EQ(push.spec.after,
            (std::vector<dependency>{{.on = 1},
                                     {.on = 2, .step = {}, .when = after_when::end},
                                     {.on = 3, .step = {}, .when = after_when::failure}}));
  for (const char* wrong : {"x", "0", "-1", "1:", "1:never", "99999999999999999999"}) {
    EXPECT_NE(complaint({"push", "a", "--after", wrong}).find("--after"), std::string::npos)
        << wrong;
  }
}

TEST(ParseQueues, TakesLimitsAndDelivery) {
  const auto set = parse_as<queues_arguments>({"queues",
                                               "set",
                                               "q",
                                               "--rate",
                                               "600/m",
                                               "--burst",
                                               "20",
                                               "--concurrency",
                                               "5",
                                               "--weight",
                                               "3",
                                               "--key-concurrency",
                                               "2",
                                               "--key-rate",
                                               "5/s",
                                               "--deliver-url",
                                               "https://example.com",
                                               "--deliver-concurrency",
                                               "4",
                                               "--deliver-timeout",
                                               "5s"});
  EXPECT_EQ(set.patch.rate, 10.0);
  EXPECT_EQ(set.patch.rate_burst, 20U);
  EXPECT_EQ(set.patch.concurrency, 5U);
  EXPECT_EQ(set.patch.weight, 3U);
  EXPECT_EQ(set.patch.key_concurrency, 2U);
  EXPECT_EQ(set.patch.key_rate, 5.0);
  EXPECT_EQ(set.patch.deliver_url, "https://example.com");
  EXPECT_EQ(set.patch.deliver_concurrency, 4U);
  EXPECT_EQ(set.patch.deliver_timeout, milliseconds(5s));
  EXPECT_NE(complaint({"queues", "set", "q", "--rate", "often"}).find("--rate"), std::string::npos);
}

TEST(ParseCron, TakesAScheduleAndAJob) {
  using action = cron_arguments::action;
  EXPECT_EQ(parse_as<cron_arguments>({"cron"}).operation, action::list);
  const auto set =
      parse_as<cron_arguments>({"cron", "set", "n", "*/5 * * * *", "mail", "[1,[2]]", "--zone",
                                "Europe/Berlin", "--missed", "all", "--paused", "--queue", "q"});
  EXPECT_EQ(set.operation, action::set);
  EXPECT_EQ(set.spec.name, "n");
  EXPECT_EQ(set.spec.schedule, "*/5 * * * *");
  EXPECT_EQ(set.spec.zone, "Europe/Berlin");
  EXPECT_EQ(set.spec.missed, missed_runs::all);
  EXPECT_TRUE(set.spec.paused);
  EXPECT_EQ(set.spec.job.kind, "mail");
  EXPECT_EQ(set.spec.job.queue, "q");
  EXPECT_EQ(set.args, "[1,[2]]");
  EXPECT_EQ(parse_as<cron_arguments>({"cron", "next", "@daily"}).spec.schedule, "@daily");
  EXPECT_NE(complaint({"cron", "set", "n", "@daily", "k", "--missed", "some"}).find("skip|one|all"),
            std::string::npos);
  EXPECT_NE(complaint({"cron", "next", "@daily", "--times", "0"}).find("--times"),
            std::string::npos);
}

TEST(ParseBatch, TakesAFileOrAnId) {
  using action = batch_arguments::action;
  EXPECT_EQ(parse_as<batch_arguments>({"batch"}).operation, action::list);
  const auto create =
      parse_as<batch_arguments>({"batch", "create", "-f", "w.json", "--wait", "1m"});
  EXPECT_EQ(create.operation, action::create);
  EXPECT_EQ(create.file, "w.json");
  EXPECT_EQ(create.wait, milliseconds(1min));
  EXPECT_EQ(parse_as<batch_arguments>({"batch", "graph", "7"}).id, 7U);
  EXPECT_EQ(parse_as<batch_arguments>({"batch", "cancel", "7", "-y"}).operation, action::cancel);
  EXPECT_NE(complaint({"batch", "show"}).find("id"), std::string::npos);
}

TEST(ParseEvents, TakesTypes) {
  const auto events = parse_as<events_arguments>(
      {"events", "--type", "dead,retrying", "--type", "done", "--queue", "q", "--from", "0"});
  EXPECT_EQ(events.request.types,
            (std::vector<event_type>{event_type::dead, event_type::retrying, event_type::done}));
  EXPECT_EQ(events.request.after, 0U);
  EXPECT_FALSE(parse_as<events_arguments>({"events"}).request.after);
  EXPECT_NE(complaint({"events", "--type", "boom"}).find("pushed|released"), std::string::npos);
}

TEST(ParseExport, TakesStates) {
  const auto args = parse_as<export_arguments>({"export", "--state", "ready,dead", "--to", "f"});
  EXPECT_EQ(args.states, (std::vector<job_state>{job_state::ready, job_state::dead}));
  EXPECT_EQ(args.file, "f");
  EXPECT_NE(complaint({"export", "--state", "lost"}).find("scheduled|held|ready"),
            std::string::npos);
}

TEST(ParseToken, TakesRolesAndQueues) {
  const auto token =
      parse_as<token_arguments>({"token", "create", "--name", "ci", "--role", "push,work",
                                 "--queue", "mail-*", "--expires", "90d", "--data", "d"});
  EXPECT_EQ(token.operation, token_arguments::action::create);
  EXPECT_EQ(token.data, "d");
  EXPECT_EQ(token.make.roles, (role_set{role::push, role::work}));
  EXPECT_EQ(token.make.queues, std::vector<std::string>{"mail-*"});
  EXPECT_EQ(token.lasts, milliseconds(90 * 24h));
}

TEST(ParseCheck, TakesAFolderOrAFile) {
  EXPECT_EQ(parse_as<check_arguments>({"check"}).path, "data");
  EXPECT_EQ(parse_as<check_arguments>({"check", "--data", "/d"}).path, "/d");
  EXPECT_EQ(parse_as<check_arguments>({"check", "backup.db"}).path, "backup.db");
  EXPECT_NE(complaint({"check", "f", "--data", "d"}), "it was understood");
  EXPECT_NE(complaint({"backup"}).find("--to"), std::string::npos);
}

TEST(Parse, HasHelpWithExamplesForEveryCommand) {
  for (const char* command :
       {"serve",  "push",   "get",    "work",  "queues",     "jobs", "stats",
        "top",    "events", "logs",   "batch", "cron",       "plan", "export",
        "import", "check",  "backup", "token", "completion", "man",  "version"}) {
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

TEST(Parse, PointsToTheHelpOnAnError) {
  EXPECT_NE(complaint({}).find("sluice --help"), std::string::npos);
  EXPECT_NE(complaint({"fly"}).find("sluice --help"), std::string::npos);
  EXPECT_NE(complaint({"get", "1", "--fast"}).find("'sluice get --help'"), std::string::npos);
  EXPECT_NE(complaint({"queues", "set", "q", "--fast"}).find("--fast"), std::string::npos);
}

}  // namespace
}  // namespace sluice::jobs::cli::parse_arguments_test
