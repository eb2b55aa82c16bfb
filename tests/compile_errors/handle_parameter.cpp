// The function of `handle` takes the value or the error, as a settled<T>.
#include "sluice/future/promise.hpp"

sluice::future<int> number(sluice::future<int> from) {
#ifndef MISTAKE
  return std::move(from).handle([](sluice::settled<int> s) { return s.has_value() ? 1 : 0; });
#else
  return std::move(from).handle([](int n) { return n; });
#endif
}
