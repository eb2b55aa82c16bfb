#include "tests/sim_jobs/day.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "jobs/engine/engine.hpp"
#include "sluice/base/deadline.hpp"
#include "sluice/base/seam.hpp"
#include "sluice/sim/explore.hpp"
#include "sluice/sync/event.hpp"
#include "tests/crash/client.hpp"
#include "tests/sim_jobs/play.hpp"

namespace sluice::sim_jobs {
namespace {

using namespace std::chrono_literals;
using crash::answer;
using crash::token;
using jobs::job_id;

constexpr milliseconds kept_for = 10min;
constexpr milliseconds first_pause = 20s;
constexpr double pause_factor = 3;
constexpr milliseconds stuck_lease = 15s;
constexpr milliseconds cron_every = 5min;

// The times at which the server was up.
class uptime {
 public:
  void begins(unix_time at) { lives_.push_back({at, crash::never}); }
  void ends(unix_time at) { lives_.back().until = at; }
  unix_time began() const { return lives_.back().from; }

  // Returns the latest time at which an event that is due at `due` may happen.
  unix_time latest(unix_time due) const {
    for (const life& l : lives_) {
      if (due >= l.until) continue;
      due = std::max(due, l.from);
      if (due + tick < l.until) return due + tick;
      due = l.until;
    }
    return crash::never;
  }

 private:
  struct life {
    unix_time from;
    unix_time until;
  };
  std::vector<life> lives_;
};

// The reason and the time of an expected run.
enum class reason : std::uint8_t { push, later, retry, expiry, restart, unknown };
struct expected {
  std::string kind;
  std::string contents;
  unix_time due{};
  reason why = reason::push;
  bool is_out = false;  // a worker has it
};

unix_time now() {
  return jobs::real_time().now();
}

class day_player {
 public:
  day_player(const day_plan& plan, event_log& log, remains<day>& out)
      : plan_(plan),
        chance_(plan.seed),
        disk_(plan.seed + 1, {.slow = 50}, log),
        log_(log),
        out_(out) {}

  void play() {
    start_ = now();
    // The last life drains the retries, leases and retained jobs.
    end_ = start_ + std::chrono::duration_cast<milliseconds>(plan_.length);
    while (now() < end_) live();
    live_for_the_last_time();
    check_crons();
    out_.all.disk = disk_.counts();
    out_.all.simulated_ms = static_cast<std::uint64_t>((now() - start_).count());
    out_.judge(book_);
  }

 private:
  using engine_ptr = std::unique_ptr<jobs::engine>;

  // --- life cycle ---

  engine_ptr open() {
    jobs::engine_options o;
    o.seed = 1 + chance_.below(1'000'000);
    auto opened = jobs::engine::open(disk_.open(), o);
    sim::check(opened.has_value(), "a readable disk");
    times_.begins(now());
    log_.add("a server begins");
    return *std::move(opened);
  }

