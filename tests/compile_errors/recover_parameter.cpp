// The function of `recover` takes one exception, a std::exception_ptr, or nothing.
#include <string>

#include "sluice/future/promise.hpp"

sluice::future<int> number(sluice::future<int> from) {
#ifndef MISTAKE
  return std::move(from).recover([](const std::string&) { return 1; });
#else
  return std::move(from).recover([](const std::string&, int) { return 1; });
#endif
}
