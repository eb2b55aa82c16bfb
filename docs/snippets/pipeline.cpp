// The snippets of docs/reference/pipeline.md.
#include <chrono>
#include <cstdio>
#include <exception>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "sluice/executor/thread_pool.hpp"
#include "sluice/flow/pipeline.hpp"
#include "sluice/future/task.hpp"
#include "sluice/future/timers.hpp"

using namespace std::chrono_literals;
using sluice::pipeline;

namespace {

int parse(const std::string& line) {
  return std::stoi(line);
}

sluice::task<int> look_up(int n) {
  (void)co_await sluice::sleep_for(1ms);  // holds no thread
  const int square = n * n;
  co_return square;
}

std::vector<int> twice(int n) {
  return {n, n};
}

bool a_line_of_three() {
  sluice::thread_pool pool({.core = 2});
  std::vector<int> results;
  auto line = pipeline<std::string>::on(pool)
                  .stage("parse", parse)
                  .stage("look up", look_up, {.parallelism = 8, .ordered = true})
                  .sink("keep", [&](int n) { results.push_back(n); });
  for (const char* text : {"1", "2", "3"}) {
    if (!line.push(text)) return false;  // waits while the line is full
  }
  line.drain();
  return results == std::vector{1, 4, 9};
}

bool from_a_function() {
  sluice::thread_pool pool({.core = 1});
  int next = 0;
  int sum = 0;
  auto line = pipeline<>::from(pool, "count",
                               [&] { return next < 10 ? std::optional(next++) : std::nullopt; })
                  .filter("odd", [](int n) { return n % 2 == 1; })
                  .flat_map("twice", twice)
                  .sink("add", [&](int n) { sum += n; });
  line.join();
  return sum == 50;
}

bool an_error_names_its_stage() {
  sluice::thread_pool pool({.core = 1});
  auto line = pipeline<std::string>::on(pool).stage("parse", parse).sink("keep", [](int) {});
  (void)line.push("not a number");
  try {
    line.drain();
  } catch (const sluice::pipeline_error& e) {
    std::printf("%s\n", e.what());  // sluice: stage 'parse' threw: stoi
    return e.stage() == "parse";
  }
  return false;
}

bool until_a_deadline() {
  sluice::thread_pool pool({.core = 1});
  auto line = pipeline<int>::on(pool).stage("look up", look_up).sink("keep", [](int) {});
  for (int i = 0; i < 3; ++i) (void)line.push(i);
  const std::size_t left = line.shutdown(1min);
  return left == 0;
}

}  // namespace

int main() {
  const bool all =
      a_line_of_three() && from_a_function() && an_error_names_its_stage() && until_a_deadline();
  std::puts(all ? "ok" : "failed");
  return all ? 0 : 1;
}
