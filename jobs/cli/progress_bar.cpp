#include "jobs/cli/progress_bar.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <utility>

#include "jobs/cli/words.hpp"

namespace sluice::jobs::cli {
namespace {

using namespace std::chrono_literals;

constexpr auto between_draws = 100ms;
constexpr auto between_lines = 5s;
constexpr auto rate_window = 10s;
constexpr auto rate_step = 500ms;
constexpr std::size_t bar_columns_max = 30;
constexpr std::size_t bar_columns_min = 8;

std::string amount(std::uint64_t number, const std::string& unit) {
  return unit == "B" ? byte_size(number) : grouped(number);
}

std::string bar_of(double share, std::size_t columns) {
  const auto filled = static_cast<std::size_t>(share * static_cast<double>(columns));
  std::string text = "[";
  text.append(filled, '#').append(columns - filled, '.');
  return text + "]";
}

}  // namespace

std::optional<milliseconds> progress_state::left() const {
  if (total == 0 || done > total || per_second <= 0) return std::nullopt;
  const double seconds = static_cast<double>(total - done) / per_second;
  constexpr double seconds_max = 365.0 * 24 * 3600;
  if (seconds > seconds_max) return std::nullopt;
  return milliseconds(static_cast<std::int64_t>(seconds * 1000));
}

std::string progress_line(const progress_state& s, std::size_t columns) {
  const double share =
      s.total == 0 ? 0 : std::min(1.0, static_cast<double>(s.done) / static_cast<double>(s.total));
  std::string text = amount(s.done, s.unit);
  if (s.total > 0) {
    text += " of " + amount(s.total, s.unit);
  }
  if (s.unit != "B") text += " " + s.unit;
  if (s.per_second > 0) {
    text += ", " + amount(static_cast<std::uint64_t>(s.per_second), s.unit) + "/s";
  }
  if (const auto left = s.left(); left && s.done < s.total)
    text += ", " + short_duration(*left) + " left";
  if (!s.note.empty()) text += ", " + s.note;
  if (s.total == 0) return shortened(s.doing + " " + text, columns);
  std::array<char, 16> percent{};
  std::snprintf(percent.data(), percent.size(), "%3d%%", static_cast<int>(share * 100));
  const std::size_t others = width_of(s.doing) + 1 + 4 + 1 + width_of(text);
  std::string line = s.doing + " ";
  if (others + 3 + bar_columns_min <= columns) {
    line += bar_of(share, std::min(bar_columns_max, columns - others - 3)) + " ";
  }
  return shortened(line + percent.data() + " " + text, columns);
}

progress_bar::progress_bar(const console& io, progress_options o)
    : io_(io),
      quiet_(o.quiet),
      timers_(o.timers != nullptr ? *o.timers : real_clock()),
      began_(timers_.now()),
      drawn_(began_) {
  state_.doing = std::move(o.doing);
  state_.unit = std::move(o.unit);
  state_.total = o.total;
  samples_.push_back({began_, 0});
}

void progress_bar::at(std::uint64_t done) {
  state_.done = done;
  const time_point now = timers_.now();
  if (now - samples_.back().at >= rate_step) {
    samples_.push_back({now, done});
    while (samples_.size() > 2 && now - samples_[1].at >= rate_window) samples_.pop_front();
  }
  const auto pause =
      io_.shows_progress() ? milliseconds(between_draws) : milliseconds(between_lines);
  if (quiet_ || now - drawn_ < pause) return;
  draw(now);
}

void progress_bar::draw(time_point now) {
  const sample& from = samples_.front();
  const double seconds = std::chrono::duration<double>(now - from.at).count();
  state_.per_second = seconds > 0 ? static_cast<double>(state_.done - from.done) / seconds : 0.0;
  drawn_ = now;
  if (io_.shows_progress()) {
    io_.progress(progress_line(state_, io_.columns() - 1));  // a full line would wrap
    is_shown_ = true;
  } else {
    io_.note(progress_line(state_, 200));
  }
}

void progress_bar::clear() {
  if (!std::exchange(is_shown_, false)) return;
  io_.progress("");
  drawn_ = began_;
}

void progress_bar::finish() {
  clear();
}

milliseconds progress_bar::took() const {
  return std::chrono::duration_cast<milliseconds>(timers_.now() - began_);
}

double progress_bar::per_second_overall() const {
  const double seconds = std::chrono::duration<double>(timers_.now() - began_).count();
  return seconds > 0 ? static_cast<double>(state_.done) / seconds : 0.0;
}

}  // namespace sluice::jobs::cli
