#pragma once

// The content of `sluice top`, without a terminal: the samples of a server (`top_model`), the
// user's selection (`top_choice`), and a frame made from both (`render_top`).
//
// Guarantees: pure functions. A frame has exactly as many lines as the screen has rows, and no line
// exceeds its columns, for any reply of the server; useful from 40 columns and 8 rows.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "jobs/cli/table.hpp"
#include "jobs/model/requests.hpp"
#include "jobs/model/time.hpp"

namespace sluice::jobs::cli {

// One sample of a server.
struct top_snapshot {
  time_point at{};   // for rates
  unix_time wall{};  // for people
  engine_stats stats{};
  jobs::health health{};
  std::vector<queue_info> queues{};
};

// Values derived from consecutive samples.
class top_model {
 public:
  static constexpr std::size_t history_max = 60;

  // Per second; unset before the second sample and after a restart of the server.
  struct rates {
    std::optional<double> pushed, done, failed, commits;
  };
  struct queue_row {
    queue_info info{};
    std::optional<double> net_per_second{};  // growth of its unfinished jobs
    std::deque<std::uint64_t> depth{};       // unfinished jobs, the newest value last
  };

  void add(top_snapshot now);
  // Called if the server did not reply; the last sample is kept.
  void lose(std::string why) { problem_ = std::move(why); }

  bool has_seen() const noexcept { return now_.has_value(); }
  const top_snapshot& now() const { return *now_; }
  const rates& per_second() const noexcept { return rates_; }
  const std::map<std::string, queue_row, std::less<>>& queues() const noexcept { return rows_; }
  queue_counts totals() const;
  const std::string& problem() const noexcept { return problem_; }  // empty: the server replies

 private:
  std::optional<top_snapshot> now_;
  rates rates_;
  std::map<std::string, queue_row, std::less<>> rows_;
  std::string problem_;
};

enum class top_order : std::uint8_t { name, depth, ready, running, dead };
std::string_view to_string(top_order order) noexcept;

struct top_choice {
  enum class mode : std::uint8_t { watching, filtering, asking, helping };
  mode now = mode::watching;
  top_order order = top_order::name;
  std::string filter{};    // part of the names that are shown
  std::string selected{};  // a queue; empty or not shown: the first
  std::string note{};      // result of the last key
};

struct screen_size {
  std::size_t columns = 80;
  std::size_t rows = 24;
};

// Returns the queues to show, in order.
std::vector<const top_model::queue_row*> shown_queues(const top_model& seen, const top_choice& c);
// Returns the index of the selected queue; 0 if there are none.
std::size_t selected_place(const std::vector<const top_model::queue_row*>& shown,
                           const top_choice& c);

struct top_looks {
  std::string url{};
  milliseconds every{1'000};
  screen_size size{};
  text_style style{};
  bool unicode = false;
};
// Returns lines, each but the last with a line end.
std::string render_top(const top_model& seen, const top_choice& choice, const top_looks& looks);
// Returns the same as a table of any length, for output that is not a terminal.
std::string top_table(const top_model& seen, const top_looks& looks);

// Formats 1234 as 1234, 12345 as 12.3k, 1234567 as 1.2M: at most five characters.
std::string compact(std::uint64_t number);
// Returns one character for each of the newest values, scaled to their maximum.
std::string sparkline(const std::deque<std::uint64_t>& values, std::size_t columns, bool unicode);

}  // namespace sluice::jobs::cli
