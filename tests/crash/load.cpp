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

constexpr std::uint32_t remembered = 16;  // jobs of a pusher, to call off
constexpr milliseconds long_lease = 2s;   // an orderly end saves leases, and a drain waits for them

// Takes jobs, and tells the ledger so. One whose own time was over before it was here may be with
// somebody else by now: whoever is not alone leaves it to run out, as if it had never come.
enum class late_ones : std::uint8_t { are_taken, are_left };
std::optional<std::vector<taken_job>> take(ledger& book, client& from, std::size_t max,
                                           milliseconds wait, milliseconds lease_for,
                                           late_ones late) {
  const auto asked = book.asking();
  const auto asked_at = jobs::real_time().now();
  auto taken = from.lease(max, wait, lease_for);
  if (!taken) return taken;
  const auto came = jobs::real_time().now();
  if (late == late_ones::are_left) {
    std::erase_if(*taken, [&](const taken_job& job) {
      return job.lasts > 0ms && came >= asked_at + job.lasts;
    });
  }
  for (auto& job : *taken) {
    job.held_until = asked_at + (job.lasts > 0ms ? job.lasts : lease_for);
    job.number = book.leased(job.it, job.contents, {asked, came, job.held_until, job.attempt});
  }
  return taken;
}

void end_all(ledger& book, client& from, const std::vector<taken_job>& taken) {
  for (const auto& job : taken) book.acking(job.it, job.number);
  const auto answers = from.ack_many(taken);
  for (std::size_t i = 0; i < answers.size() && i < taken.size(); ++i) {
    book.acked(taken[i].it, answers[i], taken[i].number);
  }
}

class pusher {
 public:
  pusher(ledger& book, client& to, const load& how, std::uint64_t seed)
      : book_(book), to_(to), how_(how), chance_(seed) {}

  void run(const std::stop_token& stop) {
    std::uint64_t made = 0;
    while (!stop.stop_requested() && !to_.gone() && made < how_.pushes_max) {
      made += push_some();
    }
  }

 private:
  jobs::job_spec make(token it) {
    jobs::job_spec spec;
    spec.queue = chance_.below(3) == 0 ? "beta" : "alpha";
    spec.kind = "crash";
    // Every so often one that does not fit a page of the file.
    const auto pad = chance_.below(50) == 0 ? 9000U : chance_.below(200);
    spec.args.data = "{\"token\":" + std::to_string(it) + ",\"pad\":\"" +
                     std::string(pad, static_cast<char>('a' + it % 26)) + "\"}";
    spec.priority = static_cast<std::int64_t>(chance_.below(3));
    spec.retry.attempts_max = 1000;
    spec.retry.first = 2ms;  // after a lease that ran out
    spec.retry.factor = 1;
    if (chance_.below(5) == 0) spec.run_at = jobs::real_time().now() + milliseconds(later());
    if (how_.keys > 0 && chance_.below(10) == 0) spec.unique = make_unique();
    return spec;
  }
  jobs::unique_key make_unique() {
    const auto number = std::to_string(chance_.below(how_.keys));
    switch (chance_.below(4)) {
      case 0:
        return {"started-" + number, jobs::unique_until::started, {}};
      case 1:
        if (how_.elapsing_keys) return {"elapsed-" + number, jobs::unique_until::elapsed, 300ms};
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
      const auto it = book_.new_token();
      auto spec = make(it);
      // One that is taken refuses its whole group, and which of them it was is not told apart.
      if (count > 1 && mode == jobs::bulk::all_or_nothing) spec.unique = {};
      book_.pushing(it, contents_of(spec), terms_of(spec));
      tokens.push_back(it);
      specs.push_back(std::move(spec));
    }
    const auto answers = to_.push(specs, mode);
    const auto now = jobs::real_time().now();
    bool refused = false;
    for (std::size_t i = 0; i < answers.size() && i < tokens.size(); ++i) {
      if (answers[i].duplicate) {
        book_.was_duplicate(tokens[i]);
      } else {
        book_.pushed(tokens[i], answers[i].how, now);
        if (answers[i].how == answer::yes)
          mine_[chance_.below(remembered)] = {tokens[i], answers[i].id};
        refused = refused || answers[i].how != answer::yes;
      }
    }
    if (refused && !to_.gone()) try_again_later();
    if (chance_.below(100) < how_.called_off_percent) call_one_off();
    if (chance_.below(100) < how_.batch_percent) push_batch();
    return count;
  }

