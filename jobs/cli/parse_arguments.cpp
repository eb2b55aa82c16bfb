// The only file that knows CLI11: which flags there are, what they mean, and what help says.
#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include <algorithm>
#include <functional>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>

#include "jobs/cli/arguments.hpp"
#include "jobs/json/codec.hpp"
#include "jobs/json/text.hpp"

namespace sluice::jobs::cli {
namespace {

constexpr const char* description =
    "sluice: a durable job server in one program, and the commands to use it.\n"
    "\n"
    "  sluice serve                               start a server\n"
    "  sluice push mail '{\"to\":\"ada@example.com\"}'  push a job\n"
    "  sluice work --exec ./send-mail             do jobs with a program\n";

constexpr const char* exit_codes =
    "Exit codes: 0 done; 1 refused or failed; 2 bad usage; 3 not found; 4 full or overloaded, try\n"
    "later; 5 no server; 6 timed out; 7 the data cannot be opened; 8 the address is in use.\n"
    "docs/reference/cli.md has all of it.";

[[noreturn]] void refuse(const std::string& flag, const std::string& why) {
  throw CLI::ValidationError(flag, why);
}

// A flag whose value is turned into something by `parse`, which gives a result<T>.
template <class T, class Parse>
CLI::Option* parsed_option(CLI::App& to, const std::string& flag, T& into, const char* help,
                           const char* type, Parse parse) {
  return to
      .add_option_function<std::string>(
          flag,
          [flag, &into, parse](const std::string& text) {
            auto value = parse(text);
            if (!value) refuse(flag, value.error().message);
            into = std::move(*value);
          },
          help)
      ->type_name(type);
}

template <class T>
CLI::Option* duration_option(CLI::App& to, const std::string& flag, T& into, const char* help) {
  return parsed_option(to, flag, into, help, "DURATION",
                       [](const std::string& text) { return parse_duration(text); });
}

// A flag whose value is one of a few words; `parse` gives an optional<T>.
template <class T, class Parse>
CLI::Option* word_option(CLI::App& to, const std::string& flag, T& into, const char* help,
                         const char* words, Parse parse) {
  return parsed_option(to, flag, into, help, words, [parse, words](const std::string& text) {
    auto value = parse(text);
    using type = typename decltype(value)::value_type;
    if (value) return result<type>(*value);
    return result<type>(
        error{error_code::invalid, "expected " + std::string(words) + ", found '" + text + "'"});
  });
}

std::optional<unique_until> unique_until_from(std::string_view word) {
  if (word == "started") return unique_until::started;
  if (word == "done") return unique_until::done;
  if (word == "elapsed") return unique_until::elapsed;
  return std::nullopt;
}

class command_line {
 public:
  command_line() : app_(description, "sluice") {
    app_.require_subcommand(1);
    app_.footer(exit_codes);
    app_.get_formatter()->column_width(34);
    add_serve();
    add_push();
    add_get();
    add_work();
    add_queues();
    add_jobs();
    add_stats();
    add_version();
  }

  std::variant<arguments, no_command> parse(int argc, const char* const* argv) {
    try {
      if (argc > 0) serve_.program = argv[0];
      // What stands after -- is the program's that work runs; CLI11 would take a [1] in it apart.
      const char* const* end = argv + argc;
      const char* const* split = std::find(argv, end, std::string_view("--"));
      if (split != end && argc > 1 && argv[1] == std::string_view("work")) {
        work_.command.assign(split + 1, end);
        argc = static_cast<int>(split - argv);
      }
      app_.parse(argc, argv);
      for (const auto& [command, finish] : commands_) {
        if (command->parsed()) return finish();
      }
      return no_command{exit_code::bad_usage, "sluice: no command\n"};
    } catch (const CLI::ParseError& e) {
      return explain(e);
    }
  }

 private:
  using finisher = std::function<arguments()>;

