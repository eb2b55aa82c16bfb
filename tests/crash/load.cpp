#include "tests/crash/load.hpp"

#include <array>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "sluice/base/atomic.hpp"
#include "sluice/base/deadline.hpp"
#include "sluice/base/random.hpp"
#include "sluice/base/seam.hpp"
#include "sluice/sync/event.hpp"

namespace sluice::crash {
namespace {

using namespace std::chrono_literals;

constexpr std::uint32_t remembered = 16;  // jobs of a pusher, to cancel or delete
constexpr milliseconds long_lease = 2s;   // survives an orderly end, and a drain waits for it

// Leases jobs and records them in the ledger. A job whose own lease expired before the reply was
// read may have been delivered to another worker: with `are_left` it is not recorded and expires.
enum class late_ones : std::uint8_t { are_taken, are_left };
std::optional<std::vector<taken_job>> take(ledger& book, client& server, std::size_t max,
                                           milliseconds wait, milliseconds lease_for,
                                           late_ones late) {
  const auto asked = book.asking();
  const auto asked_at = jobs::real_time().now();
  auto taken = server.lease(max, wait, lease_for);
  if (!taken) return taken;
  const auto came = jobs::real_time().now();
  if (late == late_ones::are_left) {
    std::erase_if(*taken, [&](const taken_job& job) {
      return job.lasts > 0ms && came >= asked_at + job.lasts;
    });
  }
  for (auto& job : *taken) {
    job.held_until = asked_at + (job.lasts > 0ms ? job.lasts : lease_for);
    job.number = book.leased(job.id, job.contents, {asked, came, job.held_until, job.attempt});
  }
  return taken;
}

void end_all(ledger& book, client& server, const std::vector<taken_job>& taken) {
  for (const auto& job : taken) book.acking(job.id, job.number);
  const auto answers = server.ack_many(taken);
  for (std::size_t i = 0; i < answers.size() && i < taken.size(); ++i) {
    book.acked(taken[i].id, answers[i], taken[i].number);
  }
}

class pusher {
 public:
  pusher(ledger& book, client& server, const load& plan, std::uint64_t seed)
      : book_(book), server_(server), plan_(plan), chance_(seed) {}

  void run(const std::stop_token& stop) {
    std::uint64_t made = 0;
    while (!stop.stop_requested() && !server_.gone() && made < plan_.pushes_max) {
      made += push_some();
    }
  }

 private:
  jobs::job_spec make(token id) {
    jobs::job_spec spec;
    spec.queue = chance_.below(3) == 0 ? "beta" : "alpha";
    spec.kind = "crash";
    // Some do not fit a page of the file.
    const auto pad = chance_.below(50) == 0 ? 9000U : chance_.below(200);
    spec.args.data = "{\"token\":" + std::to_string(id) + ",\"pad\":\"" +
                     std::string(pad, static_cast<char>('a' + id % 26)) + "\"}";
    spec.priority = static_cast<std::int64_t>(chance_.below(3));
    spec.retry.attempts_max = 1000;
    spec.retry.first = 2ms;  // after an expired lease
    spec.retry.factor = 1;
    if (chance_.below(5) == 0) spec.run_at = jobs::real_time().now() + milliseconds(later());
    if (plan_.keys > 0 && chance_.below(10) == 0) spec.unique = make_unique();
    return spec;
  }
  jobs::unique_key make_unique() {
    const auto number = std::to_string(chance_.below(plan_.keys));
    switch (chance_.below(4)) {
      case 0:
        return {"started-" + number, jobs::unique_until::started, {}};
      case 1:
        if (plan_.elapsing_keys) return {"elapsed-" + number, jobs::unique_until::elapsed, 300ms};
        [[fallthrough]];
      default:
        return {"key-" + number, jobs::unique_until::done, {}};
    }
  }
  static push_terms terms_of(const jobs::job_spec& spec) {
    push_terms terms{.until = spec.unique.until, .not_before = spec.run_at};
    if (!spec.unique.key.empty()) terms.key = spec.queue + "/" + spec.unique.key;
    terms.key_until = jobs::real_time().now() + spec.unique.lasts;
    return terms;
  }
  std::int64_t later() { return 1 + static_cast<std::int64_t>(chance_.below(200)); }

