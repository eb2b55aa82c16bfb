// `sluice`: the engine on its SQLite store.
#include <atomic>
#include <cstdint>
#include <memory>
#include <semaphore>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "benchmarks/engine/workloads.hpp"
#include "benchmarks/threads.hpp"
#include "jobs/engine/engine.hpp"
#include "jobs/store/sqlite/sqlite_store.hpp"
#include "sluice/base/testing/temporary_folder.hpp"

namespace sluice::bench {
namespace {

constexpr int pushers = 8;
constexpr int workers = 8;
constexpr std::size_t a_call = 128;    // jobs of one push_many, lease and ack_many
constexpr std::ptrdiff_t ahead = 128;  // most calls that pushers are ahead of the workers

template <class T>
T must(jobs::result<T> r) {
  if (!r) fail(r.error().message);
  return std::move(*r);
}

std::unique_ptr<jobs::engine> open(const testing::temporary_folder& folder) {
  const auto file = folder.file("jobs.db");
  return must(jobs::engine::open(must(jobs::open_sqlite({.path = file}))));
}

jobs::job_spec spec() {
  return {.kind = "bench", .args = {job_args(), jobs::content_type::json}};
}

tally lifecycle(seconds duration) {
  const testing::temporary_folder folder(testing::program_folder());
  const auto engine = open(folder);
  std::counting_semaphore<> free_calls(ahead);
  std::atomic<std::uint64_t> pushed = 0;
  std::atomic<std::uint64_t> acked = 0;
  std::atomic<int> pushing = pushers;
  std::stop_source all_done;
  const auto finish_when_done = [&] {
    if (pushing == 0 && acked == pushed) all_done.request_stop();
  };

  std::vector<thread_body> bodies;
  for (int i = 0; i < pushers; ++i) {
    bodies.emplace_back([&](const run_clock& clock) -> std::uint64_t {
      while (!clock.has_ended()) {
        free_calls.acquire();
        pushed += a_call;  // before the push: a worker may ack it before the push has returned
        auto receipts = engine->push_many(std::vector<jobs::job_spec>(a_call, spec())).get();
        for (auto& receipt : receipts) must(std::move(receipt));
      }
      --pushing;
      finish_when_done();
      return 0;
    });
  }
  for (int i = 0; i < workers; ++i) {
    bodies.emplace_back([&](const run_clock&) {
      std::uint64_t own = 0;
      std::uint64_t unreleased = 0;
      for (;;) {
        auto leased = engine->lease({.max = a_call}, all_done.get_token()).get();
        if (!leased && leased.error().code == jobs::error_code::stopped) return own;
        std::vector<jobs::ack_item> acks;
        for (const jobs::leased_job& job : must(std::move(leased))) {
          acks.push_back({job.ref(), {}});
        }
        const std::size_t count = acks.size();
        for (auto& ended : engine->ack_many(std::move(acks)).get()) must(std::move(ended));
        own += count;
        acked += count;
        for (unreleased += count; unreleased >= a_call; unreleased -= a_call) free_calls.release();
        finish_when_done();
      }
    });
  }
  const tally done = run_threads(duration, std::move(bodies));
  expect_equal(done.operations, pushed, "jobs acked");
  expect_equal(engine->stats().acked, pushed, "jobs the engine counts as acked");
  return done;
}

tally push_one_by_one(seconds duration) {
  const testing::temporary_folder folder(testing::program_folder());
  const auto engine = open(folder);
  const tally done = run_threads(duration, pushers, [&](int, const run_clock& clock) {
    std::uint64_t count = 0;
    for (; !clock.has_ended(); ++count) must(engine->push(spec()).get());
    return count;
  });
  expect_equal(must(engine->queue("default")).counts.ready, done.operations, "jobs kept");
  return done;
}

const registration added{[](suite& s) {
  s.add("lifecycle", "sluice", per_second(lifecycle));
  s.add("push_sync_8", "sluice", per_second(push_one_by_one));
}};

}  // namespace
}  // namespace sluice::bench
