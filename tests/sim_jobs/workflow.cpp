#include "tests/sim_jobs/workflow.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "jobs/engine/engine.hpp"
#include "sluice/base/deadline.hpp"
#include "sluice/base/seam.hpp"
#include "tests/crash/client.hpp"
#include "tests/sim_jobs/play.hpp"

namespace sluice::sim_jobs {
namespace {

using namespace std::chrono_literals;
using crash::answer;
using jobs::job_id;

constexpr std::uint64_t keys = 3;
constexpr std::uint64_t ahead_max = 12;  // jobs of a key, and batches, that have not ended
constexpr jobs::retry_policy quick{
    .attempts_max = 1000, .first = milliseconds(3), .factor = 1, .jitter = 0};

std::uint64_t number_in(const jobs::job& it) {
  const std::string& text = it.spec.args.data;
  std::uint64_t n = 0;
  std::from_chars(text.data(), text.data() + text.size(), n);
  return n;
}

// How far a job is, as its pusher and its workers know.
struct known {
  answer push = answer::none;
  std::set<job_id> ids;  // under which it was given out: one
  bool is_out = false;   // a worker of this life has it
  bool may_have_ended = false;
  bool has_ended = false;

  // Surely there, and not at its end.
  bool is_expected() const { return push == answer::yes && !may_have_ended && !has_ended; }
};

struct known_batch {
  answer push = answer::none;
  bool fails = false;
  std::map<std::string, known> jobs;  // its steps and callbacks, by kind
};

class workflow_player {
 public:
  workflow_player(const workflow_plan& plan, event_log& log, remains<workflow>& out)
      : lives_(plan.seed, log), log_(log), out_(out) {
    lives_.disk().misbehave(plan.crimes);
  }

  void play() {
    const auto count = 1 + lives_.chance().below(4);
    for (std::uint32_t i = 0; i < count; ++i) {
      lives_.live([&](jobs::engine& server, const lives::is_gone& gone) {
        std::vector<seam::thread> clients;  // joined at the end
        clients.emplace_back([&] { push_lines(server, gone); });
        clients.emplace_back([&] { push_batches(server, gone); });
        for (int w = 0; w < 2; ++w) {
          clients.emplace_back([&, seed = lives_.chance().next()] { work(server, gone, seed); });
        }
      });
      each_job([](known& job) { job.is_out = false; });
    }
    drain();
    judge();
    out_.all.lives = lives_.so_far();
    out_.all.disk = lives_.disk().counts();
  }

 private:
  template <class See>
  void each_job(See&& see) {
    for (auto& line : lines_) {
      for (auto& [n, job] : line) see(job);
    }
    for (auto& [n, batch] : batches_) {
      for (auto& [kind, job] : batch.jobs) see(job);
    }
  }
  void object(const jobs::job& it, const char* what) {
    out_.say(it.spec.queue + " " + it.spec.kind + " " + it.spec.args.data + ": " + what);
  }

  // --- pushing ---

  static jobs::job_spec spec_of(std::string queue, std::string kind, std::uint64_t n) {
    jobs::job_spec spec;
    spec.queue = std::move(queue);
    spec.kind = std::move(kind);
    spec.args.data = std::to_string(n);
    spec.retry = quick;
    return spec;
  }

  void push_lines(jobs::engine& server, const lives::is_gone& gone) {
    for (std::uint64_t k = 0; !gone(); k = (k + 1) % keys) {
      auto& line = lines_[k];
      const auto is_open = [](const auto& one) { return one.second.is_expected(); };
      if (static_cast<std::uint64_t>(std::ranges::count_if(line, is_open)) > ahead_max) {
        pass(1ms);
        continue;
      }
      const std::uint64_t n = line.size() + 1;
      known& mine = line[n];
      auto spec = spec_of("lines", "k" + std::to_string(k), n);
      spec.key = spec.kind;
      mine.push = crash::answer_of(server.push(std::move(spec)).get()).how;
      log_.add("push k%d %d: %d", static_cast<int>(k), static_cast<int>(n),
               static_cast<int>(mine.push));
      if (mine.push == answer::yes) ++out_.all.keyed;
      if (mine.push != answer::yes) pass(1ms);
    }
  }

