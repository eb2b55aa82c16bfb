#include "examples/pipeline_memory/figure.hpp"

#include <algorithm>
#include <cmath>
#include <cstdarg>
#include <cstdio>

namespace pipeline_memory {
namespace {

[[gnu::format(printf, 1, 2)]] std::string text(const char* format, ...) {
  char buffer[512];
  std::va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(buffer, sizeof buffer, format, arguments);
  va_end(arguments);
  return buffer;
}

std::string grouped(double n) {
  std::string digits = text("%.0f", n);
  for (auto at = static_cast<int>(digits.size()) - 3; at > 0; at -= 3) {
    digits.insert(static_cast<std::size_t>(at), ",");
  }
  return digits;
}

// One of the two diagrams.
struct panel {
  std::string title;
  double left;
  double most;  // the top of the axis
  double seconds;
  double (*value)(const sample&);

  static constexpr double width = 300;
  static constexpr double top = 76;
  static constexpr double height = 174;

  double x(double at) const { return left + at / seconds * width; }
  double y(double v) const { return top + height - std::min(v / most, 1.0) * height; }

  std::string axes() const {
    std::string out =
        text("  <text x=\"%.1f\" y=\"58\" class=\"s\">%s</text>\n", left, title.c_str());
    for (int i = 0; i <= 2; ++i) {
      const double v = most * i / 2;
      out += text("  <line x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"#dde\"/>\n",
                  left, left + width, y(v), y(v));
      out += text("  <text x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\" class=\"s\">%s</text>\n",
                  left - 8, y(v) + 4, grouped(v).c_str());
    }
    for (int i = 0; i <= 2; ++i) {
      const double at = seconds * i / 2;
      out += text("  <text x=\"%.1f\" y=\"268\" text-anchor=\"middle\" class=\"s\">%.3g s</text>\n",
                  x(at), at);
    }
    return out;
  }
  std::string line(const measured& run, const char* colour) const {
    std::string points;
    for (const sample& each : run.samples) {
      points += text("%s%.1f,%.1f", points.empty() ? "" : " ", x(std::min(each.seconds, seconds)),
                     y(value(each)));
    }
    return text("  <polyline fill=\"none\" stroke=\"%s\" stroke-width=\"2.5\" points=\"", colour) +
           points + "\"/>\n";
  }
};

}  // namespace

double round_up(double value) {
  if (value <= 1) return 1;
  const double power = std::pow(10, std::floor(std::log10(value)));
  for (const double step : {1.0, 2.0, 5.0}) {
    if (value <= step * power) return step * power;
  }
  return 10 * power;
}

std::string to_svg(const settings& s, const measured& bounded, const measured& unbounded) {
  const double seconds = static_cast<double>(s.duration.count()) / 1'000;
  double most_mb = 0;
  for (const auto* run : {&bounded, &unbounded}) {
    for (const sample& each : run->samples) most_mb = std::max(most_mb, each.resident_mb);
  }
  const auto most_items =
      static_cast<double>(std::max(bounded.in_flight_most, unbounded.in_flight_most));
  const panel items{"items in flight", 70, round_up(most_items), seconds,
                    [](const sample& each) { return static_cast<double>(each.in_flight); }};
  const panel memory{"resident memory, MiB", 440, round_up(most_mb), seconds,
                     [](const sample& each) { return each.resident_mb; }};
  const std::string facts =
      text("The source could make %s items a second, one stage passes %s. ",
           grouped(static_cast<double>(s.source_per_second)).c_str(),
           grouped(1'000.0 / static_cast<double>(s.slow_stage.count())).c_str());

  std::string out =
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 760 300\" width=\"760\" "
      "height=\"300\" role=\"img\" aria-labelledby=\"t d\">\n"
      "  <title id=\"t\">A pipeline whose source outruns its slowest stage 100 to 1</title>\n";
  out += "  <desc id=\"d\">" + facts +
         text(
             "With bounded queues at most %s items are in flight and memory grows by %.0f MiB; "
             "without a bound there are %s, and it grows by %.0f MiB.</desc>\n",
             grouped(static_cast<double>(bounded.in_flight_most)).c_str(), bounded.grown_mb,
             grouped(static_cast<double>(unbounded.in_flight_most)).c_str(), unbounded.grown_mb);
  out +=
      "  <style>text{font:13px system-ui,sans-serif;fill:#334}.s{font-size:12px;fill:#667}"
      ".b{fill:#1a6fb5}.r{fill:#b5481a}</style>\n"
      "  <rect width=\"760\" height=\"300\" rx=\"8\" fill=\"#fff\"/>\n";
  out += "  <text x=\"70\" y=\"26\" style=\"font-weight:600\">" + facts + "</text>\n";
  for (const panel& each : {items, memory}) {
    out += each.axes() + each.line(unbounded, "#b5481a") + each.line(bounded, "#1a6fb5");
  }
  const auto caption = [](const measured& run) {
    return run.name + ": at most " + grouped(static_cast<double>(run.in_flight_most)) +
           text(" items, +%.0f MiB", run.grown_mb);
  };
  out += "  <text x=\"70\" y=\"290\" class=\"s b\">" + caption(bounded) + "</text>\n";
  out += "  <text x=\"440\" y=\"290\" class=\"s r\">" + caption(unbounded) + "</text>\n</svg>\n";
  return out;
}

}  // namespace pipeline_memory
