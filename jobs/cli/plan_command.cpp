#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <string>

#include "jobs/cli/commands.hpp"
#include "jobs/cli/words.hpp"
#include "jobs/json/json_writer.hpp"
#include "jobs/model/plan.hpp"
#include "jobs/server/shell_word.hpp"

namespace sluice::jobs::cli {
namespace {

constexpr std::size_t points_in_json = 61;
constexpr std::size_t chart_columns_max = 100;

std::string rate(double per_second) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.4g/s", per_second);
  return per_second < 10'000 ? text.data()
                             : grouped(static_cast<std::uint64_t>(std::llround(per_second))) + "/s";
}

std::string jobs(double count) {
  return counted(static_cast<std::uint64_t>(std::llround(count)), "job", "jobs");
}

std::string lasting(plan_seconds d) {
  return short_duration(std::chrono::duration_cast<milliseconds>(d));
}

std::string percent(double share) {
  return std::to_string(std::llround(share * 100)) + "%";
}

std::string set_command(const plan& p, const std::string& queue) {
  return "sluice queues set " + shell_word(queue) + " --capacity " + std::to_string(p.capacity);
}

std::string work_command(const plan& p, const std::string& queue) {
  return "sluice work --queue " + shell_word(queue) + " --concurrency " +
         std::to_string(p.workers) + " --exec COMMAND";
}

void print(const plan& p, const plan_arguments& args, const console& io) {
  const text_style& style = io.style();
  io.line(style.bold(p.verdict));
  const auto row = [&](std::string name, const std::string& value) {
    name.append(14 - name.size(), ' ');
    io.line("  " + style.faint(name) + value);
  };
  const plan_request& input = p.asked;
  row("arrives",
      rate(input.base_per_second) +
          (input.burst_for.count() > 0 ? ", for " + lasting(input.burst_for) + " " +
                                             rate(input.burst_per_second) + ": " + jobs(p.arrivals)
                                       : ""));
  row("workers", grouped(p.workers) + ", which do " + rate(p.service_per_second) +
                     (p.limited_by_cores ? " (more do not help: the cores are busy)" : ""));
  if (p.threads > 0) {
    row("threads", grouped(p.threads) + " keep " + counted(input.cores, "core", "cores") +
                       " busy: cores x (1 + wait / compute)");
  }
  row("busy",
      percent(p.utilisation) + " normally, " + percent(p.burst_utilisation) + " in the burst");
  row("done in burst", jobs(p.done_in_burst));
  row("waiting", jobs(p.peak) + " at most, " + lasting(p.peak_at) + " after the start");
  row("empty again", p.drain ? lasting(*p.drain) + " after the burst" : "never");
  row("longest wait", p.longest_wait ? lasting(*p.longest_wait) : "no bound");
  io.line("");
  io.print(draw(p, {.columns = std::min(io.columns(), chart_columns_max), .rows = 12}));
  io.line("");
  if (p.ends == plan::outcome::overflows) {
    io.line("No capacity is enough: use more workers, or let a full queue reject or drop jobs:");
    io.line("  sluice queues set " + shell_word(args.queue) + " --when-full reject");
    return;
  }
  io.line("To configure this:");
  if (p.capacity > 0) io.line("  " + set_command(p, args.queue));
  io.line("  " + work_command(p, args.queue));
}

std::string to_json(const plan& p, const plan_arguments& args) {
  std::string text;
  json::json_writer out(text);
  static constexpr std::array ends = {"keeps_up", "drains", "stays_level", "overflows"};
  out.begin_object().key("ends").value(ends[static_cast<std::size_t>(p.ends)]);
  out.key("verdict").value(p.verdict).key("workers").value(p.workers);
  out.key("threads").value(p.threads).key("service_per_second").value(p.service_per_second);
  out.key("limited_by_cores").value(p.limited_by_cores);
  out.key("utilisation").value(p.utilisation);
  out.key("burst_utilisation").value(p.burst_utilisation);
  out.key("arrivals").value(p.arrivals).key("done_in_burst").value(p.done_in_burst);
  out.key("peak").value(p.peak).key("peak_at_seconds").value(p.peak_at.count());
  if (p.drain) out.key("drain_seconds").value(p.drain->count());
  if (p.longest_wait) out.key("longest_wait_seconds").value(p.longest_wait->count());
  out.key("capacity").value(p.capacity);
  if (p.capacity > 0) out.key("command").value(set_command(p, args.queue));
  out.key("depth").begin_array();
  for (const plan::sample& s : p.samples(points_in_json)) {
    out.begin_object().key("seconds").value(s.at.count());
    out.key("jobs").value(s.depth).end_object();
  }
  out.end_array().end_object();
  return text;
}

}  // namespace

int run(const plan_arguments& args, const console& io) {
  const auto p = make_plan(args.request);
  if (!p) return static_cast<int>(io.complain(p.error()));
  if (args.json) {
    io.line(to_json(*p, args));
  } else {
    print(*p, args, io);
  }
  return static_cast<int>(exit_code::ok);
}

}  // namespace sluice::jobs::cli
