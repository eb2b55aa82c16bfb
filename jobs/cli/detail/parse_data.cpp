// export, import, check, backup, token: the stored data of a server.
#include "jobs/cli/detail/command_set.hpp"
#include "jobs/cli/detail/flags.hpp"

namespace sluice::jobs::cli::detail {
namespace {

void add_export(command_set& commands) {
  auto& args = commands.keep<export_arguments>();
  CLI::App& c =
      commands.add("export", "Write jobs to a file, one a line, in the format of import.",
                   "  sluice export --to jobs.ndjson\n"
                   "  sluice export --queue mail --state dead > dead.ndjson\n"
                   "  sluice export | sluice import - --url http://127.0.0.1:8000\n"
                   "Default without --state: jobs that have not ended. The server's data does "
                   "not change.",
                   [&args]() -> arguments { return args; });
  add_connection(c, args.server);
  c.add_option("--queue", args.queue, "only of this queue");
  c.add_option("--kind", args.kind, "only of this kind");
  word_list(c, "--state", args.states, "only in these states", job_state_words, job_state_from);
  c.add_option("--to", args.file, "output file (standard output)")->type_name("FILE");
  c.add_flag("--detach", args.detach,
             "also write jobs that wait for others; they will run without waiting");
  c.add_flag("-q,--quiet", args.quiet, "no progress bar");
}

void add_import(command_set& commands) {
  auto& args = commands.keep<import_arguments>();
  CLI::App& c =
      commands.add("import", "Push the jobs of a file, one a line.",
                   "  sluice import jobs.ndjson\n"
                   "  sluice import jobs.ndjson --from-line 120001\n"
                   "  sluice import jobs.ndjson --on-refused continue --report refused.ndjson\n"
                   "  sluice import - --queue retry < dead.ndjson\n"
                   "If it stops, it prints the --from-line to continue with.",
                   [&args]() -> arguments { return args; });
  add_connection(c, args.server);
  c.add_option("FILE", args.file, "jobs in JSON, one a line; - for standard input")->required();
  c.add_option("--queue", args.queue, "push to this queue instead of the queue in each line");
  c.add_option("--from-line", args.from_line, "skip the lines before this one")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 53))
      ->capture_default_str()
      ->type_name("N");
  word_option(c, "--on-refused", args.refused, "action at a refused line (stop)", "stop|continue",
              [](std::string_view word) -> std::optional<import_arguments::on_refused> {
                if (word == "stop") return import_arguments::on_refused::stop;
                if (word == "continue") return import_arguments::on_refused::go_on;
                return std::nullopt;
              });
  c.add_option("--report", args.report, "write refused lines with their errors to this file")
      ->type_name("FILE");
  duration_option(c, "--wait", args.wait,
                  "wait for capacity in a full queue that blocks (30s; at least 1s)");
  c.add_flag("-q,--quiet", args.quiet, "no progress bar");
}

constexpr const char* data_summary = "the server's data folder";

CLI::Option* add_data(CLI::App& c, std::string& into) {
  into = server_options{}.data;
  return c.add_option("--data", into, data_summary)
      ->envname("SLUICE_DATA")
      ->type_name("FOLDER")
      ->capture_default_str();
}

void add_check(command_set& commands) {
  auto& args = commands.keep<check_arguments>();
  auto& file = commands.keep<std::string>();
  CLI::App& c =
      commands.add("check", "Verify a store: every page, every count, every reference.",
                   "  sluice check --data /var/lib/sluice\n"
                   "  sluice check backup.db\n"
                   "Works while a server has the data open. The exit code is 7 if anything is "
                   "damaged.",
                   [&args, &file]() -> arguments {
                     if (!file.empty()) args.path = file;
                     return args;
                   });
  auto* data = add_data(c, args.path);
  c.add_option("FILE", file, "a file, such as a backup, instead of a folder")->excludes(data);
  c.add_flag("--json", args.json, "print JSON, for programs");
  c.add_flag("-q,--quiet", args.quiet, "no progress bar");
}

void add_backup(command_set& commands) {
  auto& args = commands.keep<backup_arguments>();
  CLI::App& c =
      commands.add("backup", "Copy a store to a file, while a server has it open.",
                   "  sluice backup --data /var/lib/sluice --to backup.db\n"
                   "  sluice check backup.db\n"
                   "To restore, put the file into an empty folder as jobs.db, and start there.",
                   [&args]() -> arguments { return args; });
  add_data(c, args.data);
  c.add_option("--to", args.file, "the copy; must not exist")->required()->type_name("FILE");
  c.add_flag("--json", args.json, "print JSON, for programs");
  c.add_flag("-q,--quiet", args.quiet, "no progress bar");
}

void add_token(command_set& commands) {
  auto& token = commands.keep<token_arguments>();
  CLI::App& c =
      commands.add("token", "Create, list and revoke the tokens that a server accepts.",
                   "  sluice token create --name ci --role push --role work --queue 'mail-*'\n"
                   "  sluice token create --name ops --role admin --expires 90d > token\n"
                   "  sluice token list\n"
                   "  sluice token revoke 7k2m9x4q\n"
                   "Works on the server's data folder, on its machine. The token is printed "
                   "once.",
                   [&token]() -> arguments { return token; });
  add_data(c, token.data);
  c.add_flag("--json", token.json, "print JSON, for programs");
  c.require_subcommand(0, 1);
  using action = token_arguments::action;
  const auto add = [&](const char* name, const char* summary, action operation) -> CLI::App& {
    CLI::App& sub = *c.add_subcommand(name, summary);
    sub.fallthrough();
    sub.final_callback([&token, operation] { token.operation = operation; });
    return sub;
  };
  add("list", "Show the tokens, without their secrets.", action::list);
  CLI::App& create = add("create", "Create a token and print it.", action::create);
  create.add_option("--name", token.make.name, "the holder, for people")->required();
  auto& roles = commands.keep<std::vector<role>>();
  word_list(create, "--role", roles, "its role; admin includes the others", "push|work|read|admin",
            role_from)
      ->required();
  create.add_option("--queue", token.make.queues, "only these queues, as in mail or 'mail-*'")
      ->delimiter(',')
      ->allow_extra_args(false);
  duration_option(create, "--expires", token.lasts, "lifetime of the token");
  create.final_callback([&token, &roles] {
    token.operation = action::create;
    for (const role r : roles) token.make.roles.add(r);
  });
  add("revoke", "Make a token invalid.", action::revoke)
      .add_option("id", token.id, "the id, as printed by list")
      ->required();
}

}  // namespace

void add_data_commands(command_set& commands) {
  add_export(commands);
  add_import(commands);
  add_check(commands);
  add_backup(commands);
  add_token(commands);
}

}  // namespace sluice::jobs::cli::detail
