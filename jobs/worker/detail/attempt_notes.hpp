#pragma once

// What a handler says of its attempt while it runs, until the worker takes it: how far it is (the
// last that was said counts) and lines of its log. Nobody waits: what there is no room for is
// counted and left out.

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
  std::optional<jobs::progress> how_far{};
  std::vector<std::string> lines{};
};

struct kept_notes {
  static constexpr std::size_t bytes_max = std::size_t{1} << 20;  // of lines that were not taken

  taken_notes notes{};
  std::size_t bytes = 0;
  std::uint64_t left_out = 0;

  bool is_empty() const { return !notes.how_far && notes.lines.empty() && left_out == 0; }
  void add(std::string_view line);
};

class attempt_notes {
 public:
  static constexpr std::size_t bytes_max = kept_notes::bytes_max;

  using taken = taken_notes;

  // Before anything is noted: called, on whatever thread, when there is something to take after
  // there was nothing.
  void tell(std::function<void()> wake) { wake_ = std::move(wake); }

  void note(jobs::progress how_far);
  void note_lines(std::string_view text);  // one line or several

  taken take();
  bool is_empty() const;

 private:
  using state = kept_notes;
  template <class Change>
  void change(Change apply);

  std::function<void()> wake_{};  // constant once something was noted
  guarded<state> state_;
};

}  // namespace sluice::jobs::detail
