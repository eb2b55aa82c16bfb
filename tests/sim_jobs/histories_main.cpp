// Plays many histories of a simulated job server with crashes. Fails if a job was lost or an
// unexpected job appeared.
//
//   sluice_sim_histories [--histories N] [--show yes]
//
//   --histories  plays N histories (default: until enough of them had a crash)
//   --show       prints every event, to compare two runs of one history
//
// SLUICE_SEED is the seed of the first history (1). Later histories use the next seeds.
// SLUICE_LONG=1 plays more.

#include <chrono>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>

#include "sluice/base/testing/effort.hpp"
#include "tests/sim_jobs/history.hpp"

namespace {

struct arguments {
  std::uint64_t histories = 0;
  bool show = false;
};

bool parse(int count, char** given, arguments& into) {
  for (int i = 1; i + 1 < count; i += 2) {
    const std::string name = given[i];
    const char* const value = given[i + 1];
    if (name == "--histories") {
      into.histories = std::strtoull(value, nullptr, 10);
      if (into.histories == 0) return false;
    } else if (name == "--show") {
      into.show = std::string(value) == "yes";
    } else {
      return false;
    }
  }
  return count % 2 == 1;
}

}  // namespace

int main(int count, char** given) try {
  arguments asked;
  if (!parse(count, given, asked)) {
    std::fprintf(stderr, "sluice_sim_histories: see the comment in histories_main.cpp\n");
    return 2;
  }
  constexpr const char* name = "sluice_sim_histories";
  const std::uint64_t enough =
      asked.histories > 0
          ? 0
          : sluice::testing::effort(name, "histories with a crash", {.ci = 250, .full = 4000});
  // Each history has up to four lives, one in five of which ends orderly.
  const std::uint64_t histories_max = asked.histories > 0 ? asked.histories : 2 * enough;
  const std::uint64_t first = sluice::testing::seed(name, 1);
  const auto began = std::chrono::steady_clock::now();
  sluice::sim_jobs::history all;
  std::uint64_t failed = 0;
  std::uint64_t played = 0;
  std::uint64_t crashed = 0;
  const auto is_enough = [&] { return enough > 0 && crashed == enough; };
  for (; played < histories_max && !is_enough(); ++played) {
    const auto seed = first + played;
    const auto one = sluice::sim_jobs::run({.seed = seed, .shown = asked.show ? stdout : nullptr});
    if (!one.ok()) {
      ++failed;
      std::printf("FAILED: SLUICE_SEED=%" PRIu64 " --histories 1\n%s\n%s\n", seed,
                  one.to_string().c_str(), one.broken.c_str());
      std::fflush(stdout);
    }
    if (one.disk.cuts() > 0) ++crashed;
    all.add(one);
  }
  const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::steady_clock::now() - began);
  all.found.findings.clear();
  std::printf("%s\nnumber of all events %016" PRIx64 "\n", all.to_string().c_str(), all.hash);
  std::printf("sim: %" PRIu64 " histories of the job server, %" PRIu64 " with a crash (%" PRIu64
              " crashes), %" PRIu64 " pushes and %" PRIu64
              " leases judged in %lld ms: lost %" PRIu64 ", unexpected %" PRIu64 ", %" PRIu64
              " failed\n",
              played, crashed, all.disk.cuts(), all.found.attempted, all.found.leases,
              static_cast<long long>(took.count()), all.found.lost, all.found.unexpected, failed);
  if (enough > 0 && !is_enough()) {
    std::fprintf(stderr, "too few histories had a crash\n");
    return 1;
  }
  return failed == 0 ? 0 : 1;
} catch (const std::invalid_argument& wrong) {
  std::fprintf(stderr, "sluice_sim_histories: %s\n", wrong.what());
  return 2;
}
