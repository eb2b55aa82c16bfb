#include "tests/sim_jobs/history.hpp"

#include <memory>
#include <utility>

#include "jobs/engine/engine.hpp"
#include "sluice/base/seam.hpp"
#include "tests/crash/engine_client.hpp"
#include "tests/crash/load.hpp"
#include "tests/sim_jobs/logged_client.hpp"
#include "tests/sim_jobs/play.hpp"

namespace sluice::sim_jobs {
namespace {

using namespace std::chrono_literals;

class history_player {
 public:
  history_player(const history_plan& plan, event_log& log, remains<history>& out)
      : lives_(plan.seed, log), log_(log), out_(out) {
    lives_.disk().misbehave({.eats = plan.eats, .revives = plan.revives});
  }

  void play() {
    const auto began = seam::now();
    const auto count = 1 + chance().below(4);
    for (std::uint32_t i = 0; i < count; ++i) {
      lives_.live(
          [&](jobs::engine& server, const lives::is_gone& gone) { keep_busy(server, gone); });
      book_.crashed();
    }
    drain();
    out_.all.lives = lives_.so_far();
    out_.all.disk = lives_.disk().counts();
    out_.all.simulated_ms = static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::milliseconds>(seam::now() - began).count());
    out_.judge(book_);
  }

 private:
  using connection = std::unique_ptr<crash::client>;
  using way = crash::engine_client::way;

  random& chance() { return lives_.chance(); }

  void keep_busy(jobs::engine& server, const lives::is_gone& gone) {
    if (is_bounded_) (void)server.configure("alpha", {.capacity_jobs = 100}).get();
    // In some lives, some of the clients are loops that commit for their callers.
    const std::uint32_t commits_one_in = chance().below(4);
    std::uint32_t connected = 0;
    const auto connect = [&]() -> connection {
      const bool commits = commits_one_in != 0 && ++connected % commits_one_in == 0;
      return std::make_unique<logged_client>(
          std::make_unique<crash::engine_client>(server, gone, commits ? way::commits : way::waits),
          log_, chance().next());
    };
    const crash::load busy{.pushers = 2,
                           .workers = 2,
                           .seed = chance().next(),
                           .keys = 6,
                           .lease_wait = milliseconds(3),
                           .short_lease = milliseconds(1 + chance().below(30)),
                           .result_percent = 10,
                           .buried_percent = 5};
    (void)crash::keep_busy(book_, connect, busy, {});
  }

  void drain() {
    const auto server = lives_.last();
    if (server == nullptr) return out_.add("the last server did not open");
    (void)server->configure("alpha", {.capacity_jobs = 1'000'000}).get();
    logged_client last(std::make_unique<crash::engine_client>(*server, [] { return false; }), log_,
                       0);
    // A lease saved by an orderly end restarts, and lasts for a minute.
    if (!crash::drain(book_, last, 5min)) out_.add("the server could not be drained");
  }

  lives lives_;
  event_log& log_;
  remains<history>& out_;
  crash::ledger book_;
  bool is_bounded_ = chance().below(3) == 0;
};

}  // namespace

history run(const history_plan& plan) {
  auto [made, findings] =
      play<history_player, history>(plan, {.name = "history", .steps_max = 20'000'000});
  if (!findings.empty()) made.found.findings.push_back(findings);
  if (!findings.empty() && made.found.ok()) made.broken += findings;
  return std::move(made);
}

void history::add(const history& more) {
  found.add(more.found);
  disk.add(more.disk);
  lives.add(more.lives);
  for (const auto count : {&history::simulated_ms, &history::steps, &history::events}) {
    this->*count += more.*count;
  }
  hash = (hash ^ more.hash) * 0x100000001b3ULL;
  broken += more.broken;
}

std::string history::to_string() const {
  const auto line = [](const char* name, std::uint64_t count) {
    return std::string(name) + " " + std::to_string(count);
  };
  std::string text = found.to_string() + "\n";
  text += line("lives", lives.lives) + ", " + line("orderly ends", lives.orderly) + ", " +
          line("failed openings", lives.failed_openings) + ", " +
          line("simulated seconds", simulated_ms / 1000) + ", " + line("steps", steps) + ", " +
          line("events", events) + "\n";
  text += line("commits", disk.commits) + " (" + line("changes", disk.changes) + "), " +
          line("failed", disk.failed) + ", " + line("slow", disk.slow) + ", " +
          line("refused by a full disk", disk.refused_full) + ", " +
          line("cut before", disk.cut_before) + ", " + line("cut after", disk.cut_after) + ", " +
          line("cut at a read", disk.cut_reading) + ", " +
          line("failed but there after a crash", disk.doubts_done) + ", " +
          line("failed and not there", disk.doubts_gone) + ", " + line("reads", disk.reads) + ", " +
          line("failed reads", disk.reads_failed);
  return text;
}

}  // namespace sluice::sim_jobs
