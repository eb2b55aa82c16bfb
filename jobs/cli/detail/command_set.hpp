#pragma once

// The program's commands as CLI11 objects. Each parse_*.cpp adds one family of commands; the
// families are independent, and no other source uses CLI11.
//
//     void add_get(command_set& commands) {
//       auto& get = commands.keep<get_arguments>();
//       CLI::App& c =
//           commands.add("get", "Show a job.", "  sluice get 42", [&get] { return get; });
//       add_connection(c, get.server);
//     }

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "jobs/cli/arguments.hpp"

namespace sluice::jobs::cli::detail {

class command_set {
 public:
  // Returns the arguments after all flags have been read; throws CLI::ParseError.
  using finisher = std::function<arguments()>;

  explicit command_set(CLI::App& app) : app_(app) {}
  command_set(const command_set&) = delete;
  command_set& operator=(const command_set&) = delete;

  CLI::App& app() noexcept { return app_; }
  CLI::App& add(const std::string& name, const std::string& summary, const char* examples,
                finisher finish) {
    CLI::App& c = *app_.add_subcommand(name, summary);
    c.footer(std::string("Examples:\n") + examples);
    commands_.emplace_back(&c, std::move(finish));
    return c;
  }
  // Creates a value for flags that lives as long as this object.
  template <class T>
  T& keep() {
    auto kept = std::make_shared<T>();
    T& value = *kept;
    kept_.push_back(std::move(kept));
    return value;
  }
  // Returns the arguments of the parsed command.
  std::optional<arguments> finish() const {
    for (const auto& [command, finish] : commands_) {
      if (command->parsed()) return finish();
    }
    return std::nullopt;
  }

 private:
  CLI::App& app_;
  std::vector<std::pair<CLI::App*, finisher>> commands_;
  std::vector<std::shared_ptr<void>> kept_;
};

inline constexpr const char* job_state_words =
    "scheduled|held|ready|running|retrying|done|dead|cancelled";

// Adds the flags for the server and --json.
void add_connection(CLI::App& c, connection_arguments& into);
// Adds the flags for a job's fields other than its kind, args and time.
void add_job_options(CLI::App& c, job_spec& into);

// One function per family of commands.
void add_beanstalkd_command(command_set& commands);
void add_job_commands(command_set& commands);       // push, get, jobs, logs
void add_work_commands(command_set& commands);      // work, workers
void add_queue_commands(command_set& commands);     // queues, plan
void add_workflow_commands(command_set& commands);  // batch, cron
void add_watch_commands(command_set& commands);     // stats, top, events
void add_data_commands(command_set& commands);      // export, import, check, backup, token
void add_program_commands(command_set& commands);   // completion, man, version

}  // namespace sluice::jobs::cli::detail