  // first, then second; third for itself, and in every third batch it is given up.
  void push_batches(jobs::engine& server, const lives::is_gone& gone) {
    while (!gone()) {
      const std::uint64_t n = batches_.size() + 1;
      const auto is_open = [](auto& one) {
        return one.second.push == answer::yes && !one.second.jobs["end"].has_ended;
      };
      if (static_cast<std::uint64_t>(std::ranges::count_if(batches_, is_open)) > ahead_max) {
        pass(1ms);
        continue;
      }
      known_batch& mine = batches_[n];
      mine.fails = n % 3 == 0;
      jobs::batch_spec spec;
      for (const char* const kind : {"first", "second", "third"}) {
        spec.jobs.push_back(spec_of("steps", kind, n));
        spec.jobs.back().step = kind;
      }
      spec.jobs[1].after = {{.step = "first"}};
      spec.on_success = spec_of("callbacks", "success", n);
      spec.on_end = spec_of("callbacks", "end", n);
      spec.on_failure = spec_of("callbacks", "failure", n);
      const auto said = server.push_batch(std::move(spec)).get();
      mine.push = said ? answer::yes : crash::answer_for(said.error().code);
      log_.add("push batch %d: %d", static_cast<int>(n), static_cast<int>(mine.push));
      if (mine.push == answer::yes) ++out_.all.batches;
      pass(mine.push == answer::yes ? 2ms : 1ms);
    }
  }

  // --- working ---

  void work(jobs::engine& server, const lives::is_gone& gone, std::uint64_t seed) {
    random chance(seed);
    while (!gone()) (void)work_once(server, chance);
  }

  bool work_once(jobs::engine& server, random& chance) {
    jobs::lease_request what;
    what.queues = {"lines", "steps", "callbacks"};
    what.max = 1 + chance.below(4);
    what.lease_for = 10s;  // it does not run out while somebody works
    const auto leased = server.lease(std::move(what), deadline::after(3ms)).get();
    if (!leased) return false;
    for (const auto& l : *leased) begin(*l.it);
    for (const auto& l : *leased) finish(server, l, chance);
    return true;
  }

  known* find(const jobs::job& it) {
    const std::uint64_t n = number_in(it);
    if (it.spec.queue == "lines") {
      auto& line = lines_[static_cast<std::size_t>(it.spec.kind.back() - '0') % keys];
      const auto found = line.find(n);
      return found == line.end() ? nullptr : &found->second;
    }
    const auto found = batches_.find(n);
    return found == batches_.end() ? nullptr : &found->second.jobs[it.spec.kind];
  }

  void begin(const jobs::job& it) {
    log_.add("lease %s %s", it.spec.kind.c_str(), it.spec.args.data.c_str());
    ++out_.all.leases;
    known* const job = find(it);
    if (job == nullptr) return object(it, "came, and nobody pushed it");
    if (!job->ids.empty()) ++out_.all.again;
    if (job->ids.empty() && it.spec.queue == "callbacks") ++out_.all.callbacks;
    job->ids.insert(it.id);
    if (job->ids.size() > 1) object(it, "is two jobs");
    if (job->has_ended) object(it, "was given out after its end");
    if (job->is_out) object(it, "was given out while a worker had it");
    job->is_out = true;
    job->may_have_ended = false;
    if (it.spec.queue == "lines") return check_line(it);
    check_batch(it, batches_[number_in(it)]);
  }

  // What was surely pushed before it has ended, or may have.
  void check_line(const jobs::job& it) {
    const std::uint64_t n = number_in(it);
    auto& line = lines_[static_cast<std::size_t>(it.spec.kind.back() - '0') % keys];
    if (line[n].push == answer::no) object(it, "came, and its push had been refused");
    for (const auto& [m, before] : line) {
      if (m >= n) break;
      if (before.is_out) object(it, "runs beside one of its key");
      if (before.is_expected()) {
        return object(it, "runs before one of its key that was pushed before it");
      }
    }
  }

  void check_batch(const jobs::job& it, known_batch& all) {
    if (all.push == answer::no) object(it, "came, and its batch had been refused");
    const auto over = [&](const char* kind) {
      return all.jobs[kind].may_have_ended || all.jobs[kind].has_ended;
    };
    const bool all_over = over("first") && over("second") && over("third");
    if (it.spec.kind == "second" && !over("first")) object(it, "runs before what it waits for");
    if (it.spec.kind == "end" && !all_over) object(it, "runs before the end of its batch");
    if (it.spec.kind == "success" && (all.fails || !all_over)) object(it, "runs without success");
    if (it.spec.kind == "failure" && (!all.fails || !over("third"))) {
      object(it, "runs without a failure");
    }
  }

