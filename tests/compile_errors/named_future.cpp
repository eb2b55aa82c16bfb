// A named future is consumed only by an explicit move: std::move(f).then(...).
#include <utility>

#include "sluice/future/future.hpp"

sluice::future<int> next(sluice::future<int> count) {
#ifndef MISTAKE
  return std::move(count).then([](int n) { return n + 1; });
#else
  count.then([](int n) { return n + 1; });
  return count;
#endif
}
