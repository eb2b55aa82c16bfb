// push, get, jobs, logs: one job or many of them.
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

// ID, or ID:end, ID:failure, ID:success.
result<dependency> parse_dependency(const std::string& text) {
  const auto refused = [&] {
    return error{error_code::invalid,
                 "expected the number of a job or batch, with :success, :end or :failure behind it "
                 "if need be, found '" +
                     text + "'"};
  };
  const auto colon = text.find(':');
  const std::string number = text.substr(0, colon);
  dependency it;
  if (number.empty() || number.size() > 19 ||
      number.find_first_not_of("0123456789") != std::string::npos) {
    return refused();
  }
  it.on = std::stoull(number);
  if (it.on == 0) return refused();
  if (colon != std::string::npos) {
    const auto when = after_when_from(text.substr(colon + 1));
    if (!when) return refused();
    it.when = *when;
  }
  return it;
}

// What KIND and ARGS were: two words and no list of them, since CLI11 takes a list's [1,2] apart.
struct push_words {
  push_arguments push;
  std::string kind;
  std::optional<std::string> first;
  std::optional<std::string> second;

  arguments finish() {
    if (!push.ndjson.empty()) {
      if (first || !kind.empty()) {
        refuse("--ndjson", "every line has its own kind and args; leave out those after push");
      }
      return push;
    }
    if (kind.empty()) {
      if (!first) refuse("KIND", "say which kind of job: sluice push KIND [ARGS]");
      push.spec.kind = *first;
      push.args = second.value_or("");
    } else {
      if (second) refuse("ARGS", "one argument, with quotes around it");
      push.spec.kind = kind;
      push.args = first.value_or("");
    }
    return push;
  }
};

void add_push(command_set& to) {
  auto& words = to.keep<push_words>();
  push_arguments& push = words.push;
  CLI::App& c = to.add("push", "Push a job, or many. It is on disk when this has returned.",
                       "  sluice push mail '{\"to\":\"ada@example.com\"}'\n"
                       "  sluice push thumbnail @picture.json --queue images --priority 5\n"
                       "  generate | sluice push import - --bytes\n"
                       "  sluice push report --delay 1h --unique daily-report\n"
                       "  sluice push ship --key order-7 --after 41 --after 42:end\n"
                       "  sluice push --ndjson jobs.ndjson      (one {\"kind\":...,\"args\":...} a "
                       "line)",
                       [&words] { return words.finish(); });
  add_connection(c, push.to);
  c.add_option("KIND", words.first, "the kind of job");
  c.add_option("ARGS", words.second, "its args: JSON, @FILE, or - for standard input");
  c.add_option("-k,--kind", words.kind, "the kind, when only ARGS stand by themselves");
  c.add_flag("--bytes", push.as_bytes, "args are bytes, and not JSON");
  auto* delay = duration_option(c, "--delay", push.delay, "not before so long from now");
  parsed_option(c, "--at", push.spec.run_at, "not before (2026-01-31T12:00:00Z)", "TIME",
                [](const std::string& text) { return parse_time(text); })
      ->excludes(delay);
  add_job_options(c, push.spec);
  parsed_list(c, "--after", push.spec.after,
              "not before this job or batch was done; or has ended, or has failed",
              "ID[:end|:failure]", parse_dependency);
  c.add_option("--batch", push.spec.batch, "the batch that it belongs to")->type_name("ID");
  c.add_option("--ndjson", push.ndjson, "push every line of a file (or -), each a job in JSON")
      ->type_name("FILE");
  c.add_flag_callback(
      "--all-or-nothing", [&push] { push.mode = bulk::all_or_nothing; },
      "with --ndjson: none, if one of a thousand lines is refused");
  duration_option(c, "--wait", push.wait,
                  "for room in a full queue that blocks (30s; at least 1s)");
  c.add_flag("-q,--quiet", push.quiet, "print the id and nothing else");
}

void add_get(command_set& to) {
  auto& get = to.keep<get_arguments>();
  CLI::App& c = to.add("get", "Show a job; with --wait, when it has ended.",
                       "  sluice get 42\n"
                       "  sluice get 42 --wait 30s --json\n"
                       "With --wait the exit code is 0 when the job is done, 1 when it is dead or "
                       "cancelled, and\n6 when it has not ended in time.",
                       [&get]() -> arguments { return get; });
  add_connection(c, get.to);
  c.add_option("id", get.id, "the job's number")->required();
  duration_option(c, "--wait", get.wait, "so long for its end");
}

