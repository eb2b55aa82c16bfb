// The snippets of docs/reference/work-stealing.md: fork and join, loops and sums, the end.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <numeric>
#include <vector>

#include "sluice/executor/parallel.hpp"

namespace {

std::int64_t fib(int n) {
  if (n < 2) return n;
  auto first = sluice::fork([n] { return fib(n - 1); });  // on the pool that runs this
  const std::int64_t second = fib(n - 2);
  return first.join() + second;
}

int failures = 0;
void expect(bool holds, const char* expected) {
  if (holds) return;
  std::fprintf(stderr, "docs/snippets/work_stealing: %s\n", expected);
  ++failures;
}

void forks() {
  sluice::work_stealing_pool pool({.threads = 4, .name = "compute"});
  const std::int64_t result = sluice::fork(pool, [] { return fib(20); }).join();
  expect(result == 6765, "fib(20)");
}

void loops() {
  sluice::work_stealing_pool pool({.threads = 2});
  std::vector<double> values(1000);
  std::iota(values.begin(), values.end(), 0.0);
  sluice::parallel_for(pool, values, [](double& v) { v = v * v; });

  const double sum = sluice::parallel_reduce(
      pool, values, 0.0, [](double v) { return v; }, std::plus<>());

  double largest = 0;
  double smallest = 0;
  sluice::parallel_invoke(
      pool, [&] { largest = *std::max_element(values.begin(), values.end()); },
      [&] { smallest = *std::min_element(values.begin(), values.end()); });
  expect(sum == 332833500.0, "the sum of the squares");
  expect(largest == 999.0 * 999.0 && smallest == 0.0, "the largest and the smallest");
}

void stops() {
  int left_over = 0;
  sluice::work_stealing_pool pool({.threads = 1});
  const auto accepted = pool.submit([&pool] {
    while (!pool.stop_token().stop_requested()) {
      // one step of something long
    }
  });
  std::vector<sluice::submission> unstarted = pool.stop();  // returns when it has ended
  expect(static_cast<bool>(accepted), "to be accepted");
  left_over = static_cast<int>(unstarted.size());
  expect(left_over <= 1, "the number of returned submissions");
}

}  // namespace

int main() {
  forks();
  loops();
  stops();
  return failures == 0 ? 0 : 1;
}
