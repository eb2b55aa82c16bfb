// Defines the program's commands and their help. The flags of all commands except `serve` are in
// detail/parse_*.cpp, one file per family of commands.
#include <algorithm>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>

#include "jobs/cli/arguments.hpp"
#include "jobs/cli/command_description.hpp"
#include "jobs/cli/detail/command_set.hpp"
#include "jobs/cli/detail/flags.hpp"
#include "jobs/server/config_keys.hpp"

namespace sluice::jobs::cli {
namespace {

using namespace detail;

constexpr const char* program_description =
    "sluice: a durable job server in one program, and the commands to use it.\n"
    "\n"
    "  sluice serve                               start a server\n"
    "  sluice push mail '{\"to\":\"ada@example.com\"}'  push a job\n"
    "  sluice work --exec ./send-mail             run a program for each job\n";

constexpr const char* exit_codes =
    "Exit codes: 0 success; 1 refused or failed; 2 bad usage; 3 not found; 4 full or overloaded,\n"
    "retry later; 5 no server; 6 timed out; 7 the data cannot be opened or is damaged; 8 the\n"
    "address is in use; 9 not permitted by the token.\n"
    "docs/reference/cli.md has the full list.";

std::string_view type_of(const config_key& key) {
  using kind = config_key::kind;
  switch (key.type) {
    case kind::count:
      return "NUMBER";
    case kind::size:
      return "SIZE";
    case kind::duration:
      return "DURATION";
    case kind::list:
      return "LIST";
    case kind::path:
      return "PATH";
    case kind::custom:
      return key.words;
    case kind::text:
    case kind::flag:
      break;
  }
  return "TEXT";
}

class command_line {
 public:
  command_line() : app_(program_description, "sluice") {
    app_.require_subcommand(1);
    app_.footer(exit_codes);
    app_.get_formatter()->column_width(34);
    add_serve();
    add_beanstalkd_command(commands_);
    add_job_commands(commands_);
    add_work_commands(commands_);
    add_queue_commands(commands_);
    add_workflow_commands(commands_);
    add_watch_commands(commands_);
    add_data_commands(commands_);
    add_program_commands(commands_);
  }

  command_description describe_commands() const;

  std::variant<arguments, no_command> parse(int argc, const char* const* argv) {
    try {
      if (argc > 0) serve_.program = argv[0];
      // The words after -- are the program of `work`; CLI11 would split a [1] in them.
      const char* const* end = argv + argc;
      const char* const* split = std::find(argv, end, std::string_view("--"));
      std::vector<std::string> program;
      if (split != end && argc > 1 && argv[1] == std::string_view("work")) {
        program.assign(split + 1, end);
        argc = static_cast<int>(split - argv);
      }
      app_.parse(argc, argv);
      auto selected = commands_.finish();
      if (!selected) return no_command{exit_code::bad_usage, "sluice: no command\n"};
      if (auto* work = std::get_if<work_arguments>(&*selected)) {
        work->command = std::move(program);
        if (work->shell.empty() == work->command.empty()) {
          refuse("--exec", "give exactly one of --exec COMMAND and -- PROGRAM ARGS");
        }
      }
      return std::move(*selected);
    } catch (const CLI::ParseError& e) {
      return explain(e);
    }
  }

 private:
  no_command explain(const CLI::ParseError& e) {
    std::ostringstream out;
    std::ostringstream err;
    if (app_.exit(e, out, err) == 0) return {exit_code::ok, out.str()};
    std::string name = "sluice";
    for (const CLI::App* at = &app_; !at->get_subcommands().empty();) {
      at = at->get_subcommands().front();
      name += " " + at->get_name();
    }
    return {exit_code::bad_usage,
            "sluice: " + std::string(e.what()) + "\nRun '" + name + " --help' for usage.\n"};
  }

  void add_serve();
  void add_setting(CLI::App& c, const config_key& key);
  arguments finish_serve();