  void finish(jobs::engine& server, const jobs::leased_job& l, random& chance) {
    known* const job = find(*l.it);
    if (job == nullptr) return;
    const bool is_hopeless = l.it->spec.kind == "third" && batches_[number_in(*l.it)].fails;
    const bool fails_once = !is_hopeless && chance.below(8) == 0;
    const auto is_done = [&](answer how) {
      log_.add("end of %s %s: %d", l.it->spec.kind.c_str(), l.it->spec.args.data.c_str(),
               static_cast<int>(how));
      return how == answer::yes;
    };
    if (fails_once) {
      // From here on another may be given it, when its pause is over.
      job->is_out = false;
      auto why = crash::failure_asked_for();
      const auto said = server.fail(l.ref(), std::move(why)).get();
      (void)is_done(said ? answer::yes : crash::answer_for(said.error().code));
      return;
    }
    job->may_have_ended = true;
    job->is_out = false;
    bool was_done = false;
    if (is_hopeless) {
      auto why = crash::failure_asked_for();
      why.for_good = true;
      const auto said = server.fail(l.ref(), std::move(why)).get();
      was_done = is_done(said ? answer::yes : crash::answer_for(said.error().code));
    } else {
      const auto said = server.ack(l.ref()).get();
      was_done = is_done(said ? answer::yes : crash::answer_for(said.error().code));
    }
    if (!was_done) return;
    job->has_ended = true;
    if (l.it->spec.queue == "lines") ++out_.all.keyed_done;
  }

  // --- the end ---

  void drain() {
    const auto server = lives_.last();
    if (server == nullptr) return out_.say("the last server did not open");
    random chance(1);
    const auto give_up = seam::now() + 5min;
    while (seam::now() < give_up) {
      if (work_once(*server, chance)) continue;
      std::uint64_t left = 0;
      for (const auto& q : server->queues()) {
        // Of a batch that failed, what waits for its success stays, and the other way round.
        left += q.counts.unfinished() - (q.name == "callbacks" ? q.counts.held : 0);
      }
      if (left == 0) return;
      pass(100ms);
    }
    out_.say("it could not be drained");
  }

  void judge() {
    for (std::uint64_t k = 0; k < keys; ++k) {
      for (const auto& [n, job] : lines_[k]) {
        if (job.is_expected()) {
          out_.say("k" + std::to_string(k) + " " + std::to_string(n) + " is lost");
        }
      }
    }
    for (auto& [n, batch] : batches_) {
      if (batch.push != answer::yes) continue;
      for (const char* const kind : {"first", "second", "third", "success", "end", "failure"}) {
        const std::string_view never = batch.fails ? "success" : "failure";
        const bool runs = kind != never;
        if (batch.jobs[kind].ids.empty() == runs) {
          out_.say("batch " + std::to_string(n) + ": " + kind + (runs ? " never ran" : " ran"));
        }
      }
    }
  }

  lives lives_;
  event_log& log_;
  remains<workflow>& out_;
  std::array<std::map<std::uint64_t, known>, keys> lines_;
  std::map<std::uint64_t, known_batch> batches_;
};

}  // namespace

workflow run(const workflow_plan& plan) {
  auto [made, said] =
      play<workflow_player, workflow>(plan, {.name = "workflow", .steps_max = 20'000'000});
  made.broken += said;
  return std::move(made);
}

void workflow::add(const workflow& more) {
  lives.add(more.lives);
  disk.add(more.disk);
  for (const auto count :
       {&workflow::keyed, &workflow::keyed_done, &workflow::batches, &workflow::callbacks,
        &workflow::leases, &workflow::again, &workflow::steps, &workflow::events}) {
    this->*count += more.*count;
  }
  hash = (hash ^ more.hash) * 0x100000001b3ULL;
  broken += more.broken;
}

std::string workflow::to_string() const {
  const auto line = [](const char* name, std::uint64_t count) {
    return std::string(name) + " " + std::to_string(count);
  };
  return line("jobs with a key", keyed) + " (" + line("done", keyed_done) + "), " +
         line("batches", batches) + ", " + line("callbacks", callbacks) + ", " +
         line("leases", leases) + ", " + line("given out again", again) + "\n" +
         line("lives", lives.lives) + ", " + line("orderly ends", lives.orderly) + ", " +
         line("failed openings", lives.failed_openings) + ", " + line("commits", disk.commits) +
         ", " + line("failed", disk.failed) + ", " +
         line("refused by a full disk", disk.refused_full) + ", " + line("steps", steps) + ", " +
         line("events", events);
}

}  // namespace sluice::sim_jobs