  void live() {
    // Once per hour, early enough that the server is up again before the next crash.
    const unix_time crash_at = start_ + crashes_++ * 1h + milliseconds(chance_.below(3'480'000));
    auto server = open();
    if (crons_.empty()) set_up(*server);
    stops_.reset();
    {
      std::vector<seam::thread> clients;
      clients.emplace_back([&, seed = chance_.next()] { produce(*server, seed); });
      for (int i = 0; i < 2; ++i) clients.emplace_back([&] { work(*server); });
      while (now() < crash_at && now() < end_) {
        pass(std::min({milliseconds(5min), crash_at - now(), end_ - now()}));
        check_retention(*server);
      }
      crash(*server);
    }
    server.reset();
    after_crash();
    const milliseconds down(1 + chance_.below(60'000));
    out_.all.down_ms += static_cast<std::uint64_t>(down.count());
    pass(down);
  }

  // Cuts the power at one of the next calls of the disk, or after some seconds without one.
  void crash(jobs::engine& server) {
    disk_.cut_after(1 + chance_.below(4));
    for (int i = 0; i < 100 && !disk_.is_off(); ++i) pass(100ms);
    disk_.cut_after(0);
    log_.add("the server crashes");
    times_.ends(now());
    stops_.set();
    server.stop();
  }

  void after_crash() {
    book_.crashed();
    disk_.power_on();
    for (auto& [id, job] : jobs_) {
      if (!std::exchange(job.is_out, false)) continue;
      if (job.why == reason::expiry && now() > job.due - first_pause) {
        // Its lease had expired, unless the expiry was still being committed.
        if (now() <= job.due - first_pause + tick) job.why = reason::unknown;
        continue;
      }
      job.why = job.why == reason::unknown ? reason::unknown : reason::restart;
      job.due = now();
    }
  }

  // Without new work: all jobs end, and are removed after their retention.
  void live_for_the_last_time() {
    auto server = open();
    for (auto& cron : crons_) {
      sim::check(server->remove_cron(cron.first).get().has_value(), "an entry to be removed");
    }
    stops_.reset();
    {
      std::vector<seam::thread> clients;
      for (int i = 0; i < 2; ++i) clients.emplace_back([&] { work(*server); });
      for (int i = 0; i < 12; ++i) {
        pass(5min);
        check_retention(*server);
      }
      std::uint64_t unfinished = 0;
      std::uint64_t done = 0;
      for (const auto& q : server->queues()) {
        unfinished += q.counts.unfinished();
        done += q.counts.done;
      }
      expect(unfinished == 0, "all jobs to have ended an hour after the last push");
      expect(done == 0, "no ended job after its retention");
      find_the_dead(*server);
      stops_.set();
      server->stop();
    }
  }

  void set_up(jobs::engine& server) {
    sim::check(server.configure("work", {.keep_results = kept_for}).get().has_value(), "a queue");
    for (const auto& [name, line] :
         {std::pair("five", "*/5 * * * *"), std::pair("hour", "@hourly")}) {
      jobs::cron_spec c;
      c.name = name;
      c.schedule = line;
      c.missed = jobs::missed_runs::all;
      c.job.queue = "work";
      c.job.kind = name;
      c.job.keep_for = 0ms;
      sim::check(server.set_cron(c).get().has_value(), "an entry to be set");
      crons_[name];
    }
  }

  // --- producing ---

  void produce(jobs::engine& server, std::uint64_t seed) {
    random chance(seed);
    const auto pause = [&] { return milliseconds(1000 + chance.below(30'000)); };
    while (stops_.wait(pause()) == status::timed_out) push(server, chance);
  }

  void push(jobs::engine& server, random& chance) {
    static constexpr std::array kinds{"plain", "plain",  "later", "later",
                                      "flaky", "doomed", "stuck"};
    const token id = book_.new_token();
    jobs::job_spec spec;
    spec.queue = "work";
    spec.kind = kinds[chance.below(kinds.size())];
    spec.args.data = "{\"token\":" + std::to_string(id) + "}";
    spec.retry = {.attempts_max = spec.kind == "doomed" ? 2U : 5U,
                  .first = first_pause,
                  .factor = pause_factor,
                  .longest = 1h,
                  .jitter = 0};
    if (spec.kind == "later") spec.run_at = now() + milliseconds(1 + chance.below(1'200'000));
    if (spec.kind == "stuck") spec.lease_for = stuck_lease;
    expected& job = jobs_[id];
    job.kind = spec.kind;
    job.contents = crash::contents_of(spec);
    job.why = spec.kind == "later" ? reason::later : reason::push;
    job.due = std::max(spec.run_at, now());
    book_.pushing(id, job.contents, {.not_before = spec.run_at});
    const auto reply = crash::answer_of(server.push(std::move(spec)).get());
    log_.add("push %s %llu: %d", job.kind.c_str(), static_cast<unsigned long long>(id),
             static_cast<int>(reply.outcome));
    book_.pushed(id, reply.outcome, now());
    if (reply.outcome != answer::yes) job.why = reason::unknown;
  }

  // --- working ---

  void work(jobs::engine& server) {
    for (;;) {
      const auto asked = book_.asking();
      const auto leased = server.lease({.queues = {"work"}, .worker = "w"}).get();
      if (!leased) {
        if (stops_.is_set()) return;
        pass(100ms);
        continue;
      }
      for (const auto& l : *leased) {
        const auto cron = crons_.find(l.job->spec.kind);
        if (cron != crons_.end()) {
          cron->second[l.job->id] = l.job->created_at;
          log_.add("%s runs", cron->first.c_str());
          (void)server.ack(l.ref()).get();
        } else {
          handle(server, l, asked);
        }
      }
    }
  }

  void handle(jobs::engine& server, const jobs::leased_job& l, std::uint64_t asked) {
    const token id = crash::token_of(l.job->spec.args.data);
    const auto number =
        book_.leased(id, crash::contents_of(l.job->spec), {asked, now(), l.until - tick});
    const auto found = jobs_.find(id);
    if (found == jobs_.end()) return;  // the ledger has reported it
    expected& job = found->second;
    log_.add("lease %s %llu", job.kind.c_str(), static_cast<unsigned long long>(id));
    check_time(job, id);
    job.is_out = true;
    if (job.kind == "stuck" && l.attempt == 1) {  // this worker never acks it
      job.why = reason::expiry;
      job.due = l.until + first_pause;
      return;
    }
    const bool fails = job.kind == "doomed" || (job.kind == "flaky" && l.attempt <= 2);
    if (fails) return fail(server, l, id, number, job);
    book_.acking(id, number);
    const std::string value = "{\"of\":" + std::to_string(id) + "}";
    const auto reply = server.ack(l.ref(), jobs::payload{value}).get();
    const answer outcome = reply ? answer::yes : crash::answer_for(reply.error().code);
    log_.add("ack %llu: %d", static_cast<unsigned long long>(id), static_cast<int>(outcome));
    book_.acked(id, outcome, number);
    if (outcome == answer::yes) {
      ended_.push_back({l.job->id, now()});
      job.is_out = false;
    }
  }

  void fail(jobs::engine& server, const jobs::leased_job& l, token id, crash::lease_number number,
            expected& job) {
    const bool is_last = l.attempt >= l.job->spec.retry.attempts_max;
    const milliseconds pause = l.attempt == 1 ? first_pause : 3 * first_pause;
    const unix_time before = now();
    if (is_last) {
      book_.burying(id, number);
    } else {
      book_.failing(id, number, before + pause);
    }
    const auto reply = server.fail(l.ref(), crash::requested_failure()).get();
    const answer outcome = reply ? answer::yes : crash::answer_for(reply.error().code);
    log_.add("fail %llu: %d", static_cast<unsigned long long>(id), static_cast<int>(outcome));
    if (is_last) {
      book_.buried(id, outcome, number);
    } else {
      book_.failed(id, outcome, number);
    }
    if (outcome != answer::yes) {
      job.why = reason::unknown;
      return;
    }
    job.is_out = false;
    job.why = reason::retry;
    if (is_last) {
      expect(reply->state == jobs::job_state::dead, "a dead job after its last attempt");
      return;
    }
    job.due = reply->next_at;
    expect(reply->next_at >= before + pause && reply->next_at <= jobs::real_time().after(pause),
           "a pause of 20 s after the first failure and of 60 s after the second");
  }

  // --- judging ---

  void check_time(const expected& job, token id) {
    const unix_time at = now() - plan_.off_by;
    if (job.why == reason::unknown) return;
    if (job.why != reason::restart && at < job.due) {
      ++out_.all.early;
      out_.add("job " + std::to_string(id) + " (" + job.kind + ") ran " +
               std::to_string((job.due - at).count()) + " ms early");
    }
    if (at > times_.latest(job.due)) {
      ++out_.all.late;
      out_.add("job " + std::to_string(id) + " (" + job.kind + ") ran " +
               std::to_string((at - job.due).count()) + " ms after it was due");
    }
    if (job.due >= times_.began() && at >= job.due) {
      const auto late = static_cast<std::uint64_t>((at - job.due).count());
      out_.all.late_ms_max = std::max(out_.all.late_ms_max, late);
    }
    switch (job.why) {
      case reason::later:
        ++out_.all.later;
        break;
      case reason::retry:
        ++out_.all.retries;
        break;
      case reason::expiry:
        ++out_.all.expiries;
        break;
      case reason::restart:
        ++out_.all.restarts;
        break;
      case reason::push:
      case reason::unknown:
        break;
    }
  }

  // An ended job exists during its retention, and not afterwards.
  void check_retention(jobs::engine& server) {
    for (const ended_job& job : std::exchange(ended_, {})) {  // more are added meanwhile
      const unix_time removal = job.at + kept_for;
      const auto found = server.get(job.id).get();
      const unix_time reported = now() - plan_.off_by;
      if (reported > times_.latest(removal)) {
        expect(!found && found.error().code == jobs::error_code::not_found,
               "no ended job after its retention");
        ++out_.all.forgotten;
        continue;
      }
      ended_.push_back(job);
      if (reported + tick >= removal) continue;
      expect(found && found->state == jobs::job_state::done && found->result.has_value(),
             "an ended job during its retention");
      ++out_.all.kept;
    }
  }

  void find_the_dead(jobs::engine& server) {
    jobs::list_request request{.state = jobs::job_state::dead, .limit = 1000};
    for (;;) {
      const auto page = server.list(request).get();
      sim::check(page.has_value(), "a list of dead jobs");
      for (const auto& j : page->jobs) {
        book_.found_dead(crash::token_of(j.spec.args.data), crash::contents_of(j.spec));
      }
      if (!page->cursor) return;
      request.after = *page->cursor;
    }
  }

  // Checks that every entry ran once at each of its times.
  void check_crons() {
    for (const auto& [name, runs] : crons_) {
      const milliseconds every = name == "five" ? cron_every : milliseconds(1h);
      unix_time due = start_ + every;  // the day begins on the hour
      for (const auto& [id, at] : runs) {
        ++out_.all.cron_runs;
        const unix_time ran = at - plan_.off_by;
        if (ran < due || ran > times_.latest(due)) {
          ++out_.all.crons_off_time;
          out_.add("cron " + name + " ran " + std::to_string((ran - due).count()) +
                   " ms after its time");
        }
        due = due + every;
      }
      const auto count = static_cast<std::uint64_t>((end_ - start_) / every);
      out_.all.crons += count;
      // The last run is due at the end of the day.
      expect(runs.size() == count || runs.size() + 1 == count, "a run for each time of an entry");
    }
  }

  void expect(bool holds, const char* expectation) {
    if (!holds) out_.add(std::string("expected ") + expectation);
  }

  struct ended_job {
    job_id id;
    unix_time at;
  };

  const day_plan& plan_;
  random chance_;
  disk disk_;
  event_log& log_;
  remains<day>& out_;
  crash::ledger book_;
  uptime times_;
  event stops_;
  unix_time start_{};
  unix_time end_{};
  std::int64_t crashes_ = 0;
  std::map<token, expected> jobs_;
  std::map<std::string, std::map<job_id, unix_time>> crons_;  // when each run was made
  std::vector<ended_job> ended_;
};

}  // namespace

day run(const day_plan& plan) {
  auto [made, findings] = play<day_player, day>(
      plan, {.name = "day", .memory = sim::memory_order_model::strong, .steps_max = 2'000'000'000});
  made.broken += findings;
  return std::move(made);
}

std::string day::to_string() const {
  const auto line = [](const char* name, std::uint64_t count) {
    return std::string(name) + " " + std::to_string(count);
  };
  return found.to_string() + "\n" + line("simulated minutes", simulated_ms / 60'000) + ", " +
         line("seconds without a server", down_ms / 1000) + ", " + line("cron runs due", crons) +
         ", " + line("cron runs", cron_runs) + ", " + line("at a time given", later) + ", " +
         line("retries", retries) + ", " + line("after a lease ran out", expiries) + ", " +
         line("after a crash", restarts) + ", " + line("kept", kept) + ", " +
         line("forgotten", forgotten) + ", " + line("latest by ms", late_ms_max) + ", " +
         line("commits", disk.commits) + ", " + line("slow", disk.slow) + ", " +
         line("steps", steps) + ", " + line("events", events) + "; " + line("early", early) + ", " +
         line("late", late) + ", " + line("crons off their time", crons_off_time);
}

}  // namespace sluice::sim_jobs
