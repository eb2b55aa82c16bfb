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
  if (now < before || between.count() <= 0) return "-";  // the server was started anew
  const auto per_second = (now - before) * 1000 / static_cast<std::uint64_t>(between.count());
  return grouped(per_second) + "/s";
}

class report {
 public:
  explicit report(const console& to) : to_(to) {}

  void row(std::string name, const std::string& value) {
    name.append(12 - name.size(), ' ');
    text_ += "  " + to_.style().faint(name) + value + "\n";
  }
  const std::string& text() const { return text_; }

 private:
  const console& to_;
  std::string text_;
};

std::string to_text(const engine_stats& s, const health& h, const console& to) {
  const text_style& style = to.style();
  report r(to);
  r.row("health", h.takes_pushes ? style.green("takes pushes")
                                 : style.red("refuses pushes") + ": " + h.reason);
  r.row("pushed", grouped(s.pushed) + " (" + grouped(s.duplicates) + " duplicates, " +
                      grouped(s.dropped) + " dropped, " + grouped(s.refused) + " refused)");
  r.row("leased", grouped(s.leased) + " (" + grouped(s.running) + " now, " + grouped(s.expired) +
                      " ran out, " + grouped(s.given_back) + " given back)");
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
                       const console& to) {
  report r(to);
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

result<snapshot> look(client& server) {
  auto stats = server.stats();
  if (!stats) return stats.error();
  auto health = server.health();
  if (!health) return health.error();
  return snapshot{*stats, std::move(*health)};
}

exit_code watch(client& server, signal_watch& signals, const stats_arguments& what,
                const console& to) {
  std::optional<engine_stats> before;
  for (;;) {
    const auto now = look(server);
    if (!now) return to.complain(now.error());
    if (what.to.json) {
      to.line(json::to_json(now->stats));
    } else {
      if (to.style().colours) to.print("\033[H\033[2J");
      to.print(to_text(now->stats, now->health, to));
      if (before) to.print(rates_text(now->stats, *before, *what.watch, to));
    }
    if (const auto out = to.flush(); !out) return exit_code::failed;  // nobody reads any more
    before = now->stats;
    const auto woken = signals.wait(deadline::after(*what.watch));
    if (woken.what == signal_watch::woken::by::signal) return exit_code::ok;
  }
}

}  // namespace

int run(const stats_arguments& what, const console& to) {
  // Before the client starts its thread.
  std::optional<signal_watch> signals;
  if (what.watch) signals.emplace(std::initializer_list<int>{SIGINT, SIGTERM});
  return with_client(what.to, to, [&](client& server) {
    if (signals) return watch(server, *signals, what, to);
    const auto now = look(server);
    if (!now) return to.complain(now.error());
    to.print(what.to.json ? json::to_json(now->stats) + "\n"
                          : to_text(now->stats, now->health, to));
    return exit_code::ok;
  });
}

}  // namespace sluice::jobs::cli
