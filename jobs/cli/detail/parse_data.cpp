// export, import, check, backup, token: what a server keeps, as a whole.
#include "jobs/cli/detail/command_set.hpp"
#include "jobs/cli/detail/flags.hpp"

namespace sluice::jobs::cli::detail {
namespace {

void add_export(command_set& to) {
  auto& what = to.keep<export_arguments>();
  CLI::App& c = to.add("export", "Write jobs to a file, one a line, as import reads them.",
                       "  sluice export --to jobs.ndjson\n"
                       "  sluice export --queue mail --state dead > dead.ndjson\n"
                       "  sluice export | sluice import - --url http://127.0.0.1:8000\n"
                       "Without --state: those that have not ended. Nothing is taken out of the "
                       "queue.",
                       [&what]() -> arguments { return what; });
  add_connection(c, what.to);
  c.add_option("--queue", what.queue, "only of this queue");
  c.add_option("--kind", what.kind, "only of this kind");
  word_list(c, "--state", what.states, "only in these states", job_state_words, job_state_from);
  c.add_option("--to", what.file, "where to (standard output)")->type_name("FILE");
  c.add_flag("--detach", what.detach, "also jobs that wait for others: to run without waiting");
  c.add_flag("-q,--quiet", what.quiet, "no progress bar");
}

void add_import(command_set& to) {
  auto& what = to.keep<import_arguments>();
  CLI::App& c = to.add("import", "Push the jobs of a file, one a line.",
                       "  sluice import jobs.ndjson\n"
                       "  sluice import jobs.ndjson --from-line 120001\n"
                       "  sluice import jobs.ndjson --on-refused continue --report refused.ndjson\n"
                       "  sluice import - --queue retry < dead.ndjson\n"
                       "When it stops, it says with which --from-line to go on.",
                       [&what]() -> arguments { return what; });
  add_connection(c, what.to);
  c.add_option("FILE", what.file, "jobs, one in JSON a line; - for standard input")->required();
  c.add_option("--queue", what.queue, "where to, instead of what each line says");
  c.add_option("--from-line", what.from_line, "leave out the lines before this one")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 53))
      ->capture_default_str()
      ->type_name("N");
  word_option(c, "--on-refused", what.refused, "what to do about a line that is refused (stop)",
              "stop|continue",
              [](std::string_view word) -> std::optional<import_arguments::on_refused> {
                if (word == "stop") return import_arguments::on_refused::stop;
                if (word == "continue") return import_arguments::on_refused::go_on;
                return std::nullopt;
              });
  c.add_option("--report", what.report, "write refused lines there, each after its reason")
      ->type_name("FILE");
  duration_option(c, "--wait", what.wait,
                  "for room in a full queue that blocks (30s; at least 1s)");
  c.add_flag("-q,--quiet", what.quiet, "no progress bar");
}

constexpr const char* about_data = "the folder that the jobs are kept in";

CLI::Option* add_data(CLI::App& c, std::string& into) {
  into = server_options{}.data;
  return c.add_option("--data", into, about_data)
      ->envname("SLUICE_DATA")
      ->type_name("FOLDER")
      ->capture_default_str();
}

void add_check(command_set& to) {
  auto& what = to.keep<check_arguments>();
  auto& file = to.keep<std::string>();
  CLI::App& c = to.add("check", "Verify a store: every page, every count, every reference.",
                       "  sluice check --data /var/lib/sluice\n"
                       "  sluice check backup.db\n"
                       "Works while a server has the data open. The exit code is 7 when something "
                       "is damaged.",
                       [&what, &file]() -> arguments {
                         if (!file.empty()) what.path = file;
                         return what;
                       });
  auto* data = add_data(c, what.path);
  c.add_option("FILE", file, "a file of jobs, such as a backup, instead of a folder")
      ->excludes(data);
  c.add_flag("--json", what.json, "print JSON, for programs");
  c.add_flag("-q,--quiet", what.quiet, "no progress bar");
}

void add_backup(command_set& to) {
  auto& what = to.keep<backup_arguments>();
  CLI::App& c = to.add("backup", "Copy a store to a file, while a server has it open.",
                       "  sluice backup --data /var/lib/sluice --to backup.db\n"
                       "  sluice check backup.db\n"
                       "A server starts from it when it stands in an empty folder as jobs.db.",
                       [&what]() -> arguments { return what; });
  add_data(c, what.data);
  c.add_option("--to", what.file, "the copy; it must not be there")->required()->type_name("FILE");
  c.add_flag("--json", what.json, "print JSON, for programs");
  c.add_flag("-q,--quiet", what.quiet, "no progress bar");
}

void add_token(command_set& to) {
  auto& token = to.keep<token_arguments>();
  CLI::App& c = to.add("token", "Make, list and revoke the tokens that a server accepts.",
                       "  sluice token create --name ci --role push --role work --queue 'mail-*'\n"
                       "  sluice token create --name ops --role admin --expires 90d > token\n"
                       "  sluice token list\n"
                       "  sluice token revoke 7k2m9x4q\n"
                       "Works on the server's data folder, on its machine. The token is shown "
                       "once.",
                       [&token]() -> arguments { return token; });
  add_data(c, token.data);
  c.add_flag("--json", token.json, "print JSON, for programs");
  c.require_subcommand(0, 1);
  using action = token_arguments::action;
  const auto add = [&](const char* name, const char* about, action what) -> CLI::App& {
    CLI::App& sub = *c.add_subcommand(name, about);
    sub.fallthrough();
    sub.final_callback([&token, what] { token.what = what; });
    return sub;
  };
  add("list", "Show the tokens, without their secrets.", action::list);
  CLI::App& create = add("create", "Make one, and print it.", action::create);
  create.add_option("--name", token.make.name, "whose it is, for people")->required();
  auto& roles = to.keep<std::vector<role>>();
  word_list(create, "--role", roles, "what it may do; admin is all", "push|work|read|admin",
            role_from)
      ->required();
  create.add_option("--queue", token.make.queues, "only in these, as in mail or 'mail-*'")
      ->delimiter(',')
      ->allow_extra_args(false);
  duration_option(create, "--expires", token.lasts, "not to be used after so long");
  create.final_callback([&token, &roles] {
    token.what = action::create;
    for (const role r : roles) token.make.roles.add(r);
  });
  add("revoke", "Let nobody use it any more.", action::revoke)
      .add_option("id", token.id, "as list shows it")
      ->required();
}

}  // namespace

void add_data_commands(command_set& to) {
  add_export(to);
  add_import(to);
  add_check(to);
  add_backup(to);
  add_token(to);
}

}  // namespace sluice::jobs::cli::detail
