// The real program, killed at random times, with jobs that depend on one another: each callback of
// a batch runs once, jobs of a key never overlap and keep their order, and a cron run is neither
// lost nor doubled.
//
// SLUICE_SEED reproduces the times and the load.

#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "jobs/cli/testing/program.hpp"
#include "jobs/client/client.hpp"
#include "jobs/json/text.hpp"
#include "sluice/base/random.hpp"
#include "sluice/base/seam.hpp"
#include "sluice/base/testing/effort.hpp"
#include "sluice/base/testing/test_name.hpp"
#include "sluice/sync/event.hpp"
#include "sluice/sync/guarded.hpp"
#include "tests/crash/kill_cycle.hpp"

namespace sluice::crash::promise_kill_test {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t keys = 8;
constexpr int workers = 4;
constexpr jobs::retry_policy quick{
    .attempts_max = 1000, .first = jobs::milliseconds(10), .longest = jobs::milliseconds(20)};

std::uint64_t number_in(const jobs::job& job) {
  std::uint64_t n = 0;
  const std::string& text = job.spec.args.data;
  std::from_chars(text.data(), text.data() + text.size(), n);
  return n;
}

// In every third batch the last part fails permanently, which runs the failure callback.
bool fails(std::uint64_t batch) {
  return batch % 3 == 0;
}

// The acknowledged promises and the observations, over all lives of the server.
struct book {
  struct line {
    std::uint64_t pushed = 0;              // the largest number of an attempted push
    std::set<std::uint64_t> acknowledged;  // pushes
    std::uint64_t started = 0;             // the largest number that a worker has begun
    int running = 0;
    std::set<std::uint64_t> acked;       // successful acks
    std::set<std::uint64_t> ack_unsure;  // acks without a reply: may have been executed
  };
  std::map<std::string, line> lines;
  std::set<std::uint64_t> batches;  // acknowledged, by number
  // The jobs that ran as callbacks, by batch and kind.
  std::map<std::pair<std::uint64_t, std::string>, std::set<jobs::job_id>> callbacks;
  std::map<std::int64_t, std::set<jobs::job_id>> ticks;  // by the second of the run
  std::vector<std::string> broken;                       // broken promises
  std::uint64_t next_batch = 1;
};

// Returns the time of a cron run from its job's metadata.
std::int64_t second_of(const jobs::job& job) {
  const std::size_t at = job.spec.metadata.find(R"("at":")");
  if (at == std::string::npos) return 0;
  const std::string text = job.spec.metadata.substr(at + 6);
  const auto time = jobs::parse_time(text.substr(0, text.find('"')));
  return time ? time->ms / 1000 : 0;
}

using shared_book = guarded<book>;

// One life of the server.
class life {
 public:
  life(shared_book& b, const std::string& url, std::uint64_t seed) : book_(b), chance_(seed) {
    jobs::client_options o;
    o.url = url;
    o.connections_max = 64;
    client_.emplace(jobs::client::open(o).value());
  }

  // Runs the clients until the server is gone or `enough` is requested.
  void run(std::stop_token enough) {
    std::vector<seam::thread> threads;
    for (std::size_t k = 0; k < keys; k += 2) {
      threads.emplace_back([this, k, &enough] { push_lines(k, enough); });
    }
    threads.emplace_back([this, &enough] { push_batches(enough); });
    for (int i = 0; i < workers; ++i) {
      const std::uint64_t seed = chance_.next();
      threads.emplace_back([this, seed, &enough] { work(seed, enough); });
    }
    for (seam::thread& t : threads) t.join();
    book_.with([](book& b) {  // no job has a worker now
      for (auto& [key, line] : b.lines) line.running = 0;
    });
  }

  jobs::client& server() { return *client_; }
  bool is_gone() const { return gone_; }

