// `std`: std::future has no continuations. The chain is ten promises, each set with the value of
// the previous future; the thousand futures are read in sequence.
#include <future>
#include <vector>

#include "benchmarks/future/workloads.hpp"

namespace sluice::bench {
namespace {

std::uint64_t chain10(std::uint64_t n) {
  std::promise<std::uint64_t> first;
  auto before = first.get_future();
  first.set_value(n);
  for (std::uint64_t i = 0; i < chain_length; ++i) {
    std::promise<std::uint64_t> next;
    auto after = next.get_future();
    next.set_value(before.get() + 1);
    before = std::move(after);
  }
  return before.get();
}

std::uint64_t when_all_1000(std::uint64_t n) {
  std::vector<std::promise<std::uint64_t>> promises(all_count);
  std::vector<std::future<std::uint64_t>> futures;
  futures.reserve(all_count);
  for (auto& p : promises) futures.push_back(p.get_future());
  for (auto& p : promises) p.set_value(n);
  std::uint64_t sum = 0;
  for (auto& f : futures) sum += f.get();
  return sum;
}

const registration added{[](suite& s) {
  s.add("chain10", "std", operations_per_second([](seconds duration) {
          return run_chain10(duration, chain10);
        }));
  s.add("when_all_1000", "std", operations_per_second([](seconds duration) {
          return run_when_all_1000(duration, when_all_1000);
        }));
}};

}  // namespace
}  // namespace sluice::bench
