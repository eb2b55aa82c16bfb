// `sluice`: fork and join on a work_stealing_pool.
#include "benchmarks/forkjoin/fib.hpp"
#include "sluice/executor/fork.hpp"

namespace sluice::bench {
namespace {

std::int64_t forked_fib(int n) {
  if (n < 2) return n;
  auto first = fork([n] { return forked_fib(n - 1); });
  const auto second = forked_fib(n - 2);
  return first.join() + second;
}

class stealing_pool {
 public:
  explicit stealing_pool(unsigned threads) : pool_({.threads = threads}) {}
  std::int64_t fib(int n) {
    return fork(pool_, [n] { return forked_fib(n); }).join();
  }

 private:
  work_stealing_pool pool_;
};

const registration added{[](suite& s) { add_fib<stealing_pool>(s, "sluice"); }};

}  // namespace
}  // namespace sluice::bench
