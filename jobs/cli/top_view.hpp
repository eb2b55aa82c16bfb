#pragma once

// What `sluice top` shows, without a terminal: what was seen of a server (`top_model`), what the
// one who watches has chosen (`top_choice`), and a frame made of the two (`render_top`).
//
// Guarantees: pure. A frame has exactly as many lines as the screen has rows, none wider than its
// columns, whatever the server says; from 40 columns and 8 rows on it shows something useful.

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

// One look at a server.
struct top_snapshot {
  time_point at{};   // for rates
  unix_time wall{};  // for people
  engine_stats stats{};
  jobs::health health{};
  std::vector<queue_info> queues{};
};

// What can be told from several looks, one after the other.
class top_model {
 public:
  static constexpr std::size_t history_max = 60;

  // In a second; none before the second look, and when the server was started anew.
  struct rates {
    std::optional<double> pushed, done, failed, commits;
  };
  struct queue_row {
    queue_info info{};
    std::optional<double> net_per_second{};  // by how much its unfinished jobs grow
    std::deque<std::uint64_t> depth{};       // unfinished jobs, the newest last
  };

  void add(top_snapshot now);
  // The server did not answer; what was seen last stays.
  void lose(std::string why) { problem_ = std::move(why); }

  bool has_seen() const noexcept { return now_.has_value(); }
  const top_snapshot& now() const { return *now_; }
  const rates& per_second() const noexcept { return rates_; }
  const std::map<std::string, queue_row, std::less<>>& queues() const noexcept { return rows_; }
  queue_counts totals() const;
  const std::string& problem() const noexcept { return problem_; }  // empty: it answers

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
  std::string filter{};    // a part of the names that are shown
  std::string selected{};  // a queue; empty, or one that is not shown: the first
  std::string note{};      // what came of the last key
};

struct screen_size {
  std::size_t columns = 80;
  std::size_t rows = 24;
};

// The queues that are shown, in their order.
std::vector<const top_model::queue_row*> shown_queues(const top_model& seen, const top_choice& c);
// The place of the selected one among them; zero when there are none.
std::size_t selected_place(const std::vector<const top_model::queue_row*>& shown,
                           const top_choice& c);

struct top_looks {
  std::string url{};
  milliseconds every{1'000};
  screen_size size{};
  text_style style{};
  bool unicode = false;
};
// Lines, each with a line end but the last.
std::string render_top(const top_model& seen, const top_choice& choice, const top_looks& looks);
// The same as a table of any length, for what is no terminal.
std::string top_table(const top_model& seen, const top_looks& looks);

// 1234 as 1234, 12345 as 12.3k, 1234567 as 1.2M: five characters at most.
std::string compact(std::uint64_t number);
// One character for each of the newest values; the tallest is the largest of them.
std::string sparkline(const std::deque<std::uint64_t>& values, std::size_t columns, bool unicode);

}  // namespace sluice::jobs::cli
