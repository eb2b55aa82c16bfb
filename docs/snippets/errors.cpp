// The snippets of docs/concepts/errors.md.
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

#include "sluice/executor/thread_pool.hpp"
#include "sluice/future/async.hpp"

namespace {

bool the_error_of_a_dropped_future() {
  std::vector<std::string> failures;
  const auto note = [&](std::exception_ptr error) {
    try {
      std::rethrow_exception(error);
    } catch (const std::exception& e) {
      failures.push_back(e.what());
    }
  };
  {
    sluice::thread_pool pool({.core = 1, .on_error = note});
    (void)sluice::async(pool, [] { throw std::runtime_error("no paper"); });
  }
  // failures: no paper
  return failures == std::vector<std::string>{"no paper"};
}

}  // namespace

int main() {
  if (the_error_of_a_dropped_future()) return 0;
  std::puts("a snippet of the document failed");
  return 1;
}
