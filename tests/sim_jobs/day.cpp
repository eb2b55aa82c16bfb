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

// When the server was there.
class uptime {
 public:
  void begins(unix_time at) { lives_.push_back({at, crash::never}); }
  void ends(unix_time at) { lives_.back().until = at; }
  unix_time began() const { return lives_.back().from; }

  // The last moment at which something that is due then may happen.
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

// Why a job is expected, and when.
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
    // The last minutes are for what is left: retries, leases and retention.
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

  // --- lives ---

  engine_ptr open() {
    jobs::engine_options o;
    o.seed = 1 + chance_.below(1'000'000);
    auto opened = jobs::engine::open(disk_.open(), o);
    sim::check(opened.has_value(), "a disk that can be read");
    times_.begins(now());
    log_.add("a server begins");
    return *std::move(opened);
  }

  void live() {
    // Once in every hour, and not so late that the next one comes before it is up again.
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

  // The power goes at one of the next calls of the disk, if there are any soon.
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
    for (auto& [it, job] : jobs_) {
      if (!std::exchange(job.is_out, false)) continue;
      if (job.why == reason::expiry && now() > job.due - first_pause) {
        // Its lease had run out, unless that was only just being committed.
        if (now() <= job.due - first_pause + tick) job.why = reason::unknown;
        continue;
      }
      job.why = job.why == reason::unknown ? reason::unknown : reason::restart;
      job.due = now();
    }
  }

