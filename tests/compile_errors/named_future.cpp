// A future that has a name is used up only where the call says so: std::move(f).then(...).
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
