#pragma once

// What a server is set to, from four places: flags come before the environment, the environment
// before the file, the file before the defaults.
//
// The file is TOML (docs/reference/configuration.md). It is checked strictly: a key that is not
// known, a value of the wrong type or out of range, a queue or a cron entry that could not be, each
// with its line and column, and all of them at once. Nothing is half applied: there is a whole
// configuration or an error.
//
//     auto c = load_configuration({.flags = {{"listen", ":9000"}}});
//     if (!c) return complain(c.error().message);      // one line for each mistake
//     auto server = server::open(c->options);

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "jobs/model/result.hpp"
#include "jobs/server/server_options.hpp"

namespace sluice::jobs {

struct config_sources {
  std::vector<std::pair<std::string, std::string>> flags{};  // the key's name, and its text
  std::string file{};  // empty: SLUICE_CONFIG, else sluice.toml of the data folder if it is there
  // Gives a variable's value, or null; empty: the environment of the process.
  std::function<const char*(const char*)> environment{};
};

struct configuration {
  struct setting {
    std::string_view name;  // of the key
    std::string text;       // a secret is ***
    std::string from;       // "default", "sluice.toml:12", "SLUICE_DATA", "--data"
  };

  server_options options;
  std::string file;               // that was read; empty: none
  std::vector<setting> settings;  // of every key, in the order of the table
};

// invalid: a line for each mistake; io_error, not_found: the file.
result<configuration> load_configuration(const config_sources& sources);

// Only the file's part, on top of what `into` has; `name` stands in errors, and `folder` is what
// paths in it are relative to (empty: they stay as they are).
void_result apply_config_text(configuration& into, std::string_view text, std::string_view name,
                              const std::string& folder = {});

// What is effective and where it comes from, for people.
std::string describe(const configuration& c);

}  // namespace sluice::jobs
