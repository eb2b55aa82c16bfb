// A program of another project: three producers, two workers, a graceful end.
#include <cstdio>
#include <thread>
#include <vector>

#include "sluice/queue/bounded_queue.hpp"

int main() {
  constexpr long per_producer = 1000;
  sluice::bounded_queue<long> queue(16);
  long sums[2] = {};

  {
    std::vector<std::jthread> workers;
    for (long& sum : sums) {
      workers.emplace_back([&queue, &sum] {
        while (auto item = queue.pop()) sum += *item;
      });
    }
    {
      std::vector<std::jthread> producers;
      for (int p = 0; p < 3; ++p) {
        producers.emplace_back([&queue] {
          for (long i = 1; i <= per_producer; ++i) {
            if (!queue.push(i)) std::fputs("a push failed\n", stderr);
          }
        });
      }
    }
    queue.close();
  }

  const long expected = 3 * per_producer * (per_producer + 1) / 2;
  std::printf("sum %ld, expected %ld\n", sums[0] + sums[1], expected);
  return sums[0] + sums[1] == expected ? 0 : 1;
}
