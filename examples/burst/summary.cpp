#include "examples/burst/summary.hpp"

#include <array>
#include <string_view>

#include "examples/burst/format.hpp"

namespace burst {
namespace {

struct column {
  std::string_view first;  // the two words of its heading
  std::string_view second;
  std::size_t width;
  std::string (*cell)(const report&);
};

constexpr std::size_t policy_width = 11;

const std::array<column, 9>& columns() {
  static const std::array<column, 9> all = {{
      {"", "arrived", 8, [](const report& r) { return grouped(r.arrived); }},
      {"", "done", 7, [](const report& r) { return grouped(r.done); }},
      {"", "rejected", 9, [](const report& r) { return grouped(r.rejected); }},
      {"", "dropped", 8, [](const report& r) { return grouped(r.dropped); }},
      {"max", "depth", 6, [](const report& r) { return grouped(r.deepest); }},
      {"drained", "after", 8, [](const report& r) { return readable(r.drained_after); }},
      {"CPU", "used", 7, [](const report& r) { return readable(r.cpu); }},
      {"longest", "push", 8, [](const report& r) { return readable(r.longest_wait); }},
      {"idle", "CPU", 7, [](const report& r) { return readable(r.idle_cpu); }},
  }};
  return all;
}

std::size_t table_width() {
  std::size_t width = policy_width;
  for (const column& c : columns()) width += c.width;
  return width;
}

bool is_narrow(const terminal& t) {
  return t.size().columns < table_width();
}

// The table transposed, for one policy.
std::string as_list(const report& r, const terminal& t) {
  std::string lines = t.paint(to_string(r.policy), terminal::colour::bold) + "\n";
  for (const column& c : columns()) {
    const auto name = std::string(c.first) + (c.first.empty() ? "" : " ") + std::string(c.second);
    lines += "  " + pad_right(name, 14) + pad_left(c.cell(r), 9) + "\n";
  }
  return lines;
}

std::string json_number(std::string_view name, std::uint64_t number) {
  return ", \"" + std::string(name) + "\": " + std::to_string(number);
}

std::string json_number(std::string_view name, double number) {
  return ", \"" + std::string(name) + "\": " + fixed(number, 3, "");
}

std::string to_json(const report& r) {
  return "{\"policy\": \"" + std::string(to_string(r.policy)) + "\"" +
         json_number("arrived", r.arrived) + json_number("done", r.done) +
         json_number("rejected", r.rejected) + json_number("dropped", r.dropped) +
         json_number("depth_max", std::uint64_t{r.deepest}) +
         json_number("drained_after_ms", in_ms(r.drained_after)) +
         json_number("cpu_ms", in_ms(r.cpu)) +
         json_number("longest_push_ms", in_ms(r.longest_wait)) +
         json_number("idle_ms", in_ms(r.idle_for)) + json_number("idle_cpu_ms", in_ms(r.idle_cpu)) +
         "}";
}

}  // namespace

std::string table_head(const terminal& t) {
  if (is_narrow(t)) return {};
  std::string first = pad_right("", policy_width);
  std::string second = pad_right("policy", policy_width);
  for (const column& c : columns()) {
    first += pad_left(c.first, c.width);
    second += pad_left(c.second, c.width);
  }
  return t.paint(first, terminal::colour::dim) + "\n" + t.paint(second, terminal::colour::dim) +
         "\n";
}

std::string table_row(const report& r, const terminal& t) {
  if (is_narrow(t)) return as_list(r, t);
  std::string row = pad_right(to_string(r.policy), policy_width);
  for (const column& c : columns()) row += pad_left(c.cell(r), c.width);
  return row + "\n";
}

std::string to_json(const settings& s, const std::vector<report>& reports) {
  std::string text = "{\"tasks\": " + std::to_string(s.tasks) +
                     json_number("arrival_ms", in_ms(s.arrival)) +
                     json_number("workers", std::uint64_t{s.workers}) +
                     json_number("capacity", std::uint64_t{s.capacity}) +
                     json_number("work_us", in_ms(s.work) * 1000) + ",\n \"policies\": [";
  for (std::size_t i = 0; i < reports.size(); ++i) {
    text += (i == 0 ? "\n  " : ",\n  ") + to_json(reports[i]);
  }
  return text + "\n]}\n";
}

}  // namespace burst
