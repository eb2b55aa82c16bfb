// ./bench limits: the cost of keys, batches, rates and weights, and the accuracy of their limits.
// The engine in process, on SQLite with sync=full.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "benchmarks/engine/workloads.hpp"
#include "benchmarks/harness.hpp"
#include "jobs/engine/engine.hpp"
#include "jobs/store/sqlite/sqlite_store.hpp"
#include "sluice/base/testing/temporary_folder.hpp"

using namespace sluice;
using namespace sluice::bench;
using namespace std::chrono_literals;

namespace {

constexpr std::size_t a_call = 128;  // jobs of one push_many, lease and ack_many
constexpr std::size_t pushers = 4;
constexpr std::size_t workers = 4;

using steady = std::chrono::steady_clock;

template <class T>
T must(jobs::result<T> r) {
  if (!r) fail(r.error().message);
  return std::move(*r);
}

class opened {
 public:
  opened() {
    const auto file = folder_.file("jobs.db");
    engine_ = must(jobs::engine::open(must(jobs::open_sqlite({.path = file}))));
  }
  jobs::engine* operator->() { return engine_.get(); }

 private:
  sluice::testing::temporary_folder folder_{sluice::testing::program_folder()};
  std::unique_ptr<jobs::engine> engine_;
};

jobs::job_spec spec(std::string queue = "default") {
  return {
      .queue = std::move(queue), .kind = "bench", .args = {job_args(), jobs::content_type::json}};
}

// Sets the special fields of the n-th job.
using specialise = void (*)(jobs::job_spec& spec, std::size_t n);

// Jobs are pushed, leased and acked, every step durable, in a queue with `options`.
measure lifecycle(specialise special, jobs::queue_patch options, bool in_batches = false) {
  return [=](const settings& s) {
    const std::size_t total = s.quick ? 2'048 : 100'096;
    opened engine;
    must(engine->configure("default", options).get());
    std::atomic<std::size_t> next = 0;
    std::atomic<std::size_t> acked = 0;
    const auto began = steady::now();
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < pushers; ++i) {
      threads.emplace_back([&] {
        for (;;) {
          const std::size_t first = next.fetch_add(a_call);
          if (first >= total) return;
          std::vector<jobs::job_spec> some(a_call, spec());
          for (std::size_t n = 0; n < a_call; ++n) special(some[n], first + n);
          if (in_batches) {
            jobs::batch_spec batch;
            batch.jobs = std::move(some);
            must(engine->push_batch(std::move(batch)).get());
          } else {
            for (auto& pushed : engine->push_many(std::move(some)).get()) must(std::move(pushed));
          }
        }
      });
    }
    for (std::size_t i = 0; i < workers; ++i) {
      threads.emplace_back([&] {
        while (acked < total) {
          auto leased = engine->lease({.max = a_call}, sluice::deadline::after(20ms)).get();
          if (!leased && leased.error().code == jobs::error_code::timed_out) continue;
          std::vector<jobs::ack_item> acks;
          for (const jobs::leased_job& job : must(std::move(leased))) {
            acks.push_back({job.ref(), {}});
          }
          const std::size_t count = acks.size();
          for (auto& ended : engine->ack_many(std::move(acks)).get()) must(std::move(ended));
          acked += count;
        }
      });
    }
    threads.clear();
    const seconds took = steady::now() - began;
    expect_equal(acked, total, "jobs acked");
    return static_cast<double>(total) / took.count();
  };
}

void plain(jobs::job_spec&, std::size_t) {}
void own_key(jobs::job_spec& spec, std::size_t n) {
  spec.key = "customer-" + std::to_string(n);
}
void few_keys(jobs::job_spec& spec, std::size_t n) {
  spec.key = "customer-" + std::to_string(n % 1000);
}

