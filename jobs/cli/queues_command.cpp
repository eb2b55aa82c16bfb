#include <array>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "jobs/cli/commands.hpp"
#include "jobs/cli/connection.hpp"
#include "jobs/cli/words.hpp"
#include "jobs/json/codec.hpp"
#include "jobs/json/text.hpp"

namespace sluice::jobs::cli {
namespace {

void print_all(const std::vector<queue_info>& queues, const console& io) {
  if (queues.empty()) {
    io.note("no queues yet: the first push creates one");
    return;
  }
  constexpr auto right = table::align::right;
  table t({{"QUEUE"},
           {"READY", right},
           {"SCHEDULED", right},
           {"HELD", right},
           {"RUNNING", right},
           {"RETRYING", right},
           {"DEAD", right},
           {"DONE", right},
           {"SIZE", right},
           {""}});
  for (const queue_info& q : queues) {
    const queue_counts& n = q.counts;
    t.add({q.name, grouped(n.ready), grouped(n.scheduled), grouped(n.held), grouped(n.running),
           grouped(n.retrying), grouped(n.dead), grouped(n.done), byte_size(n.bytes),
           q.options.paused ? "paused" : ""});
  }
  io.print(t.text(io.style()));
}

std::string rate_text(double rate, std::uint32_t burst) {
  if (rate == 0) return "no limit";
  std::array<char, 32> number{};
  std::snprintf(number.data(), number.size(), "%.6g/s", rate);
  return number.data() + (burst == 0 ? "" : ", up to " + grouped(burst) + " at once");
}

std::string limit_text(std::uint32_t limit) {
  return limit == 0 ? "no limit" : grouped(limit) + " at a time";
}

void print_one(const queue_info& q, const console& io) {
  const queue_options& o = q.options;
  const queue_counts& n = q.counts;
  const text_style& style = io.style();
  io.line(style.bold(q.name) + (o.paused ? " " + style.yellow("paused") : ""));
  const auto row = [&](std::string name, const std::string& value) {
    name.append(14 - name.size(), ' ');
    io.line("  " + style.faint(name) + value);
  };
  row("jobs", grouped(n.ready) + " ready, " + grouped(n.scheduled) + " scheduled, " +
                  grouped(n.held) + " held, " + grouped(n.running) + " running, " +
                  grouped(n.retrying) + " retrying");
  row("ended", grouped(n.done) + " done, " + grouped(n.dead) + " dead, " + grouped(n.cancelled) +
                   " cancelled");
  row("capacity", grouped(n.unfinished()) + " of " + grouped(o.capacity_jobs) + " jobs, " +
                      byte_size(n.bytes) + " of " + byte_size(o.capacity_bytes));
  row("when full", std::string(to_string(o.when_full)));
  row("rate", rate_text(o.rate, o.rate_burst));
  row("concurrency", limit_text(o.concurrency));
  row("of one key", limit_text(o.key_concurrency) + ", " + rate_text(o.key_rate, o.key_burst));
  row("weight", grouped(o.weight));
  if (!o.deliver.url.empty()) {
    row("delivered to", o.deliver.url + ", " + limit_text(o.deliver.concurrency) +
                            ", each within " + format_duration(o.deliver.timeout));
  }
  row("lease for", format_duration(o.lease_for));
  row("keep done", format_duration(o.keep_done));
  row("keep results", format_duration(o.keep_results));
  row("keep dead", format_duration(o.keep_dead));
}

exit_code show(const result<queue_info>& q, bool as_json, const console& io) {
  if (!q) return io.complain(q.error());
  if (as_json) {
    io.line(json::to_json(*q));
  } else {
    print_one(*q, io);
  }
  return exit_code::ok;
}

exit_code list(client& server, bool as_json, const console& io) {
  const auto queues = server.queues();
  if (!queues) return io.complain(queues.error());
  if (as_json) {
    io.line(json::to_json(*queues));
  } else {
    print_all(*queues, io);
  }
  return exit_code::ok;
}

exit_code purge(client& server, const queues_arguments& args, const console& io) {
  const auto q = server.queue(args.name);
  if (!q) return io.complain(q.error());
  if (!args.yes) {
    if (!io.is_interactive()) {
      return io.complain(exit_code::bad_usage,
                         "purge deletes jobs; without a terminal it needs --yes");
    }
    const queue_counts& n = q->counts;
    const std::uint64_t jobs =
        n.ready + n.scheduled + n.held + n.retrying + n.done + n.dead + n.cancelled;
    if (!io.confirms("Delete all " + counted(jobs, "job", "jobs") + " of " + args.name +
                     " that are not running?")) {
      return io.complain(exit_code::failed, "cancelled: nothing was purged");
    }
  }
  io.progress("purging " + args.name + " ...");
  const auto purged = server.purge(args.name);
  io.progress("");
  if (!purged) return io.complain(purged.error());
  io.line(args.server.json ? json::to_json(json::purge_receipt{*purged})
                           : "purged " + counted(*purged, "job", "jobs"));
  return exit_code::ok;
}

}  // namespace

int run(const queues_arguments& args, const console& io) {
  using action = queues_arguments::action;
  return with_client(args.server, io, [&](client& server) {
    switch (args.operation) {
      case action::list:
        return list(server, args.server.json, io);
      case action::show:
        return show(server.queue(args.name), args.server.json, io);
      case action::set:
        return show(server.configure(args.name, args.patch), args.server.json, io);
      case action::pause:
        return show(server.configure(args.name, {.paused = true}), args.server.json, io);
      case action::resume:
        return show(server.configure(args.name, {.paused = false}), args.server.json, io);
      case action::purge:
        break;
    }
    return purge(server, args, io);
  });
}

}  // namespace sluice::jobs::cli
