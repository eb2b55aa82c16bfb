#pragma once

// Loads a server's configuration from four sources: flags take precedence over the environment, the
// environment over the file, and the file over the defaults.
//
// The file is TOML (docs/reference/configuration.md) and checked strictly: unknown keys, values of
// the wrong type or out of range, invalid queues and cron entries are reported all at once, each
// with its line and column. The result is a complete configuration or an error.
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
  std::vector<std::pair<std::string, std::string>> flags{};  // names of keys, and their texts
  std::string file{};  // empty: SLUICE_CONFIG, else sluice.toml in the data folder, if it exists
  // Returns a variable's value or null; empty: the environment of the process.
  std::function<const char*(const char*)> environment{};
};

struct configuration {
  struct setting {
    std::string_view name;  // of the key
    std::string text;       // a secret is ***
    std::string from;       // "default", "sluice.toml:12", "SLUICE_DATA", "--data"
  };

  server_options options;
  std::string file;               // the file that was read; empty: none
  std::vector<setting> settings;  // of every key, in the order of the table
};

// Fails with `invalid` (one line per error), or with `io_error` or `not_found` for the file.
result<configuration> load_configuration(const config_sources& sources);

// Applies the text of a file to `into`. `name` is the file's name in errors; relative paths are
// resolved against `folder`, if it is not empty.
void_result apply_config_text(configuration& into, std::string_view text, std::string_view name,
                              const std::string& folder = {});

// Formats the effective settings and their sources, for people.
std::string describe(const configuration& c);

}  // namespace sluice::jobs