// Bursts arrive for ten seconds. Returns the deviation of the start rate from the limit, in %.
double rate_error(const settings& s) {
  constexpr double rate = 1000;
  const auto window = s.quick ? 1s : 10s;
  opened engine;
  jobs::queue_patch options;
  options.rate = rate;
  must(engine->configure("default", options).get());
  std::atomic<bool> stopped = false;
  std::atomic<std::uint64_t> started = 0;
  std::vector<std::jthread> threads;
  threads.emplace_back([&] {
    // Five times the rate in one push, then no push until most of it has started.
    while (!stopped) {
      if (must(engine->queue("default")).counts.ready > 2000) {
        std::this_thread::sleep_for(20ms);
        continue;
      }
      for (auto& p : engine->push_many(std::vector<jobs::job_spec>(5000, spec())).get()) {
        must(std::move(p));
      }
    }
  });
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      while (!stopped) {
        auto leased = engine->lease({.max = 1}, sluice::deadline::after(50ms)).get();
        if (!leased) continue;
        ++started;
        must(engine->ack(leased->front().ref()).get());
      }
    });
  }
  // Skips the jobs that may start at once after the initial pause.
  while (started < 200) std::this_thread::sleep_for(1ms);
  const auto began = steady::now();
  const std::uint64_t before = started;
  std::this_thread::sleep_for(window);
  const std::uint64_t after = started;
  const seconds took = steady::now() - began;
  stopped = true;
  threads.clear();
  return 100 * std::abs(static_cast<double>(after - before) / took.count() / rate - 1);
}

// Returns the time from push to start in a queue beside a flooded one, with the same workers.
double start_beside_flood_ms(const settings& s) {
  const std::size_t flood = s.quick ? 20'000 : 1'000'000;
  const std::size_t samples = s.quick ? 50 : 1000;
  opened engine;
  for (std::size_t n = 0; n < flood; n += 10'000) {
    for (auto& p : engine->push_many(std::vector<jobs::job_spec>(10'000, spec("flood"))).get()) {
      must(std::move(p));
    }
  }
  std::atomic<bool> stopped = false;
  std::vector<steady::time_point> pushed(samples);
  std::vector<double> waited;
  std::mutex guard;
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      while (!stopped) {
        auto leased =
            engine->lease({.queues = {"flood", "small"}, .max = 1}, sluice::deadline::after(50ms))
                .get();
        if (!leased) continue;
        const jobs::leased_job& job = leased->front();
        if (job.job->spec.queue == "small") {
          const auto now = steady::now();
          const std::lock_guard hold(guard);
          waited.push_back(seconds(now - pushed[std::stoul(job.job->spec.kind)]).count() * 1000);
        }
        must(engine->ack(job.ref()).get());
      }
    });
  }
  for (std::size_t n = 0; n < samples; ++n) {
    jobs::job_spec small = spec("small");
    small.kind = std::to_string(n);
    {
      const std::lock_guard hold(guard);
      pushed[n] = steady::now();
    }
    must(engine->push(std::move(small)).get());
    std::this_thread::sleep_for(1ms);
  }
  for (;;) {
    std::this_thread::sleep_for(5ms);
    const std::lock_guard hold(guard);
    if (waited.size() == samples) break;
  }
  stopped = true;
  threads.clear();
  std::ranges::sort(waited);
  return waited[samples * 99 / 100];
}

}  // namespace

int main(int argc, char** argv) {
  suite s("limits");
  s.declare({.name = "lifecycle",
             .summary =
                 "100,096 jobs pushed, leased and acked, 128 a call: each with a serial key of "
                 "its own; under 1,000 keys; in batches; with rate, concurrency and weight",
             .unit = "jobs/s",
             .bars = {at_least(0.7, "plain", "serial_keys"), at_least(0.7, "plain", "batches"),
                      at_least(0.7, "plain", "limits")},
             .repetitions_max = 5});
  s.declare({.name = "rate_error",
             .summary = "a queue limited to 1,000 jobs/s for 10 s, bursts of 5,000 arriving, 8 "
                        "workers: deviation",
             .unit = "%",
             .direction = better::lower,
             .bars = {below(2)},
             .repetitions_max = 3});
  s.declare({.name = "fairness-p99",
             .summary = "from push to start in a queue beside one with 1,000,000 jobs, the same 4 "
                        "workers for both",
             .unit = "ms",
             .direction = better::lower,
             .bars = {below(50)},
             .repetitions_max = 1});
  s.add("lifecycle", "plain", lifecycle(plain, {}));
  s.add("lifecycle", "serial_keys", lifecycle(own_key, {}));
  s.add("lifecycle", "thousand_keys", lifecycle(few_keys, {}));
  s.add("lifecycle", "batches", lifecycle(plain, {}, true));
  jobs::queue_patch limited;
  limited.rate = 1e6;
  limited.concurrency = 100'000;
  limited.weight = 3;
  s.add("lifecycle", "limits", lifecycle(plain, limited));
  s.add("rate_error", "sluice", rate_error);
  s.add("fairness-p99", "sluice", start_beside_flood_ms);
  return s.run(argc, argv);
}
