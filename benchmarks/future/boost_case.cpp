// `boost`: boost::promise, future::then on the completing thread, boost::when_all.
#include <boost/thread/future.hpp>

#include <vector>

#include "benchmarks/future/workloads.hpp"

namespace sluice::bench {
namespace {

using boost::future;
using boost::launch;
using boost::promise;

future<std::uint64_t> then_add_one(future<std::uint64_t> f) {
  return f.then(launch::sync, [](future<std::uint64_t> v) { return v.get() + 1; });
}

std::uint64_t chain10(std::uint64_t n) {
  promise<std::uint64_t> p;
  auto f = p.get_future();
  for (std::uint64_t i = 0; i < chain_length; ++i) f = then_add_one(std::move(f));
  p.set_value(n);
  return f.get();
}

std::uint64_t when_all_1000(std::uint64_t n) {
  std::vector<promise<std::uint64_t>> promises(all_count);
  std::vector<future<std::uint64_t>> futures;
  futures.reserve(all_count);
  for (auto& p : promises) futures.push_back(p.get_future());
  auto all = boost::when_all(futures.begin(), futures.end());
  for (auto& p : promises) p.set_value(n);
  std::uint64_t sum = 0;
  for (auto& value : all.get()) sum += value.get();
  return sum;
}

const registration added{[](suite& s) {
  s.add("chain10", "boost", operations_per_second([](seconds duration) {
          return run_chain10(duration, chain10);
        }));
  s.add("when_all_1000", "boost", operations_per_second([](seconds duration) {
          return run_when_all_1000(duration, when_all_1000);
        }));
}};

}  // namespace
}  // namespace sluice::bench