void add_jobs(command_set& to) {
  auto& jobs = to.keep<jobs_arguments>();
  CLI::App& c = to.add("jobs", "List jobs; or cancel, retry or delete some.",
                       "  sluice jobs --state dead --queue mail\n"
                       "  sluice jobs --all --json\n"
                       "  sluice jobs retry 17 18 19\n"
                       "  sluice jobs cancel 42",
                       [&jobs]() -> arguments { return jobs; });
  add_connection(c, jobs.to);
  c.require_subcommand(0, 1);
  c.add_option("--queue", jobs.filter.queue, "only of this queue");
  word_option(c, "--state", jobs.filter.state, "only in this state", job_state_words,
              job_state_from);
  c.add_option("--kind", jobs.filter.kind, "only of this kind");
  c.add_option("--batch", jobs.filter.batch, "only of this batch")->type_name("ID");
  auto* limit = c.add_option("--limit", jobs.filter.limit, "so many at most")
                    ->check(CLI::Range(std::size_t{1}, std::size_t{1000}))
                    ->capture_default_str();
  c.add_option("--after", jobs.filter.after, "go on after this id")->type_name("ID");
  c.add_flag("--all", jobs.all, "every one of them, however many")->excludes(limit);
  const auto add = [&](const char* name, const char* about, jobs_arguments::action what) {
    CLI::App& sub = *c.add_subcommand(name, about);
    sub.fallthrough();
    sub.add_option("ids", jobs.ids, "the jobs' numbers")->required();
    sub.final_callback([&jobs, what] { jobs.what = what; });
  };
  using action = jobs_arguments::action;
  add("cancel", "Call jobs off; a running one's worker is told.", action::cancel);
  add("retry", "Make dead, cancelled or waiting jobs ready now.", action::retry);
  add("delete", "Forget jobs, in any state but running.", action::remove);
}

void add_logs(command_set& to) {
  auto& logs = to.keep<logs_arguments>();
  CLI::App& c = to.add("logs", "Show what a job's worker has logged.",
                       "  sluice logs 42\n"
                       "  sluice logs 42 --follow",
                       [&logs]() -> arguments { return logs; });
  add_connection(c, logs.to);
  c.add_option("id", logs.id, "the job's number")->required();
  c.add_option("--after", logs.after, "only lines after the one with this number");
  c.add_flag("-f,--follow", logs.follow, "go on until the job has ended");
}

}  // namespace

void add_connection(CLI::App& c, connection_arguments& into) {
  c.add_option("--url", into.url, "where the server is")
      ->envname("SLUICE_URL")
      ->capture_default_str();
  c.add_option("--token-file", into.token_file,
               "a file with the token to show to it; or the environment's SLUICE_TOKEN")
      ->envname("SLUICE_TOKEN_FILE")
      ->type_name("FILE");
  c.add_option("--ca-file", into.ca_file, "whom an https server's certificate must be from (PEM)")
      ->envname("SLUICE_CA_FILE")
      ->type_name("FILE");
  c.add_flag("--json", into.json, "print JSON, for programs");
}

void add_job_options(CLI::App& c, job_spec& spec) {
  c.add_option("--queue", spec.queue, "where to")->capture_default_str();
  c.add_option("--priority", spec.priority, "larger is sooner")->capture_default_str();
  c.add_option("--key", spec.key, "one at a time of those with this key, in order");
  auto* key = c.add_option("--unique", spec.unique.key,
                           "push nothing when a job of the queue has this key");
  word_option(c, "--unique-until", spec.unique.until, "how long it keeps the key (done)",
              "started|done|elapsed", unique_until_from)
      ->needs(key);
  duration_option(c, "--unique-for", spec.unique.lasts, "for --unique-until elapsed")->needs(key);
  c.add_option("--attempts", spec.retry.attempts_max, "how often it is tried in all")
      ->capture_default_str();
  duration_option(c, "--retry-first", spec.retry.first, "pause after the first failure (15s)");
  c.add_option("--retry-factor", spec.retry.factor, "every pause so much longer than the last")
      ->capture_default_str();
  duration_option(c, "--retry-longest", spec.retry.longest, "the longest pause (6h)");
  c.add_option("--retry-jitter", spec.retry.jitter, "share of a pause that is left to chance")
      ->capture_default_str();
  duration_option(c, "--lease-for", spec.lease_for, "without a heartbeat, for another worker");
  duration_option(c, "--time-limit", spec.time_limit, "how long one attempt may take");
  duration_option(c, "--keep-for", spec.keep_for, "how long it is kept after its end");
  c.add_option("--metadata", spec.metadata, "a JSON object that travels with it")
      ->type_name("JSON");
  c.add_option("--webhook", spec.webhook, "where its end is posted to")->type_name("URL");
}

void add_job_commands(command_set& to) {
  add_push(to);
  add_get(to);
  add_jobs(to);
  add_logs(to);
}

}  // namespace sluice::jobs::cli::detail
