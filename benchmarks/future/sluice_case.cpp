// `sluice`: promise, future::then, when_all.
#include <vector>

#include "benchmarks/future/workloads.hpp"
#include "sluice/future/promise.hpp"
#include "sluice/future/when_all.hpp"

namespace sluice::bench {
namespace {

std::uint64_t chain10(std::uint64_t n) {
  const auto add_one = [](std::uint64_t v) { return v + 1; };
  promise<std::uint64_t> p;
  auto f = p.get_future()
               .then(add_one)
               .then(add_one)
               .then(add_one)
               .then(add_one)
               .then(add_one)
               .then(add_one)
               .then(add_one)
               .then(add_one)
               .then(add_one)
               .then(add_one);
  p.set_value(n);
  return f.get();
}

std::uint64_t when_all_1000(std::uint64_t n) {
  std::vector<promise<std::uint64_t>> promises(all_count);
  std::vector<future<std::uint64_t>> futures;
  futures.reserve(all_count);
  for (auto& p : promises) futures.push_back(p.get_future());
  auto all = when_all(std::move(futures));
  for (auto& p : promises) p.set_value(n);
  std::uint64_t sum = 0;
  for (const auto value : all.get()) sum += value;
  return sum;
}

const registration added{[](suite& s) {
  s.add("chain10", "sluice", operations_per_second([](seconds duration) {
          return run_chain10(duration, chain10);
        }));
  s.add("when_all_1000", "sluice", operations_per_second([](seconds duration) {
          return run_when_all_1000(duration, when_all_1000);
        }));
}};

}  // namespace
}  // namespace sluice::bench
