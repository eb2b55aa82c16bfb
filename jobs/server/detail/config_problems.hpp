#pragma once

// Collects all errors of a configuration, sorted by line.

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "jobs/model/requests.hpp"
#include "jobs/model/result.hpp"
#include "jobs/server/detail/toml_tree.hpp"
#include "jobs/server/server_options.hpp"

namespace sluice::jobs::detail {

class config_problems {
 public:
  static constexpr std::size_t most = 100;

  explicit config_problems(std::string_view file) : file_(file) {}

  // `sentence` continues the place and the key: " must be from 1 to 10", ": expected ...".
  void add(const toml_value& at, std::string_view table, std::string_view key,
           std::string_view sentence) {
    std::string text = table.empty() ? "" : "[" + std::string(table) + "] ";
    text += key;
    text += sentence;
    found_.emplace_back(at.line, place(at) + text);
  }
  void add(std::string text) { found_.emplace_back(0, std::move(text)); }
  void add_unknown(const toml_value& at, std::string_view table, std::string_view key,
                   const std::vector<std::string_view>& known);

  bool empty() const noexcept { return found_.empty(); }
  error all();

 private:
  std::string place(const toml_value& at) const {
    return file_ + ":" + std::to_string(at.line) + ":" + std::to_string(at.column) + ": ";
  }

  std::string file_;
  std::vector<std::pair<std::size_t, std::string>> found_;
};

// Returns a key similar to `key`, for a hint, or an empty string.
std::string_view nearest(std::string_view key, const std::vector<std::string_view>& known);

// [queues.NAME] and [[cron]].
void read_queues(const toml_value& tables, std::vector<std::pair<std::string, queue_patch>>& into,
                 config_problems& problems);
void read_crons(const toml_value& entries, std::vector<cron_setting>& into,
                config_problems& problems);

}  // namespace sluice::jobs::detail
