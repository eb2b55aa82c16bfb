// The function of `recover` returns a value of the future's type, or a future of it.
#include <exception>
#include <string>
#include <utility>

#include "sluice/future/promise.hpp"

sluice::future<std::string> greeting(sluice::future<std::string> line) {
#ifndef MISTAKE
  return std::move(line).recover([](std::exception_ptr) { return "nobody"; });
#else
  return std::move(line).recover([](std::exception_ptr) { return 7.5; });
#endif
}

sluice::future<int> number(sluice::future<int> from) {
#ifndef MISTAKE
  return std::move(from).recover([](const std::string&) { return sluice::make_ready_future(1); });
#else
  return std::move(from).recover([](const std::string&) { return sluice::make_ready_future(1L); });
#endif
}