  // Works until no job is left. Returns false if one is left and not delivered.
  bool drain() {
    random chance(1);
    const deadline patience = deadline::after(60s);
    while (!gone_ && !patience.passed()) {
      const auto queues = client_->queues();
      std::uint64_t left = queues ? 0 : 1;
      for (const jobs::queue_info& q : queues ? *queues : std::vector<jobs::queue_info>{}) {
        // The success callback of a failed batch stays held.
        left += q.counts.unfinished() - (q.name == "callbacks" ? q.counts.held : 0);
      }
      if (left == 0) return true;
      // Long enough for a stalled server: a request abandoned before its reply leaves its jobs
      // leased for as long as this function waits in total.
      (void)work_once(chance, 10s);
    }
    return false;
  }

 private:
  void push_lines(std::size_t first, const std::stop_token& enough) {
    while (!gone_ && !enough.stop_requested()) {
      for (std::size_t k = first; k < first + 2; ++k) {
        const std::string key = "k" + std::to_string(k);
        if (is_far_ahead(key)) continue;
        const std::uint64_t n = book_.with([&](book& b) { return ++b.lines[key].pushed; });
        jobs::job_spec spec;
        spec.queue = "lines";
        spec.kind = key;
        spec.key = key;
        spec.args.data = std::to_string(n);
        spec.retry = quick;
        const auto pushed = client_->push(std::move(spec), deadline::after(10s));
        if (!pushed) return leave(pushed.error());
        book_.with([&](book& b) { b.lines[key].acknowledged.insert(n); });
      }
    }
  }

  // Limits the backlog, so that the final drain does not take too long.
  bool is_far_ahead(const std::string& key) {
    const bool is_far = book_.with([&](book& b) {
      const book::line& line = b.lines[key];
      return line.acknowledged.size() > line.acked.size() + line.ack_unsure.size() + 50;
    });
    if (is_far) nap();
    return is_far;
  }
  bool are_batches_far_ahead() {
    const bool is_far =
        book_.with([](book& b) { return 2 * b.batches.size() > b.callbacks.size() + 200; });
    if (is_far) nap();
    return is_far;
  }
  static void nap() {
    event never_set;
    (void)never_set.wait(2ms);
  }

  void push_batches(const std::stop_token& enough) {
    while (!gone_ && !enough.stop_requested()) {
      if (are_batches_far_ahead()) continue;
      const std::uint64_t n = book_.with([](book& b) { return b.next_batch++; });
      jobs::batch_spec spec;
      for (int i = 0; i < 3; ++i) {
        jobs::job_spec part;
        part.queue = "parts";
        part.kind = "part";
        part.retry = quick;
        spec.jobs.push_back(std::move(part));
      }
      if (fails(n)) spec.jobs.back().kind = "hopeless";
      spec.on_success = callback(n, "success");
      spec.on_end = callback(n, "end");
      spec.on_failure = callback(n, "failure");
      const auto pushed = client_->push_batch(std::move(spec), deadline::after(10s));
      if (!pushed) return leave(pushed.error());
      book_.with([&](book& b) { b.batches.insert(n); });
    }
  }

  static jobs::job_spec callback(std::uint64_t n, std::string kind) {
    jobs::job_spec spec;
    spec.queue = "callbacks";
    spec.kind = std::move(kind);
    spec.args.data = std::to_string(n);
    spec.retry = quick;
    return spec;
  }

  void work(std::uint64_t seed, const std::stop_token& enough) {
    random chance(seed);
    while (!gone_ && !enough.stop_requested()) (void)work_once(chance, 100ms);
  }

  // Returns false if no job was leased.
  bool work_once(random& chance, std::chrono::milliseconds patience, std::size_t max = 4) {
    auto leased = client_->lease({.queues = {"lines", "parts", "callbacks", "ticks"}, .max = max},
                                 deadline::after(patience));
    if (!leased) {
      if (leased.error().code != jobs::error_code::timed_out) leave(leased.error());
      return false;
    }
    for (const jobs::leased_job& l : *leased) begin(l);
    for (const jobs::leased_job& l : *leased) finish(l, chance.below(10) == 0);
    return true;
  }