  std::uint64_t push_some() {
    const auto count = chance_.below(3) == 0 ? 2 + chance_.below(20) : 1;
    const auto mode = chance_.below(2) == 0 ? jobs::bulk::each : jobs::bulk::all_or_nothing;
    std::vector<jobs::job_spec> specs;
    std::vector<token> tokens;
    for (std::uint32_t i = 0; i < count; ++i) {
      const auto id = book_.new_token();
      auto spec = make(id);
      // A key in use rejects the whole group, and the reply does not show which key it was.
      if (count > 1 && mode == jobs::bulk::all_or_nothing) spec.unique = {};
      book_.pushing(id, contents_of(spec), terms_of(spec));
      tokens.push_back(id);
      specs.push_back(std::move(spec));
    }
    const auto answers = server_.push(specs, mode);
    const auto now = jobs::real_time().now();
    bool refused = false;
    for (std::size_t i = 0; i < answers.size() && i < tokens.size(); ++i) {
      if (answers[i].duplicate) {
        book_.was_duplicate(tokens[i]);
      } else {
        book_.pushed(tokens[i], answers[i].outcome, now);
        if (answers[i].outcome == answer::yes)
          accepted_[chance_.below(remembered)] = {tokens[i], answers[i].id};
        refused = refused || answers[i].outcome != answer::yes;
      }
    }
    if (refused && !server_.gone()) try_again_later();
    if (chance_.below(100) < plan_.called_off_percent) cancel_or_delete();
    if (chance_.below(100) < plan_.batch_percent) push_batch();
    return count;
  }

  // Pushes a few jobs, and two callbacks that wait until all of them have ended.
  void push_batch() {
    std::vector<jobs::job_spec> specs;
    std::vector<token> tokens;
    for (std::uint32_t i = 1 + chance_.below(4); i > 0; --i) {
      tokens.push_back(book_.new_token());
      specs.push_back(make(tokens.back()));
      specs.back().unique = {};
      book_.pushing(tokens.back(), contents_of(specs.back()), terms_of(specs.back()));
    }
    std::array<token, 2> callbacks{};
    std::array<jobs::job_spec, 2> called;
    for (std::size_t i = 0; i < callbacks.size(); ++i) {
      callbacks[i] = book_.new_token();
      called[i] = make(callbacks[i]);
      called[i].unique = {};
      called[i].run_at = {};
      book_.pushing(callbacks[i], contents_of(called[i]), {.after = tokens});
    }
    const auto answers = server_.push_batch(specs, called[0], called[1]);
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      book_.pushed(tokens[i], answers.jobs[i].outcome);
    }
    for (const token id : callbacks) book_.pushed(id, answers.callbacks);
  }

  // Cancels or deletes a job of this pusher, in any state.
  void cancel_or_delete() {
    auto& [job, id] = accepted_[chance_.below(remembered)];
    if (id == 0) return;
    const bool deletes = chance_.below(2) == 0;
    book_.calling_off(job);
    book_.called_off(job, deletes ? server_.remove(id) : server_.cancel(id), deletes);
    id = 0;
  }

  // Waits as a rejected client should: an immediate retry would be rejected as well.
  static void try_again_later() {
    event never_set;
    (void)never_set.wait(1ms);
  }

  ledger& book_;
  client& server_;
  const load& plan_;
  random chance_;
  std::array<std::pair<token, jobs::job_id>, remembered> accepted_{};  // some of the accepted jobs
};

class worker {
 public:
  worker(ledger& book, client& server, const load& plan, std::uint64_t seed)
      : book_(book), server_(server), plan_(plan), chance_(seed) {}

