// push, get, jobs, logs: single jobs and lists of jobs.
#include "jobs/cli/detail/command_set.hpp"
#include "jobs/cli/detail/flags.hpp"

namespace sluice::jobs::cli::detail {
namespace {

std::optional<unique_until> unique_until_from(std::string_view word) {
  if (word == "started") return unique_until::started;
  if (word == "done") return unique_until::done;
  if (word == "elapsed") return unique_until::elapsed;
  return std::nullopt;
}

// Parses ID, ID:end, ID:failure or ID:success.
result<dependency> parse_dependency(const std::string& text) {
  const auto refused = [&] {
    return error{error_code::invalid,
                 "expected the number of a job or batch, optionally with :success, :end or "
                 ":failure, found '" +
                     text + "'"};
  };
  const auto colon = text.find(':');
  const std::string number = text.substr(0, colon);
  dependency parsed;
  if (number.empty() || number.size() > 19 ||
      number.find_first_not_of("0123456789") != std::string::npos) {
    return refused();
  }
  parsed.on = std::stoull(number);
  if (parsed.on == 0) return refused();
  if (colon != std::string::npos) {
    const auto when = after_when_from(text.substr(colon + 1));
    if (!when) return refused();
    parsed.when = *when;
  }
  return parsed;
}

// KIND and ARGS as two words instead of a list: CLI11 would split a [1,2] in a list.
struct push_words {
  push_arguments push;
  std::string kind;
  std::optional<std::string> first;
  std::optional<std::string> second;