  void begin(const jobs::leased_job& l) {
    const jobs::job& job = *l.job;
    const std::uint64_t n = number_in(job);
    book_.with([&](book& b) {
      if (job.spec.queue == "callbacks") b.callbacks[{n, job.spec.kind}].insert(job.id);
      if (job.spec.queue == "ticks") b.ticks[second_of(job)].insert(job.id);
      if (job.spec.queue != "lines") return;
      book::line& line = b.lines[job.spec.key];
      if (++line.running > 1) {
        b.broken.push_back(job.spec.key + " overlaps at " + std::to_string(n));
      }
      if (n < line.started) {
        b.broken.push_back(job.spec.key + " began " + std::to_string(n) + " after " +
                           std::to_string(line.started));
      }
      line.started = std::max(line.started, n);
    });
  }

  void finish(const jobs::leased_job& l, bool fails) {
    const jobs::job& job = *l.job;
    const bool is_line = job.spec.queue == "lines";
    if (is_line) {
      book_.with([&](book& b) { --b.lines[job.spec.key].running; });
    }
    const bool is_hopeless = job.spec.kind == "hopeless";
    if ((fails || is_hopeless) && job.spec.queue != "ticks") {
      jobs::failure why;
      why.type = "bad_luck";
      why.for_good = is_hopeless;
      const auto reply = client_->fail(l.ref(), why, deadline::after(10s));
      if (!reply) leave(reply.error());
      return;
    }
    const auto reply = client_->ack(l.ref(), {}, deadline::after(10s));
    const bool is_unsure = !reply && reply.error().code != jobs::error_code::lease_lost;
    if (is_line) {
      book_.with([&](book& b) {
        book::line& line = b.lines[job.spec.key];
        if (reply) line.acked.insert(number_in(job));
        if (is_unsure) line.ack_unsure.insert(number_in(job));
      });
    }
    if (!reply) leave(reply.error());
  }

  void leave(const jobs::error& why) {
    // An expired lease does not mean that the server is gone.
    if (why.code != jobs::error_code::lease_lost) gone_ = true;
  }

