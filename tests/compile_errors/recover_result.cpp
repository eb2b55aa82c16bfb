// The function of `recover` gives a value of the future's type, or a future of it.
#include <exception>
#include <string>
#include <utility>

#include "sluice/future/promise.hpp"

sluice::future<std::string> greeting(sluice::future<std::string> line) {
#ifndef MISTAKE
  return line.recover([](std::exception_ptr) { return "nobody"; });
#else
  return line.recover([](std::exception_ptr) { return 7.5; });
#endif
}

sluice::future<int> number(sluice::future<int> from) {
#ifndef MISTAKE
  return from.recover([](const std::string&) { return sluice::make_ready_future(1); });
#else
  return from.recover([](const std::string&) { return sluice::make_ready_future(1L); });
#endif
}
