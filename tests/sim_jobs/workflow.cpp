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

std::uint64_t number_in(const jobs::job& job) {
  const std::string& text = job.spec.args.data;
  std::uint64_t n = 0;
  std::from_chars(text.data(), text.data() + text.size(), n);
  return n;
}

// The state of a job, as its pusher and its workers know it.
struct known {
  answer push = answer::none;
  std::set<job_id> ids;  // the ids under which it was leased: one
  bool is_out = false;   // leased by a worker of this life
  bool may_have_ended = false;
  bool has_ended = false;

  // Certainly stored, and not ended.
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
  void object(const jobs::job& job, const char* finding) {
    out_.add(job.spec.queue + " " + job.spec.kind + " " + job.spec.args.data + ": " + finding);
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
      known& entry = line[n];
      auto spec = spec_of("lines", "k" + std::to_string(k), n);
      spec.key = spec.kind;
      entry.push = crash::answer_of(server.push(std::move(spec)).get()).outcome;
      log_.add("push k%d %d: %d", static_cast<int>(k), static_cast<int>(n),
               static_cast<int>(entry.push));
      if (entry.push == answer::yes) ++out_.all.keyed;
      if (entry.push != answer::yes) pass(1ms);
    }
  }

  // `second` runs after `first`; `third` is independent, and fails in every third batch.
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
      known_batch& batch = batches_[n];
      batch.fails = n % 3 == 0;
      jobs::batch_spec spec;
      for (const char* const kind : {"first", "second", "third"}) {
        spec.jobs.push_back(spec_of("steps", kind, n));
        spec.jobs.back().step = kind;
      }
      spec.jobs[1].after = {{.step = "first"}};
      spec.on_success = spec_of("callbacks", "success", n);
      spec.on_end = spec_of("callbacks", "end", n);
      spec.on_failure = spec_of("callbacks", "failure", n);
      const auto reply = server.push_batch(std::move(spec)).get();
      batch.push = reply ? answer::yes : crash::answer_for(reply.error().code);
      log_.add("push batch %d: %d", static_cast<int>(n), static_cast<int>(batch.push));
      if (batch.push == answer::yes) ++out_.all.batches;
      pass(batch.push == answer::yes ? 2ms : 1ms);
    }
  }

  // --- working ---

  void work(jobs::engine& server, const lives::is_gone& gone, std::uint64_t seed) {
    random chance(seed);
    while (!gone()) (void)work_once(server, chance);
  }

  bool work_once(jobs::engine& server, random& chance) {
    jobs::lease_request request;
    request.queues = {"lines", "steps", "callbacks"};
    request.max = 1 + chance.below(4);
    request.lease_for = 10s;  // does not expire while a worker runs
    const auto leased = server.lease(std::move(request), deadline::after(3ms)).get();
    if (!leased) return false;
    for (const auto& l : *leased) begin(*l.job);
    for (const auto& l : *leased) finish(server, l, chance);
    return true;
  }

  known* find(const jobs::job& job) {
    const std::uint64_t n = number_in(job);
    if (job.spec.queue == "lines") {
      auto& line = lines_[static_cast<std::size_t>(job.spec.kind.back() - '0') % keys];
      const auto found = line.find(n);
      return found == line.end() ? nullptr : &found->second;
    }
    const auto found = batches_.find(n);
    return found == batches_.end() ? nullptr : &found->second.jobs[job.spec.kind];
  }

  void begin(const jobs::job& job) {
    log_.add("lease %s %s", job.spec.kind.c_str(), job.spec.args.data.c_str());
    ++out_.all.leases;
    known* const entry = find(job);
    if (entry == nullptr) return object(job, "was leased without a push");
    if (!entry->ids.empty()) ++out_.all.again;
    if (entry->ids.empty() && job.spec.queue == "callbacks") ++out_.all.callbacks;
    entry->ids.insert(job.id);
    if (entry->ids.size() > 1) object(job, "is two jobs");
    if (entry->has_ended) object(job, "was leased after its end");
    if (entry->is_out) object(job, "was leased while a worker had it");
    entry->is_out = true;
    entry->may_have_ended = false;
    if (job.spec.queue == "lines") return check_line(job);
    check_batch(job, batches_[number_in(job)]);
  }

  // Checks that the jobs of the key that were certainly pushed before have ended, or may have.
  void check_line(const jobs::job& job) {
    const std::uint64_t n = number_in(job);
    auto& line = lines_[static_cast<std::size_t>(job.spec.kind.back() - '0') % keys];
    if (line[n].push == answer::no) object(job, "was leased although its push was rejected");
    for (const auto& [m, before] : line) {
      if (m >= n) break;
      if (before.is_out) object(job, "runs concurrently with a job of its key");
      if (before.is_expected()) {
        return object(job, "runs before an earlier job of its key");
      }
    }
  }

  void check_batch(const jobs::job& job, known_batch& all) {
    if (all.push == answer::no) object(job, "was leased although its batch was rejected");
    const auto ended = [&](const char* kind) {
      return all.jobs[kind].may_have_ended || all.jobs[kind].has_ended;
    };
    const bool all_ended = ended("first") && ended("second") && ended("third");
    if (job.spec.kind == "second" && !ended("first"))
      object(job, "runs before its condition is met");
    if (job.spec.kind == "end" && !all_ended) object(job, "runs before the end of its batch");
    if (job.spec.kind == "success" && (all.fails || !all_ended)) {
      object(job, "runs without success");
    }
    if (job.spec.kind == "failure" && (!all.fails || !ended("third"))) {
      object(job, "runs without a failure");
    }
  }

  void finish(jobs::engine& server, const jobs::leased_job& l, random& chance) {
    known* const entry = find(*l.job);
    if (entry == nullptr) return;
    const bool is_hopeless = l.job->spec.kind == "third" && batches_[number_in(*l.job)].fails;
    const bool fails_once = !is_hopeless && chance.below(8) == 0;
    const auto is_done = [&](answer outcome) {
      log_.add("end of %s %s: %d", l.job->spec.kind.c_str(), l.job->spec.args.data.c_str(),
               static_cast<int>(outcome));
      return outcome == answer::yes;
    };
    if (fails_once) {
      // From here on another worker may lease it, after its pause.
      entry->is_out = false;
      auto why = crash::requested_failure();
      const auto reply = server.fail(l.ref(), std::move(why)).get();
      (void)is_done(reply ? answer::yes : crash::answer_for(reply.error().code));
      return;
    }
    entry->may_have_ended = true;
    entry->is_out = false;
    bool was_done = false;
    if (is_hopeless) {
      auto why = crash::requested_failure();
      why.for_good = true;
      const auto reply = server.fail(l.ref(), std::move(why)).get();
      was_done = is_done(reply ? answer::yes : crash::answer_for(reply.error().code));
    } else {
      const auto reply = server.ack(l.ref()).get();
      was_done = is_done(reply ? answer::yes : crash::answer_for(reply.error().code));
    }
    if (!was_done) return;
    entry->has_ended = true;
    if (l.job->spec.queue == "lines") ++out_.all.keyed_done;
  }

  // --- the end ---

  void drain() {
    const auto server = lives_.last();
    if (server == nullptr) return out_.add("the last server did not open");
    random chance(1);
    const auto give_up = seam::now() + 5min;
    while (seam::now() < give_up) {
      if (work_once(*server, chance)) continue;
      std::uint64_t left = 0;
      for (const auto& q : server->queues()) {
        // After a failed batch, the jobs that wait for its success stay, and vice versa.
        left += q.counts.unfinished() - (q.name == "callbacks" ? q.counts.held : 0);
      }
      if (left == 0) return;
      pass(100ms);
    }
    out_.add("the server could not be drained");
  }

  void judge() {
    for (std::uint64_t k = 0; k < keys; ++k) {
      for (const auto& [n, job] : lines_[k]) {
        if (job.is_expected()) {
          out_.add("k" + std::to_string(k) + " " + std::to_string(n) + " is lost");
        }
      }
    }
    for (auto& [n, batch] : batches_) {
      if (batch.push != answer::yes) continue;
      for (const char* const kind : {"first", "second", "third", "success", "end", "failure"}) {
        const std::string_view never = batch.fails ? "success" : "failure";
        const bool runs = kind != never;
        if (batch.jobs[kind].ids.empty() == runs) {
          out_.add("batch " + std::to_string(n) + ": " + kind + (runs ? " never ran" : " ran"));
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
  auto [made, findings] =
      play<workflow_player, workflow>(plan, {.name = "workflow", .steps_max = 20'000'000});
  made.broken += findings;
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