  shared_book& book_;
  random chance_;
  std::optional<jobs::client> client_;
  std::atomic<bool> gone_ = false;
};

struct verdict {
  std::uint64_t keyed = 0, lost = 0, callbacks_missing = 0, callbacks_wrong = 0;
  std::uint64_t failed_batches = 0, runs_missing = 0, runs_doubled = 0;
};

// Counts the missing callbacks of an acknowledged batch, and those run twice or without condition.
void judge_batch(const book& b, std::uint64_t n, verdict& found) {
  const bool failed = fails(n);
  found.failed_batches += failed ? 1U : 0U;
  for (const char* const kind : {"success", "end", "failure"}) {
    const bool is_due =
        kind == std::string_view("end") || failed == (kind == std::string_view("failure"));
    const auto ran = b.callbacks.find({n, kind});
    const std::size_t times = ran == b.callbacks.end() ? 0 : ran->second.size();
    found.callbacks_missing += is_due && times == 0 ? 1U : 0U;
    found.callbacks_wrong += times > (is_due ? 1U : 0U) ? 1U : 0U;
  }
}

bool has_shown_enough(const book& b, std::uint64_t kills) {
  std::uint64_t keyed = 0;
  for (const auto& [key, line] : b.lines) keyed += line.acknowledged.size();
  const bool has_failed = std::ranges::any_of(b.batches, fails);
  return keyed >= 10 * kills && b.batches.size() >= kills && has_failed && b.ticks.size() > 1;
}

void judge(shared_book& all, const jobs::cron_info& cron, std::uint64_t kills) {
  all.with([&](book& b) {
    for (const std::string& promise : b.broken) ADD_FAILURE() << promise;
    verdict found;
    for (const auto& [key, line] : b.lines) {
      found.keyed += line.acknowledged.size();
      for (const std::uint64_t n : line.acknowledged) {
        found.lost += line.acked.contains(n) || line.ack_unsure.contains(n) ? 0U : 1U;
      }
    }
    for (const std::uint64_t n : b.batches) judge_batch(b, n, found);
    // There is a run for every second from the first to the last.
    for (const auto& [second, ids] : b.ticks) found.runs_doubled += ids.size() - 1;
    if (!b.ticks.empty()) {
      const auto span = b.ticks.rbegin()->first - b.ticks.begin()->first + 1;
      found.runs_missing = static_cast<std::uint64_t>(span) - b.ticks.size();
      EXPECT_EQ(b.ticks.rbegin()->first, cron.entry.last_at.ms / 1000);
    }
    EXPECT_EQ(found.lost, 0U);
    EXPECT_EQ(found.callbacks_missing, 0U);
    EXPECT_EQ(found.callbacks_wrong, 0U) << "ran twice, or without its condition";
    EXPECT_EQ(found.runs_missing, 0U);
    EXPECT_EQ(found.runs_doubled, 0U);
    EXPECT_EQ(b.ticks.size(), cron.entry.runs);
    const auto n = [](std::uint64_t value) { return static_cast<unsigned long>(value); };
    std::printf(
        "[          ] keyed jobs %lu: lost %lu, overlapping or out of order %lu; batches %lu, of "
        "them failed %lu: callbacks missing %lu, wrong %lu; cron runs %lu: missing %lu, doubled "
        "%lu\n",
        n(found.keyed), n(found.lost), n(b.broken.size()), n(b.batches.size()),
        n(found.failed_batches), n(found.callbacks_missing), n(found.callbacks_wrong),
        n(b.ticks.size()), n(found.runs_missing), n(found.runs_doubled));
    EXPECT_TRUE(has_shown_enough(b, kills)) << "too little load to show anything";
  });
}

TEST(promise_kill_test, KeysBatchesAndCronKeepTheirPromises) {
  const std::string name = sluice::testing::test_name();
  const std::uint64_t kills = sluice::testing::effort(name, "kills", usual_kills);
  const temporary_folder folder;
  random chance(sluice::testing::seed(name));
  shared_book all;
  // On a busy machine there is less load in a life, so there are more lives.
  const auto is_enough = [&] {
    return all.with([&](const book& b) { return has_shown_enough(b, kills); });
  };
  for (std::uint64_t i = 0; i < kills || (i < 10 * kills && !is_enough()); ++i) {
    server_program server(folder);
    ASSERT_FALSE(::testing::Test::HasFailure()) << "after " << i << " kills";
    life now(all, server.url(), chance.next());
    if (i == 0) {
      jobs::cron_spec tick;
      tick.name = "tick";
      tick.schedule = "* * * * * *";
      tick.missed = jobs::missed_runs::all;
      tick.job.queue = "ticks";
      tick.job.kind = "tick";
      const auto set = now.server().set_cron(tick);
      ASSERT_TRUE(set) << set.error().message;
    }
    const auto moment = std::chrono::microseconds(chance.below(1'000'000));
    {
      const seam::thread killer([&] {
        event never_set;  // a kill comes without notice
        (void)never_set.wait(moment);
        server.itself().signal(SIGKILL);
      });
      now.run({});
    }
    EXPECT_EQ(server.itself().wait().code, 128 + SIGKILL);
  }
  server_program server(folder);
  life last(all, server.url(), chance.next());
  const auto paused = last.server().patch_cron("tick", {.paused = true});
  ASSERT_TRUE(paused) << paused.error().message;
  EXPECT_TRUE(last.drain()) << "a job is never delivered";
  const auto cron = last.server().get_cron("tick");
  ASSERT_TRUE(cron) << cron.error().message;
  EXPECT_EQ(cron->entry.missed, 0U);
  judge(all, *cron, kills);
  EXPECT_EQ(server.stop().code, 0);
  const auto checked = jobs::cli::testing::run_sluice({"check", "--data", folder.file("data")});
  EXPECT_EQ(checked.code, 0) << checked.out << checked.err;
}

}  // namespace
}  // namespace sluice::crash::promise_kill_test
