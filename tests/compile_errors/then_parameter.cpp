// The function of `then` takes the future's value, or nothing.
#include <string>

#include "sluice/future/promise.hpp"

sluice::future<int> length(sluice::future<std::string> line) {
#ifndef MISTAKE
  return std::move(line).then([](const std::string& s) { return static_cast<int>(s.size()); });
#else
  return std::move(line).then([](int n) { return n; });
#endif
}