  no_command explain(const CLI::ParseError& e) {
    std::ostringstream out;
    std::ostringstream err;
    if (app_.exit(e, out, err) == 0) return {exit_code::ok, out.str()};
    std::string who = "sluice";
    for (const CLI::App* at = &app_; !at->get_subcommands().empty();) {
      at = at->get_subcommands().front();
      who += " " + at->get_name();
    }
    return {exit_code::bad_usage,
            "sluice: " + std::string(e.what()) + "\n'" + who + " --help' says what there is.\n"};
  }

  CLI::App& command(const std::string& name, const std::string& about, const char* examples,
                    finisher finish) {
    CLI::App& c = *app_.add_subcommand(name, about);
    c.footer(std::string("Examples:\n") + examples);
    commands_.emplace_back(&c, std::move(finish));
    return c;
  }

  static void add_connection(CLI::App& c, connection_arguments& into) {
    c.add_option("--url", into.url, "where the server is")
        ->envname("SLUICE_URL")
        ->capture_default_str();
    c.add_flag("--json", into.json, "print JSON, for programs");
  }

  void add_serve();
  void add_push();
  void add_job_options(CLI::App& c);
  void add_get();
  void add_work();
  void add_queues();
  void add_queue_options(CLI::App& c);
  void add_jobs();
  void add_stats();
  void add_version();

  arguments finish_push();
  arguments finish_work() const;

