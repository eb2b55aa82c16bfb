// `tbb`: tbb::task_group in an arena with the same number of threads.
#include <tbb/task_arena.h>
#include <tbb/task_group.h>

#include "benchmarks/forkjoin/fib.hpp"

namespace sluice::bench {
namespace {

std::int64_t grouped_fib(int n) {
  if (n < 2) return n;
  std::int64_t first = 0;
  tbb::task_group group;
  group.run([n, &first] { first = grouped_fib(n - 1); });
  const auto second = grouped_fib(n - 2);
  group.wait();
  return first + second;
}

class tbb_arena {
 public:
  explicit tbb_arena(unsigned threads) : arena_(static_cast<int>(threads)) {}
  std::int64_t fib(int n) {
    return arena_.execute([n] { return grouped_fib(n); });
  }

 private:
  tbb::task_arena arena_;
};

const registration added{[](suite& s) { add_fib<tbb_arena>(s, "tbb"); }};

}  // namespace
}  // namespace sluice::bench
