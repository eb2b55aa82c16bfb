#include <csignal>
#include <string>
#include <utility>

#include "jobs/cli/commands.hpp"
#include "jobs/cli/connection.hpp"
#include "jobs/cli/words.hpp"
#include "jobs/json/codec.hpp"
#include "jobs/server/signal_watch.hpp"

namespace sluice::jobs::cli {
namespace {

std::string rate(std::uint64_t now, std::uint64_t before, milliseconds between) {
  if (now < before || between.count() <= 0) return "-";  // the server was restarted
  const auto per_second = (now - before) * 1000 / static_cast<std::uint64_t>(between.count());
  return grouped(per_second) + "/s";
}

class report {
 public:
  explicit report(const console& io) : io_(io) {}

  void row(std::string name, const std::string& value) {
    name.append(12 - name.size(), ' ');
    text_ += "  " + io_.style().faint(name) + value + "\n";
  }
  const std::string& text() const { return text_; }

 private:
  const console& io_;
  std::string text_;
};

std::string to_text(const engine_stats& s, const health& h, const console& io) {
  const text_style& style = io.style();
  report r(io);
  r.row("health", h.takes_pushes ? style.green("accepts pushes")
                                 : style.red("rejects pushes") + ": " + h.reason);
  r.row("pushed", grouped(s.pushed) + " (" + grouped(s.duplicates) + " duplicates, " +
                      grouped(s.dropped) + " dropped, " + grouped(s.refused) + " refused)");
  r.row("leased", grouped(s.leased) + " (" + grouped(s.running) + " now, " + grouped(s.expired) +
                      " expired, " + grouped(s.given_back) + " released)");
  r.row("acked", grouped(s.acked));
  r.row("failed", grouped(s.failed) + " (" + grouped(s.retried) + " to be retried, " +
                      grouped(s.died) + " dead)");
  r.row("cancelled", grouped(s.cancelled));
  r.row("waiting", counted(s.waiting_leases, "worker", "workers") + ", " +
                       counted(s.waiting_pushes, "push", "pushes"));
  r.row("commits", grouped(s.commits) + " of " + grouped(s.committed_changes) + " changes (" +
                       grouped(s.commit_errors) + " failed); p50 " + grouped(s.commit_p50_us) +
                       " us, p99 " + grouped(s.commit_p99_us) + " us");
  r.row("in memory",
        counted(s.window_jobs, "waiting job", "waiting jobs") + ", " + byte_size(s.window_bytes));
  return r.text();
}

std::string rates_text(const engine_stats& now, const engine_stats& before, milliseconds between,
                       const console& io) {
  report r(io);
  r.row("rates", "pushed " + rate(now.pushed, before.pushed, between) + ", leased " +
                     rate(now.leased, before.leased, between) + ", acked " +
                     rate(now.acked, before.acked, between) + ", failed " +
                     rate(now.failed, before.failed, between));
  return r.text();
}

struct snapshot {
  engine_stats stats;
  jobs::health health;
};

result<snapshot> take_snapshot(client& server) {
  auto stats = server.stats();
  if (!stats) return stats.error();
  auto health = server.health();
  if (!health) return health.error();
  return snapshot{*stats, std::move(*health)};
}

exit_code watch(client& server, signal_watch& signals, const stats_arguments& args,
                const console& io) {
  std::optional<engine_stats> before;
  for (;;) {
    const auto now = take_snapshot(server);
    if (!now) return io.complain(now.error());
    if (args.server.json) {
      io.line(json::to_json(now->stats));
    } else {
      if (io.style().colours) io.print("\033[H\033[2J");
      io.print(to_text(now->stats, now->health, io));
      if (before) io.print(rates_text(now->stats, *before, *args.watch, io));
    }
    if (const auto out = io.flush(); !out)
      return exit_code::failed;  // the reader has closed the pipe
    before = now->stats;
    const auto woken = signals.wait(deadline::after(*args.watch));
    if (woken.cause == signal_watch::woken::by::signal) return exit_code::ok;
  }
}

}  // namespace

int run(const stats_arguments& args, const console& io) {
  // Created before the client's thread.
  std::optional<signal_watch> signals;
  if (args.watch) signals.emplace(std::initializer_list<int>{SIGINT, SIGTERM});
  return with_client(args.server, io, [&](client& server) {
    if (signals) return watch(server, *signals, args, io);
    const auto now = take_snapshot(server);
    if (!now) return io.complain(now.error());
    io.print(args.server.json ? json::to_json(now->stats) + "\n"
                              : to_text(now->stats, now->health, io));
    return exit_code::ok;
  });
}

}  // namespace sluice::jobs::cli