  // A few jobs, and two that wait until all of them have ended.
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
    const auto answers = to_.push_batch(specs, called[0], called[1]);
    for (std::size_t i = 0; i < tokens.size(); ++i) book_.pushed(tokens[i], answers.jobs[i].how);
    for (const token it : callbacks) book_.pushed(it, answers.callbacks);
  }

  // Some job of this pusher, wherever it is by now.
  void call_one_off() {
    auto& [it, id] = mine_[chance_.below(remembered)];
    if (id == 0) return;
    const bool deletes = chance_.below(2) == 0;
    book_.calling_off(it);
    book_.called_off(it, deletes ? to_.remove(id) : to_.cancel(id), deletes);
    id = 0;
  }

  // As a client does that was told to: at once again would be a storm of refusals.
  static void try_again_later() {
    event nobody_sets;
    (void)nobody_sets.wait_within({deadline::after(1ms), {}});
  }

  ledger& book_;
  client& to_;
  const load& how_;
  random chance_;
  std::array<std::pair<token, jobs::job_id>, remembered> mine_{};  // some of what was accepted
};

class worker {
 public:
  worker(ledger& book, client& from, const load& how, std::uint64_t seed)
      : book_(book), from_(from), how_(how), chance_(seed) {}

  void run(const std::stop_token& stop) {
    while (!stop.stop_requested() && !from_.gone()) {
      const bool is_short = chance_.below(10) == 0;
      const auto taken = take(book_, from_, 1 + chance_.below(10), how_.lease_wait,
                              is_short ? how_.short_lease : long_lease, late_ones::are_left);
      if (!taken) continue;
      if (taken->size() > 1 && chance_.below(3) == 0) {
        ack_all(*taken);
        continue;
      }
      // A short one is let run out more often.
      for (const auto& job : *taken) {
        const bool ends_soon = job.lasts > 0ms ? job.lasts <= 1s : is_short;
        finish(job, ends_soon ? 10 * how_.held_percent : how_.held_percent);
      }
    }
  }

 private:
  void ack_all(const std::vector<taken_job>& taken) { end_all(book_, from_, taken); }

  void finish(const taken_job& job, std::uint32_t held_percent) {
    if (chance_.below(20) == 0) extend(job);
    if (chance_.below(100) < held_percent) return;  // its own end or the server's ends this lease
    const auto what = chance_.below(100);
    if (what < 82) {
      const auto result = what < how_.result_percent
                              ? "{\"result\":" + std::to_string(chance_.next()) + "}"
                              : std::string();
      book_.acking(job.it, job.number);
      book_.acked(job.it, from_.ack(job, result), job.number, result);
    } else if (what < 100 - how_.buried_percent) {
      const milliseconds pause(1 + chance_.below(50));
      book_.failing(job.it, job.number, jobs::real_time().now() + pause);
      book_.failed(job.it, from_.fail(job, pause), job.number);
    } else {
      book_.burying(job.it, job.number);
      book_.buried(job.it, from_.bury(job), job.number);
    }
  }

  void extend(const taken_job& job) {
    const auto until =
        jobs::real_time().now() + (job.extends_by > 0ms ? job.extends_by : how_.short_lease);
    book_.extending(job.it, until, job.number);
    book_.extended(job.it, from_.extend(job, how_.short_lease), until, job.number);
  }

  ledger& book_;
  client& from_;
  const load& how_;
  random chance_;
};

// Some of the dead, while nobody else has anything to do with them.
void retry_some(ledger& book, client& at, std::size_t count) {
  const auto dead = at.list(jobs::job_state::dead);
  if (!dead) return;
  for (std::size_t i = 0; i < count && i < dead->size(); ++i) {
    const auto& job = (*dead)[i];
    book.retried(job.it, at.retry(job.lease.job));
  }
}

}  // namespace

int keep_busy(ledger& book, const connect& to, const load& how, std::stop_token stop) {
  random seeds(how.seed);
  if (const auto first = to()) retry_some(book, *first, how.retries);
  atomic<int> deserted = 0;
  std::vector<seam::thread> threads;  // joined at the end
  for (int i = 0; i < how.pushers; ++i) {
    threads.emplace_back([&, seed = seeds.next()] {
      const auto mine = to();
      if (mine) pusher(book, *mine, how, seed).run(stop);
      if (!mine || mine->gone()) ++deserted;
    });
  }
  for (int i = 0; i < how.workers; ++i) {
    threads.emplace_back([&, seed = seeds.next()] {
      const auto mine = to();
      if (mine) worker(book, *mine, how, seed).run(stop);
      if (!mine || mine->gone()) ++deserted;
    });
  }
  threads.clear();
  return deserted.load();
}

bool drain(ledger& book, client& from, std::chrono::seconds patience) {
  const auto give_up = seam::now() + patience;
  while (seam::now() < give_up) {
    const auto taken = take(book, from, 500, 100ms, 60s, late_ones::are_taken);
    if (!taken) return false;
    if (!taken->empty()) end_all(book, from, *taken);
    if (!taken->empty()) continue;
    const auto left = from.unfinished();
    if (!left) return false;
    if (*left > 0) continue;
    const auto dead = from.list(jobs::job_state::dead);
    const auto done = from.list(jobs::job_state::done);
    if (!dead || !done) return false;
    for (const auto& job : *dead) book.found_dead(job.it, job.contents);
    for (const auto& job : *done) book.found_done(job.it, job.contents, job.result);
    return true;
  }
  return false;
}

}  // namespace sluice::crash