  arguments finish() {
    if (!push.ndjson.empty()) {
      if (first || !kind.empty()) {
        refuse("--ndjson", "every line has its own kind and args: remove KIND and ARGS");
      }
      return push;
    }
    if (kind.empty()) {
      if (!first) refuse("KIND", "is missing: use sluice push KIND [ARGS]");
      push.spec.kind = *first;
      push.args = second.value_or("");
    } else {
      if (second) refuse("ARGS", "must be one argument: put quotes around it");
      push.spec.kind = kind;
      push.args = first.value_or("");
    }
    return push;
  }
};

void add_push(command_set& commands) {
  auto& words = commands.keep<push_words>();
  push_arguments& push = words.push;
  CLI::App& c =
      commands.add("push", "Push jobs. They are durable when the command returns.",
                   "  sluice push mail '{\"to\":\"ada@example.com\"}'\n"
                   "  sluice push thumbnail @picture.json --queue images --priority 5\n"
                   "  generate | sluice push import - --bytes\n"
                   "  sluice push report --delay 1h --unique daily-report\n"
                   "  sluice push ship --key order-7 --after 41 --after 42:end\n"
                   "  sluice push --ndjson jobs.ndjson      (one {\"kind\":...,\"args\":...} a "
                   "line)",
                   [&words] { return words.finish(); });
  add_connection(c, push.server);
  c.add_option("KIND", words.first, "the kind of job");
  c.add_option("ARGS", words.second, "its args: JSON, @FILE, or - for standard input");
  c.add_option("-k,--kind", words.kind, "the kind, instead of the first argument");
  c.add_flag("--bytes", push.as_bytes, "args are bytes, not JSON");
  auto* delay = duration_option(c, "--delay", push.delay, "earliest start, from now");
  parsed_option(c, "--at", push.spec.run_at, "earliest start (2026-01-31T12:00:00Z)", "TIME",
                [](const std::string& text) { return parse_time(text); })
      ->excludes(delay);
  add_job_options(c, push.spec);
  parsed_list(c, "--after", push.spec.after,
              "run only after this job or batch is done, or has ended, or has failed",
              "ID[:end|:failure]", parse_dependency);
  c.add_option("--batch", push.spec.batch, "its batch")->type_name("ID");
  c.add_option("--ndjson", push.ndjson, "push every line of a file (or -), each a job in JSON")
      ->type_name("FILE");
  c.add_flag_callback(
      "--all-or-nothing", [&push] { push.mode = bulk::all_or_nothing; },
      "with --ndjson: push each request of up to a thousand lines as a whole or not at all");
  duration_option(c, "--wait", push.wait,
                  "wait for capacity in a full queue that blocks (30s; at least 1s)");
  c.add_flag("-q,--quiet", push.quiet, "print ids only");
}

void add_get(command_set& commands) {
  auto& get = commands.keep<get_arguments>();
  CLI::App& c =
      commands.add("get", "Show a job; with --wait, when it has ended.",
                   "  sluice get 42\n"
                   "  sluice get 42 --wait 30s --json\n"
                   "With --wait the exit code is 0 if the job is done, 1 if it is dead or "
                   "cancelled, and\n6 if it has not ended in time.",
                   [&get]() -> arguments { return get; });
  add_connection(c, get.server);
  c.add_option("id", get.id, "the job's number")->required();
  duration_option(c, "--wait", get.wait, "wait this long for its end");
}

void add_jobs(command_set& commands) {
  auto& jobs = commands.keep<jobs_arguments>();
  CLI::App& c = commands.add("jobs", "List jobs; or cancel, retry or delete jobs.",
                             "  sluice jobs --state dead --queue mail\n"
                             "  sluice jobs --all --json\n"
                             "  sluice jobs retry 17 18 19\n"
                             "  sluice jobs cancel 42",
                             [&jobs]() -> arguments { return jobs; });
  add_connection(c, jobs.server);
  c.require_subcommand(0, 1);
  c.add_option("--queue", jobs.filter.queue, "only of this queue");
  word_option(c, "--state", jobs.filter.state, "only in this state", job_state_words,
              job_state_from);
  c.add_option("--kind", jobs.filter.kind, "only of this kind");
  c.add_option("--batch", jobs.filter.batch, "only of this batch")->type_name("ID");
  auto* limit = c.add_option("--limit", jobs.filter.limit, "largest number of jobs")
                    ->check(CLI::Range(std::size_t{1}, std::size_t{1000}))
                    ->capture_default_str();
  c.add_option("--after", jobs.filter.after, "start after this id")->type_name("ID");
  c.add_flag("--all", jobs.all, "all jobs, without a limit")->excludes(limit);
  const auto add = [&](const char* name, const char* summary, jobs_arguments::action operation) {
    CLI::App& sub = *c.add_subcommand(name, summary);
    sub.fallthrough();
    sub.add_option("ids", jobs.ids, "the jobs' numbers")->required();
    sub.final_callback([&jobs, operation] { jobs.operation = operation; });
  };
  using action = jobs_arguments::action;
  add("cancel", "Cancel jobs; the worker of a running job is notified.", action::cancel);
  add("retry", "Make dead, cancelled or waiting jobs ready now.", action::retry);
  add("delete", "Delete jobs in any state except running.", action::remove);
}

void add_logs(command_set& commands) {
  auto& logs = commands.keep<logs_arguments>();
  CLI::App& c = commands.add("logs", "Print the log lines of a job's workers.",
                             "  sluice logs 42\n"
                             "  sluice logs 42 --follow",
                             [&logs]() -> arguments { return logs; });
  add_connection(c, logs.server);
  c.add_option("id", logs.id, "the job's number")->required();
  c.add_option("--after", logs.after, "only lines after the one with this number");
  c.add_flag("-f,--follow", logs.follow, "continue until the job has ended");
}

}  // namespace

void add_connection(CLI::App& c, connection_arguments& into) {
  c.add_option("--url", into.url, "address of the server")
      ->envname("SLUICE_URL")
      ->capture_default_str();
  c.add_option("--token-file", into.token_file,
               "file with the token in its first line; or the token itself in SLUICE_TOKEN")
      ->envname("SLUICE_TOKEN_FILE")
      ->type_name("FILE");
  c.add_option("--ca-file", into.ca_file, "certificate authorities of an https server (PEM)")
      ->envname("SLUICE_CA_FILE")
      ->type_name("FILE");
  c.add_flag("--json", into.json, "print JSON, for programs");
}

void add_job_options(CLI::App& c, job_spec& spec) {
  c.add_option("--queue", spec.queue, "the queue")->capture_default_str();
  c.add_option("--priority", spec.priority, "larger is sooner")->capture_default_str();
  c.add_option("--key", spec.key, "jobs with the same key run one at a time, in order");
  auto* key =
      c.add_option("--unique", spec.unique.key, "push nothing if a job of the queue has this key");
  word_option(c, "--unique-until", spec.unique.until, "how long the key is taken (done)",
              "started|done|elapsed", unique_until_from)
      ->needs(key);
  duration_option(c, "--unique-for", spec.unique.lasts, "for --unique-until elapsed")->needs(key);
  c.add_option("--attempts", spec.retry.attempts_max, "largest number of attempts")
      ->capture_default_str();
  duration_option(c, "--retry-first", spec.retry.first, "delay after the first failure (15s)");
  c.add_option("--retry-factor", spec.retry.factor, "growth of the delay at each failure")
      ->capture_default_str();
  duration_option(c, "--retry-longest", spec.retry.longest, "longest delay (6h)");
  c.add_option("--retry-jitter", spec.retry.jitter, "random share of a delay")
      ->capture_default_str();
  duration_option(c, "--lease-for", spec.lease_for, "duration of a lease without a heartbeat");
  duration_option(c, "--time-limit", spec.time_limit, "longest duration of an attempt");
  duration_option(c, "--keep-for", spec.keep_for, "retention after its end");
  c.add_option("--metadata", spec.metadata, "a JSON object stored with the job")->type_name("JSON");
  c.add_option("--webhook", spec.webhook, "URL to which its end is posted")->type_name("URL");
}

void add_job_commands(command_set& commands) {
  add_push(commands);
  add_get(commands);
  add_jobs(commands);
  add_logs(commands);
}

}  // namespace sluice::jobs::cli::detail