  CLI::App app_;
  command_set commands_{app_};
  serve_arguments serve_;
  std::optional<std::uint16_t> serve_port_;
};

void command_line::add_serve() {
  CLI::App& c =
      commands_.add("serve", "Start a server: accepts jobs over HTTP and leases them to workers.",
                    "  sluice serve\n"
                    "  sluice serve --data /var/lib/sluice --listen 127.0.0.1:8000\n"
                    "  sluice serve --memory --log-json\n"
                    "  sluice serve --beanstalk :11300 --faktory :7419\n"
                    "Ctrl-C or SIGTERM ends it and saves the workers' leases; a second signal ends "
                    "it at once. SIGUSR2 restarts it without rejecting pushes.",
                    [this] { return finish_serve(); });
  c.add_option("--config", serve_.from.file,
               "configuration file; default: sluice.toml in the data folder, if it exists")
      ->envname("SLUICE_CONFIG")
      ->type_name("FILE");
  for (const config_key& key : config_keys()) add_setting(c, key);
  c.add_option("--port", serve_port_, "port of --listen; 0: any free port");
  c.add_option("--port-file", serve_.port_file, "write the ports to this file once it listens")
      ->type_name("FILE");
  c.add_flag("--check-config", serve_.check_config,
             "print the effective settings and their sources, and exit");
  c.add_flag("-q,--quiet", serve_.quiet, "no banner");
}

// Values are checked when all flags, the file and the environment are known.
void command_line::add_setting(CLI::App& c, const config_key& key) {
  if (key.flag.empty()) return;
  const auto note = [this, name = std::string(key.name)](const std::string& text) {
    serve_.from.flags.emplace_back(name, text);
  };
  const std::string default_text = text_of(server_options{}, key);
  const std::string summary =
      std::string(key.summary) +
      (default_text.empty() || key.type == config_key::kind::flag ? "" : " (" + default_text + ")");
  if (key.type == config_key::kind::flag) {
    c.add_flag_callback(
        std::string(key.flag), [note] { note("true"); }, summary);
    return;
  }
  c.add_option_function<std::string>(std::string(key.flag), note, summary)
      ->type_name(std::string(type_of(key)));
}

arguments command_line::finish_serve() {
  auto known = load_configuration(serve_.from);
  if (!known) throw CLI::ValidationError(known.error().message);
  serve_.server = known->options;
  if (serve_port_) serve_.server.listen.port = *serve_port_;
  if (serve_.check_config) serve_.effective = describe(*known);
  return serve_;
}

flag_description describe_flag(const CLI::Option& o) {
  flag_description d;
  for (const std::string& name : o.get_lnames()) d.names.push_back("--" + name);
  for (const std::string& name : o.get_snames()) d.names.push_back("-" + name);
  d.is_positional = d.names.empty();
  if (d.is_positional) d.names.push_back(o.get_name(true));
  if (o.get_items_expected_max() > 0) d.value = o.get_type_name();
  d.summary = o.get_description();
  d.default_value = o.get_default_str();
  d.environment = o.get_envname();
  d.is_required = o.get_required();
  d.is_list = o.get_items_expected_max() > 1;
  return d;
}

command_description describe_app(const CLI::App& app) {
  command_description d;
  d.name = app.get_name();
  d.summary = app.get_description();
  d.examples = app.get_footer();
  for (const CLI::Option* o : app.get_options()) d.flags.push_back(describe_flag(*o));
  const auto all = [](const CLI::App*) { return true; };
  for (const CLI::App* c : app.get_subcommands(all)) d.commands.push_back(describe_app(*c));
  return d;
}

command_description command_line::describe_commands() const {
  return describe_app(app_);
}

}  // namespace

std::variant<arguments, no_command> parse_arguments(int argc, const char* const* argv) {
  constexpr const char* alias = "beanstalkd";
  const std::string_view name = argc > 0 ? argv[0] : "";
  std::vector<const char*> words(argv, argv + argc);
  if (name.substr(name.rfind('/') + 1) == alias) words.insert(words.begin() + 1, alias);
  auto parsed = command_line().parse(static_cast<int>(words.size()), words.data());
  if (auto* const command = std::get_if<arguments>(&parsed)) {
    auto* const serve = std::get_if<serve_arguments>(command);
    if (serve != nullptr) serve->words.assign(argv, argv + argc);
  }
  return parsed;
}

command_description describe_program() {
  return command_line().describe_commands();
}

}  // namespace sluice::jobs::cli