  // No new work; what there is comes to its end, and is forgotten when its time has come.
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
      expect(done == 0, "no ended job to be there when its retention is over");
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
    while (stops_.wait_within(deadline::after(pause())) == status::timed_out) push(server, chance);
  }

  void push(jobs::engine& server, random& chance) {
    static constexpr std::array kinds{"plain", "plain",  "later", "later",
                                      "flaky", "doomed", "stuck"};
    const token it = book_.new_token();
    jobs::job_spec spec;
    spec.queue = "work";
    spec.kind = kinds[chance.below(kinds.size())];
    spec.args.data = "{\"token\":" + std::to_string(it) + "}";
    spec.retry = {.attempts_max = spec.kind == "doomed" ? 2U : 5U,
                  .first = first_pause,
                  .factor = pause_factor,
                  .longest = 1h,
                  .jitter = 0};
    if (spec.kind == "later") spec.run_at = now() + milliseconds(1 + chance.below(1'200'000));
    if (spec.kind == "stuck") spec.lease_for = stuck_lease;
    expected& mine = jobs_[it];
    mine.kind = spec.kind;
    mine.contents = crash::contents_of(spec);
    mine.why = spec.kind == "later" ? reason::later : reason::push;
    mine.due = std::max(spec.run_at, now());
    book_.pushing(it, mine.contents, {.not_before = spec.run_at});
    const auto said = crash::answer_of(server.push(std::move(spec)).get());
    log_.add("push %s %llu: %d", mine.kind.c_str(), static_cast<unsigned long long>(it),
             static_cast<int>(said.how));
    book_.pushed(it, said.how, now());
    if (said.how != answer::yes) mine.why = reason::unknown;
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
        const auto cron = crons_.find(l.it->spec.kind);
        if (cron != crons_.end()) {
          cron->second[l.it->id] = l.it->created_at;
          log_.add("%s runs", cron->first.c_str());
          (void)server.ack(l.ref()).get();
        } else {
          handle(server, l, asked);
        }
      }
    }
  }

  void handle(jobs::engine& server, const jobs::leased_job& l, std::uint64_t asked) {
    const token it = crash::token_of(l.it->spec.args.data);
    const auto number =
        book_.leased(it, crash::contents_of(l.it->spec), {asked, now(), l.until - tick});
    const auto found = jobs_.find(it);
    if (found == jobs_.end()) return;  // the ledger has said so
    expected& mine = found->second;
    log_.add("lease %s %llu", mine.kind.c_str(), static_cast<unsigned long long>(it));
    check_time(mine, it);
    mine.is_out = true;
    if (mine.kind == "stuck" && l.attempt == 1) {  // this worker dies with it
      mine.why = reason::expiry;
      mine.due = l.until + first_pause;
      return;
    }
    const bool fails = mine.kind == "doomed" || (mine.kind == "flaky" && l.attempt <= 2);
    if (fails) return fail(server, l, it, number, mine);
    book_.acking(it, number);
    const std::string value = "{\"of\":" + std::to_string(it) + "}";
    const auto said = server.ack(l.ref(), jobs::payload{value}).get();
    const answer how = said ? answer::yes : crash::answer_for(said.error().code);
    log_.add("ack %llu: %d", static_cast<unsigned long long>(it), static_cast<int>(how));
    book_.acked(it, how, number);
    if (how == answer::yes) {
      ended_.push_back({l.it->id, now()});
      mine.is_out = false;
    }
  }

  void fail(jobs::engine& server, const jobs::leased_job& l, token it, crash::lease_number number,
            expected& mine) {
    const bool is_last = l.attempt >= l.it->spec.retry.attempts_max;
    const milliseconds pause = l.attempt == 1 ? first_pause : 3 * first_pause;
    const unix_time before = now();
    if (is_last) {
      book_.burying(it, number);
    } else {
      book_.failing(it, number, before + pause);
    }
    const auto said = server.fail(l.ref(), crash::failure_asked_for()).get();
    const answer how = said ? answer::yes : crash::answer_for(said.error().code);
    log_.add("fail %llu: %d", static_cast<unsigned long long>(it), static_cast<int>(how));
    if (is_last) {
      book_.buried(it, how, number);
    } else {
      book_.failed(it, how, number);
    }
    if (how != answer::yes) {
      mine.why = reason::unknown;
      return;
    }
    mine.is_out = false;
    mine.why = reason::retry;
    if (is_last) {
      expect(said->state == jobs::job_state::dead, "a job to be dead after its last attempt");
      return;
    }
    mine.due = said->next_at;
    expect(said->next_at >= before + pause && said->next_at <= jobs::real_time().after(pause),
           "a pause of 20 s after the first failure and of 60 s after the second");
  }

  // --- judging ---

  void check_time(const expected& job, token it) {
    const unix_time at = now() - plan_.off_by;
    if (job.why == reason::unknown) return;
    if (job.why != reason::restart && at < job.due) {
      ++out_.all.early;
      out_.say("job " + std::to_string(it) + " (" + job.kind + ") ran " +
               std::to_string((job.due - at).count()) + " ms early");
    }
    if (at > times_.latest(job.due)) {
      ++out_.all.late;
      out_.say("job " + std::to_string(it) + " (" + job.kind + ") ran " +
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

  // What has ended is there for as long as it is kept, and then it is not.
  void check_retention(jobs::engine& server) {
    for (const ended_job& job : std::exchange(ended_, {})) {  // others come meanwhile
      const unix_time over = job.at + kept_for;
      const auto found = server.get(job.id).get();
      const unix_time then = now() - plan_.off_by;
      if (then > times_.latest(over)) {
        expect(!found && found.error().code == jobs::error_code::not_found,
               "an ended job to be gone when its retention is over");
        ++out_.all.forgotten;
        continue;
      }
      ended_.push_back(job);
      if (then + tick >= over) continue;
      expect(found && found->state == jobs::job_state::done && found->result.has_value(),
             "an ended job to be there for its retention");
      ++out_.all.kept;
    }
  }

  void find_the_dead(jobs::engine& server) {
    jobs::list_request what{.state = jobs::job_state::dead, .limit = 1000};
    for (;;) {
      const auto page = server.list(what).get();
      sim::check(page.has_value(), "a list of the dead");
      for (const auto& j : page->jobs) {
        book_.found_dead(crash::token_of(j.spec.args.data), crash::contents_of(j.spec));
      }
      if (!page->cursor) return;
      what.after = *page->cursor;
    }
  }

  // Every entry ran once for each of its times, and then.
  void check_crons() {
    for (const auto& [name, runs] : crons_) {
      const milliseconds every = name == "five" ? cron_every : milliseconds(1h);
      unix_time due = start_ + every;  // a day begins on the hour
      for (const auto& [id, at] : runs) {
        ++out_.all.cron_runs;
        const unix_time ran = at - plan_.off_by;
        if (ran < due || ran > times_.latest(due)) {
          ++out_.all.crons_off_time;
          out_.say("cron " + name + " ran " + std::to_string((ran - due).count()) +
                   " ms after its time");
        }
        due = due + every;
      }
      const auto count = static_cast<std::uint64_t>((end_ - start_) / every);
      out_.all.crons += count;
      // The last one is due when the day ends.
      expect(runs.size() == count || runs.size() + 1 == count, "a run for each time of an entry");
    }
  }

  void expect(bool holds, const char* what) {
    if (!holds) out_.say(std::string("expected ") + what);
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
  auto [made, said] = play<day_player, day>(
      plan, {.name = "day", .memory = sim::memory_order_model::strong, .steps_max = 2'000'000'000});
  made.broken += said;
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
