#include "examples/burst/screen.hpp"

#include <algorithm>
#include <cstdio>
#include <string_view>

#include "examples/burst/format.hpp"

namespace burst {
namespace {

using colour = terminal::colour;

constexpr std::size_t looks_per_drawing = 2;
constexpr std::size_t looks_per_rate = 8;
constexpr std::size_t label_columns = 9;
constexpr std::size_t number_columns = 26;
constexpr std::size_t rows_needed = 11;

std::string_view meaning(sluice::overflow policy) {
  switch (policy) {
    case sluice::overflow::block:
      return "when full, the producer waits for capacity";
    case sluice::overflow::reject:
      return "when full, the push returns full and the producer keeps the task";
    case sluice::overflow::drop_newest:
      return "when full, the task that arrives is dropped";
    case sluice::overflow::drop_oldest:
      return "when full, the task that waited longest is dropped";
    case sluice::overflow::latest:
      return "when full, the newest task replaces the one before it";
    case sluice::overflow::caller_runs:
      return "when full, the producer does the task itself";  // for executors only
  }
  return {};
}

double share(std::uint64_t part, std::uint64_t whole) {
  return static_cast<double>(part) / static_cast<double>(whole);
}

std::string per_second(double rate) {
  return grouped(static_cast<std::uint64_t>(std::max(rate, 0.0))) + "/s";
}

}  // namespace

void screen::begin(sluice::overflow policy, std::size_t number) {
  policy_ = policy;
  number_ = number;
  looks_ = 0;
  seen_.clear();
  depths_.clear();
}

void screen::show(const moment& now) {
  depths_.push_back(share(now.depth, settings_.capacity));
  seen_.push_back(now);
  if (seen_.size() > looks_per_rate) seen_.pop_front();
  if (looks_++ % looks_per_drawing != 0 || terminal_.size().rows < rows_needed) return;

  std::string frame = lines_drawn_ > 0 ? "\x1b[" + std::to_string(lines_drawn_) + "A" : "\x1b[?25l";
  const auto lines = draw(now);
  // One column is left free: a terminal may wrap a line that ends in the last one.
  const auto columns = terminal_.size().columns - 1;
  for (const std::string& line : lines) frame += "\r" + clip(line, columns) + "\x1b[K\n";
  lines_drawn_ = lines.size();
  std::fputs(frame.c_str(), stdout);
  std::fflush(stdout);
}

void screen::clear() {
  if (lines_drawn_ == 0) return;
  // Moves up, erases to the end of the screen, and shows the cursor again.
  std::printf("\x1b[%zuA\r\x1b[J\x1b[?25h", lines_drawn_);
  std::fflush(stdout);
  lines_drawn_ = 0;
}

std::vector<std::string> screen::draw(const moment& now) const {
  const auto columns = terminal_.size().columns;
  const std::size_t taken = 1 + label_columns + number_columns;
  const std::size_t bar_columns = std::clamp(columns, taken + 8, taken + 60) - taken;
  const rates r = rates_until(now);

  return {"",
          title(),
          label("arrived") + progress(now.arrived, colour::cyan, bar_columns),
          label("done") + progress(now.done, colour::green, bar_columns),
          label("depth") + depth(now, bar_columns),
          label("") + history(bar_columns),
          label("lost") + "rejected " + pad_left(grouped(now.rejected), 6) + "   dropped " +
              pad_left(grouped(now.dropped), 6),
          label("rate") + "in " + pad_left(per_second(r.arriving), 9) + "   done " +
              pad_left(per_second(r.done), 8),
          label("CPU") + cpu(now, r)};
}

std::string screen::title() const {
  const auto count = std::to_string(number_) + "/" + std::to_string(settings_.policies.size());
  return terminal_.paint(count, colour::dim) + " " +
         terminal_.paint(pad_right(to_string(policy_), 12), colour::bold) +
         std::string(meaning(policy_));
}

std::string screen::progress(std::uint64_t count, colour c, std::size_t columns) const {
  const double part = share(count, settings_.tasks);
  return terminal_.paint(bar(part, columns, terminal_.is_unicode()), c) + " " +
         pad_left(grouped(count), 7) + " of " + grouped(settings_.tasks);
}

std::string screen::depth(const moment& now, std::size_t columns) const {
  const double part = share(now.depth, settings_.capacity);
  const colour c = part < 0.5 ? colour::green : part < 0.95 ? colour::yellow : colour::red;
  return terminal_.paint(bar(part, columns, terminal_.is_unicode()), c) + " " +
         pad_left(grouped(now.depth), 7) + " of " + grouped(settings_.capacity);
}

// The depth over time, the latest at the right end.
std::string screen::history(std::size_t columns) const {
  const std::size_t shown = std::min(columns, depths_.size());
  std::string line;
  for (std::size_t at = depths_.size() - shown; at < depths_.size(); ++at) {
    line += level(depths_[at], terminal_.is_unicode());
  }
  return terminal_.paint(pad_right(line, columns), colour::yellow) +
         terminal_.paint("    depth over time", colour::dim);
}

std::string screen::cpu(const moment& now, const rates& r) const {
  if (now.phase != phase::idle) return fixed(r.cores, 2, " cores busy");
  return terminal_.paint("idle", colour::green) + ", " + grouped(settings_.workers) +
         " workers waiting: " + readable(now.idle_cpu) + " in " +
         fixed(in_seconds(now.idle_for), 1, " s");
}

std::string screen::label(std::string_view text) const {
  return " " + terminal_.paint(pad_right(text, label_columns), colour::dim);
}

screen::rates screen::rates_until(const moment& now) const {
  const moment& then = seen_.front();
  const double seconds = in_seconds(now.since_start - then.since_start);
  if (seconds <= 0) return {};
  return {static_cast<double>(now.arrived - then.arrived) / seconds,
          static_cast<double>(now.done - then.done) / seconds,
          in_seconds(now.cpu - then.cpu) / seconds};
}

}  // namespace burst
