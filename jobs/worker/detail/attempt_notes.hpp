#pragma once

// Buffer of a running attempt's progress (only the latest is kept) and log lines, until the worker
// takes them. Never blocks: lines beyond the capacity are counted and dropped.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "jobs/model/job.hpp"
#include "sluice/sync/guarded.hpp"

namespace sluice::jobs::detail {

struct taken_notes {
  std::optional<jobs::progress> progress{};
  std::vector<std::string> lines{};
};

struct kept_notes {
  static constexpr std::size_t bytes_max = std::size_t{1} << 20;  // of lines not taken yet

  taken_notes notes{};
  std::size_t bytes = 0;
  std::uint64_t left_out = 0;

  bool is_empty() const { return !notes.progress && notes.lines.empty() && left_out == 0; }
  void add(std::string_view line);
};

class attempt_notes {
 public:
  static constexpr std::size_t bytes_max = kept_notes::bytes_max;

  using taken = taken_notes;

  // Must be called before the first note. `wake` is called, on any thread, when the buffer becomes
  // non-empty.
  void on_available(std::function<void()> wake) { wake_ = std::move(wake); }

  void note(jobs::progress latest);
  void note_lines(std::string_view text);  // one line or several

  taken take();
  bool is_empty() const;

 private:
  using state = kept_notes;
  template <class Change>
  void change(Change apply);

  std::function<void()> wake_{};  // constant after the first note
  guarded<state> state_;
};

}  // namespace sluice::jobs::detail