  void run(const std::stop_token& stop) {
    while (!stop.stop_requested() && !server_.gone()) {
      const bool is_short = chance_.below(10) == 0;
      const auto taken = take(book_, server_, 1 + chance_.below(10), plan_.lease_wait,
                              is_short ? plan_.short_lease : long_lease, late_ones::are_left);
      if (!taken) continue;
      if (taken->size() > 1 && chance_.below(3) == 0) {
        ack_all(*taken);
        continue;
      }
      // A short lease is left to expire more often.
      for (const auto& job : *taken) {
        const bool ends_soon = job.lasts > 0ms ? job.lasts <= 1s : is_short;
        finish(job, ends_soon ? 10 * plan_.held_percent : plan_.held_percent);
      }
    }
  }

 private:
  void ack_all(const std::vector<taken_job>& taken) { end_all(book_, server_, taken); }

  void finish(const taken_job& job, std::uint32_t held_percent) {
    if (chance_.below(20) == 0) extend(job);
    if (chance_.below(100) < held_percent) return;  // the lease expires or ends with the server
    const auto roll = chance_.below(100);
    if (roll < 82) {
      const auto result = roll < plan_.result_percent
                              ? "{\"result\":" + std::to_string(chance_.next()) + "}"
                              : std::string();
      book_.acking(job.id, job.number);
      book_.acked(job.id, server_.ack(job, result), job.number, result);
    } else if (roll < 100 - plan_.buried_percent) {
      const milliseconds pause(1 + chance_.below(50));
      book_.failing(job.id, job.number, jobs::real_time().now() + pause);
      book_.failed(job.id, server_.fail(job, pause), job.number);
    } else {
      book_.burying(job.id, job.number);
      book_.buried(job.id, server_.bury(job), job.number);
    }
  }

  void extend(const taken_job& job) {
    const auto until =
        jobs::real_time().now() + (job.extends_by > 0ms ? job.extends_by : plan_.short_lease);
    book_.extending(job.id, until, job.number);
    book_.extended(job.id, server_.extend(job, plan_.short_lease), until, job.number);
  }

  ledger& book_;
  client& server_;
  const load& plan_;
  random chance_;
};

// Retries some dead jobs, while no other client works with them.
void retry_some(ledger& book, client& server, std::size_t count) {
  const auto dead = server.list(jobs::job_state::dead);
  if (!dead) return;
  for (std::size_t i = 0; i < count && i < dead->size(); ++i) {
    const auto& job = (*dead)[i];
    book.retried(job.id, server.retry(job.lease.job));
  }
}

}  // namespace

int keep_busy(ledger& book, const connect& open, const load& plan, std::stop_token stop) {
  random seeds(plan.seed);
  if (const auto first = open()) retry_some(book, *first, plan.retries);
  atomic<int> deserted = 0;
  std::vector<seam::thread> threads;  // joined at the end
  for (int i = 0; i < plan.pushers; ++i) {
    threads.emplace_back([&, seed = seeds.next()] {
      const auto server = open();
      if (server) pusher(book, *server, plan, seed).run(stop);
      if (!server || server->gone()) ++deserted;
    });
  }
  for (int i = 0; i < plan.workers; ++i) {
    threads.emplace_back([&, seed = seeds.next()] {
      const auto server = open();
      if (server) worker(book, *server, plan, seed).run(stop);
      if (!server || server->gone()) ++deserted;
    });
  }
  threads.clear();
  return deserted.load();
}

bool drain(ledger& book, client& server, std::chrono::seconds patience) {
  const auto give_up = seam::now() + patience;
  while (seam::now() < give_up) {
    const auto taken = take(book, server, 500, 100ms, 60s, late_ones::are_taken);
    if (!taken) return false;
    if (!taken->empty()) end_all(book, server, *taken);
    if (!taken->empty()) continue;
    const auto left = server.unfinished();
    if (!left) return false;
    if (*left > 0) continue;
    const auto dead = server.list(jobs::job_state::dead);
    const auto done = server.list(jobs::job_state::done);
    if (!dead || !done) return false;
    for (const auto& job : *dead) book.found_dead(job.id, job.contents);
    for (const auto& job : *done) book.found_done(job.id, job.contents, job.result);
    return true;
  }
  return false;
}

}  // namespace sluice::crash