  CLI::App app_;
  std::vector<std::pair<CLI::App*, finisher>> commands_;
  serve_arguments serve_;
  std::optional<std::uint16_t> serve_port_;
  push_arguments push_;
  std::string push_kind_;
  std::optional<std::string> push_first_;
  std::optional<std::string> push_second_;
  get_arguments get_;
  work_arguments work_;
  queues_arguments queues_;
  jobs_arguments jobs_;
  stats_arguments stats_;
  version_arguments version_;
};

void command_line::add_serve() {
  CLI::App& c = command("serve", "Start a server: takes jobs over HTTP and gives them to workers.",
                        "  sluice serve\n"
                        "  sluice serve --data /var/lib/sluice --listen 127.0.0.1:8000\n"
                        "  sluice serve --memory --log-json\n"
                        "Ctrl-C or SIGTERM ends it when the workers have finished; a second one at "
                        "once.",
                        [this]() -> arguments {
                          if (serve_port_) serve_.server.listen.port = *serve_port_;
                          if (const auto valid = validate(serve_.server); !valid) {
                            throw CLI::ValidationError(valid.error().message);
                          }
                          return serve_;
                        });
  server_options& o = serve_.server;
  c.add_option("--data", o.data, "the folder that the jobs are kept in")
      ->envname("SLUICE_DATA")
      ->type_name("FOLDER")
      ->capture_default_str();
  c.add_flag("--memory", o.memory,
             "keep nothing: all jobs are gone at the end, and take memory until then; bound a "
             "queue with 'sluice queues set --capacity-bytes'");
  parsed_option(c, "--listen", o.listen, "where to listen, on this machine (127.0.0.1:7433)",
                "HOST:PORT", [](const std::string& text) { return parse_listen_address(text); })
      ->envname("SLUICE_LISTEN");
  c.add_option("--port", serve_port_, "the port of --listen; 0: any that is free");
  c.add_option("--port-file", serve_.port_file, "write the port there, once it listens")
      ->type_name("FILE");
  word_option(c, "--sync", o.sync,
              "when a job is acknowledged: full, once it is on the disk (default); interval and "
              "off, before that: a power cut may lose some",
              "full|interval|off", [](const std::string& text) { return sync_mode_from(text); })
      ->envname("SLUICE_SYNC");
  duration_option(c, "--sync-interval", o.sync_interval, "how often with --sync interval (100ms)");
  duration_option(c, "--shutdown-grace", o.shutdown_grace,
                  "how long workers may take to finish when it ends (30s)")
      ->envname("SLUICE_SHUTDOWN_GRACE");
  c.add_option("--max-connections", o.connections_max, "connections at a time")
      ->capture_default_str();
  c.add_option("--max-body", o.body_bytes_max, "bytes of one request")
      ->transform(CLI::AsSizeValue(false))
      ->capture_default_str();
  c.add_option("--window", o.engine.window_bytes_max, "bytes of waiting jobs kept in memory")
      ->transform(CLI::AsSizeValue(false))
      ->capture_default_str();
  c.add_option("--max-queues", o.engine.queues_max, "queues in all")->capture_default_str();
  c.add_option("--max-leases", o.engine.running_max, "jobs that run at a time")
      ->capture_default_str();
  c.add_option("--max-waiting", o.engine.waiting_max,
               "calls that wait at a time: for jobs, for room, for an end")
      ->capture_default_str();
  word_option(c, "--log-level", o.log.level, "the least that is logged (info)",
              "debug|info|warn|error|off",
              [](const std::string& text) { return log_level_from(text); })
      ->envname("SLUICE_LOG_LEVEL");
  c.add_flag("--log-json", o.log.json, "log lines as JSON")->envname("SLUICE_LOG_JSON");
  c.add_flag("-q,--quiet", serve_.quiet, "do not say on standard output how to use it");
}

void command_line::add_job_options(CLI::App& c) {
  job_spec& spec = push_.spec;
  c.add_option("--queue", spec.queue, "where to")->capture_default_str();
  c.add_option("--priority", spec.priority, "larger is sooner")->capture_default_str();
  auto* delay = duration_option(c, "--delay", push_.delay, "not before so long from now");
  parsed_option(c, "--at", spec.run_at, "not before (2026-01-31T12:00:00Z)", "TIME",
                [](const std::string& text) { return parse_time(text); })
      ->excludes(delay);
  auto* key = c.add_option("--unique", spec.unique.key,
                           "push nothing when a job of the queue has this key");
  word_option(c, "--unique-until", spec.unique.until, "how long it keeps the key (done)",
              "started|done|elapsed",
              [](const std::string& text) { return unique_until_from(text); })
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
}

void command_line::add_push() {
  CLI::App& c =
      command("push", "Push a job, or many. It is on disk when this has returned.",
              "  sluice push mail '{\"to\":\"ada@example.com\"}'\n"
              "  sluice push thumbnail @picture.json --queue images --priority 5\n"
              "  generate | sluice push import - --bytes\n"
              "  sluice push report --delay 1h --unique daily-report\n"
              "  sluice push --ndjson jobs.ndjson      (one {\"kind\":...,\"args\":...} a line)",
              [this] { return finish_push(); });
  add_connection(c, push_.to);
  // Two words and no list of them: CLI11 takes a list's [1,2] apart.
  c.add_option("KIND", push_first_, "the kind of job");
  c.add_option("ARGS", push_second_, "its args: JSON, @FILE, or - for standard input");
  c.add_option("-k,--kind", push_kind_, "the kind, when only ARGS stand by themselves");
  c.add_flag("--bytes", push_.as_bytes, "args are bytes, and not JSON");
  add_job_options(c);
  c.add_option("--ndjson", push_.ndjson, "push every line of a file (or -), each a job in JSON")
      ->type_name("FILE");
  c.add_flag_callback(
      "--all-or-nothing", [this] { push_.mode = bulk::all_or_nothing; },
      "with --ndjson: none, if one of a thousand lines is refused");
  duration_option(c, "--wait", push_.wait,
                  "for room in a full queue that blocks (30s; at least 1s)");
  c.add_flag("-q,--quiet", push_.quiet, "print the id and nothing else");
}

arguments command_line::finish_push() {
  if (!push_.ndjson.empty()) {
    if (push_first_ || !push_kind_.empty()) {
      refuse("--ndjson", "every line has its own kind and args; leave out those after push");
    }
    return push_;
  }
  if (push_kind_.empty()) {
    if (!push_first_) refuse("KIND", "say which kind of job: sluice push KIND [ARGS]");
    push_.spec.kind = *push_first_;
    push_.args = push_second_.value_or("");
  } else {
    if (push_second_) refuse("ARGS", "one argument, with quotes around it");
    push_.spec.kind = push_kind_;
    push_.args = push_first_.value_or("");
  }
  return push_;
}

void command_line::add_get() {
  CLI::App& c = command("get", "Show a job; with --wait, when it has ended.",
                        "  sluice get 42\n"
                        "  sluice get 42 --wait 30s --json\n"
                        "With --wait the exit code is 0 when the job is done, 1 when it is dead or "
                        "cancelled, and\n6 when it has not ended in time.",
                        [this]() -> arguments { return get_; });
  add_connection(c, get_.to);
  c.add_option("id", get_.id, "the job's number")->required();
  duration_option(c, "--wait", get_.wait, "so long for its end");
}

void command_line::add_work() {
  CLI::App& c = command(
      "work", "Do jobs by running a program for each.",
      "  sluice work --exec 'python3 resize.py' --queue images --concurrency 4\n"
      "  sluice work -- ./send-mail --from noreply@example.com\n"
      "The program gets the args on its standard input and SLUICE_JOB_ID, _KIND, _QUEUE, _ATTEMPT\n"
      "in its environment. Exit code 0: done, and its output is the result. Any other: failed, "
      "and\n"
      "the end of its standard error is the reason. Ctrl-C ends it when what runs has ended.",
      [this] { return finish_work(); });
  add_connection(c, work_.to);
  c.add_option("--exec", work_.shell,
               "a command for /bin/sh; or, without a shell, at the end: -- PROGRAM [ARGS]")
      ->type_name("COMMAND");
  c.add_option("--queue", work_.queues, "from where; several are looked through in this order")
      ->delimiter(',')
      ->capture_default_str();
  c.add_option("-c,--concurrency", work_.concurrency, "jobs at a time (one for each processor)")
      ->check(CLI::Range(std::size_t{1}, std::size_t{1000}));
  c.add_option("--prefetch", work_.prefetch, "jobs leased beyond those, to begin at once")
      ->check(CLI::Range(std::size_t{0}, std::size_t{1000}))
      ->capture_default_str();
  c.add_option("--name", work_.name, "who works, for people (host and process)");
  c.add_option("--directory", work_.directory, "where the program runs")->type_name("FOLDER");
  duration_option(c, "--lease-for", work_.lease_for, "without a heartbeat, for another worker");
  duration_option(c, "--kill-after", work_.kill_after, "from SIGTERM to SIGKILL (5s)");
  duration_option(c, "--grace", work_.grace, "for what runs to finish when this ends (30s)");
  c.add_option("--jobs", work_.jobs_max, "end after so many");
  c.add_flag("--no-result", work_.ignore_output, "what the program prints is no result");
  c.add_flag("-q,--quiet", work_.quiet, "say nothing about each job");
}

arguments command_line::finish_work() const {
  if (work_.shell.empty() == work_.command.empty()) {
    refuse("--exec", "say what to run: --exec COMMAND or -- PROGRAM ARGS, one of the two");
  }
  return work_;
}

void command_line::add_queue_options(CLI::App& c) {
  queue_patch& p = queues_.patch;
  c.add_option("--capacity", p.capacity_jobs, "jobs that have not ended");
  c.add_option("--capacity-bytes", p.capacity_bytes, "bytes of these (64MB)")
      ->transform(CLI::AsSizeValue(false));
  word_option(c, "--when-full", p.when_full, "what becomes of a push then",
              "block|reject|drop_newest|drop_oldest|latest",
              [](const std::string& text) { return json::overflow_from(text); });
  duration_option(c, "--lease-for", p.lease_for, "how long a lease lasts without a heartbeat");
  duration_option(c, "--keep-done", p.keep_done, "done jobs without a result; 0: not at all");
  duration_option(c, "--keep-results", p.keep_results, "done jobs with a result");
  duration_option(c, "--keep-dead", p.keep_dead, "dead and cancelled jobs");
}

void command_line::add_queues() {
  CLI::App& c = command("queues", "Show the queues; or change, pause, resume or empty one.",
                        "  sluice queues\n"
                        "  sluice queues show mail\n"
                        "  sluice queues set mail --capacity 10000 --when-full block\n"
                        "  sluice queues pause mail\n"
                        "  sluice queues purge mail --yes",
                        [this]() -> arguments { return queues_; });
  add_connection(c, queues_.to);
  c.require_subcommand(0, 1);
  const auto add = [&](const char* name, const char* about, queues_arguments::action what) {
    CLI::App& sub = *c.add_subcommand(name, about);
    sub.fallthrough();
    sub.add_option("name", queues_.name, "the queue")->required();
    sub.final_callback([this, what] { queues_.what = what; });
    return &sub;
  };
  using action = queues_arguments::action;
  add("show", "Show one queue with all its settings.", action::show);
  CLI::App& set = *add("set", "Change settings; those not named stay as they are.", action::set);
  add_queue_options(set);
  add("pause", "Give out no jobs; pushes are still taken.", action::pause);
  add("resume", "Give out jobs again.", action::resume);
  add("purge", "Forget every job that is not running.", action::purge)
      ->add_flag("-y,--yes", queues_.yes, "do not ask");
}

void command_line::add_jobs() {
  CLI::App& c = command("jobs", "List jobs; or cancel, retry or delete some.",
                        "  sluice jobs --state dead --queue mail\n"
                        "  sluice jobs --all --json\n"
                        "  sluice jobs retry 17 18 19\n"
                        "  sluice jobs cancel 42",
                        [this]() -> arguments { return jobs_; });
  add_connection(c, jobs_.to);
  c.require_subcommand(0, 1);
  c.add_option("--queue", jobs_.filter.queue, "only of this queue");
  word_option(c, "--state", jobs_.filter.state, "only in this state",
              "scheduled|ready|running|retrying|done|dead|cancelled",
              [](const std::string& text) { return job_state_from(text); });
  c.add_option("--kind", jobs_.filter.kind, "only of this kind");
  auto* limit = c.add_option("--limit", jobs_.filter.limit, "so many at most")
                    ->check(CLI::Range(std::size_t{1}, std::size_t{1000}))
                    ->capture_default_str();
  c.add_option("--after", jobs_.filter.after, "go on after this id");
  c.add_flag("--all", jobs_.all, "every one of them, however many")->excludes(limit);
  const auto add = [&](const char* name, const char* about, jobs_arguments::action what) {
    CLI::App& sub = *c.add_subcommand(name, about);
    sub.fallthrough();
    sub.add_option("ids", jobs_.ids, "the jobs' numbers")->required();
    sub.final_callback([this, what] { jobs_.what = what; });
  };
  using action = jobs_arguments::action;
  add("cancel", "Call jobs off; a running one's worker is told.", action::cancel);
  add("retry", "Make dead, cancelled or waiting jobs ready now.", action::retry);
  add("delete", "Forget jobs, in any state but running.", action::remove);
}

void command_line::add_stats() {
  CLI::App& c = command("stats", "Show what the server has done and has to do.",
                        "  sluice stats\n"
                        "  sluice stats --watch 2s\n"
                        "  sluice stats --json",
                        [this]() -> arguments { return stats_; });
  add_connection(c, stats_.to);
  duration_option(c, "--watch", stats_.watch, "again and again, so far apart");
}

void command_line::add_version() {
  CLI::App& c = command("version", "Show which version this is.", "  sluice version",
                        [this]() -> arguments { return version_; });
  c.add_flag("--json", version_.json, "print JSON, for programs");
  app_.set_version_flag("--version", std::string("sluice ") + SLUICE_VERSION);
}

}  // namespace

std::variant<arguments, no_command> parse_arguments(int argc, const char* const* argv) {
  return command_line().parse(argc, argv);
}

}  // namespace sluice::jobs::cli
