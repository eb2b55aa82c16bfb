#pragma once

// The commands of the program as CLI11 has them. One source for each family of commands adds its
// own (parse_*.cpp); none of them knows another, and nothing else knows CLI11.
//
//     void add_get(command_set& to) {
//       auto& get = to.keep<get_arguments>();
//       CLI::App& c = to.add("get", "Show a job.", "  sluice get 42", [&get] { return get; });
//       add_connection(c, get.to);
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
  // What was asked for, when all flags have been read; throws CLI::ParseError.
  using finisher = std::function<arguments()>;

  explicit command_set(CLI::App& app) : app_(app) {}
  command_set(const command_set&) = delete;
  command_set& operator=(const command_set&) = delete;

  CLI::App& app() noexcept { return app_; }
  CLI::App& add(const std::string& name, const std::string& about, const char* examples,
                finisher finish) {
    CLI::App& c = *app_.add_subcommand(name, about);
    c.footer(std::string("Examples:\n") + examples);
    commands_.emplace_back(&c, std::move(finish));
    return c;
  }
  // A value that flags are read into: as long-lived as this.
  template <class T>
  T& keep() {
    auto it = std::make_shared<T>();
    T& value = *it;
    kept_.push_back(std::move(it));
    return value;
  }
  // Of the command that was parsed.
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

// Where the server is, and --json.
void add_connection(CLI::App& c, connection_arguments& into);
// What a job has beside its kind and args, and when it is due.
void add_job_options(CLI::App& c, job_spec& into);

// The families.
void add_beanstalkd_command(command_set& to);
void add_job_commands(command_set& to);       // push, get, jobs, logs
void add_work_commands(command_set& to);      // work, workers
void add_queue_commands(command_set& to);     // queues, plan
void add_workflow_commands(command_set& to);  // batch, cron
void add_watch_commands(command_set& to);     // stats, top, events
void add_data_commands(command_set& to);      // export, import, check, backup, token
void add_program_commands(command_set& to);   // completion, man, version

}  // namespace sluice::jobs::cli::detail
