// The snippets about select in README.md and docs/reference/queue.md.
#include <chrono>
#include <cstdio>
#include <string>

#include "sluice/channel/channel.hpp"
#include "sluice/channel/select.hpp"

using namespace std::chrono_literals;
using sluice::on_receive;
using sluice::on_send;
using sluice::outcome;
using sluice::status;

namespace {

bool the_first_that_is_ready() {
  sluice::channel<int> orders(8);
  sluice::channel<std::string> log(8);
  int sum = 0;
  int lines = 0;
  if (!orders.send(42)) return false;
  for (int turn = 0; turn < 100 && (sum == 0 || lines == 0); ++turn) {
    std::string line = "still here";
    auto order = on_receive(orders, [&](outcome<int> number) { sum += *number; });
    auto entry = on_send(log, line, [&](status) { ++lines; });
    const auto chosen = sluice::select(50ms, order, entry);
    if (!chosen) return false;  // neither was ready for 50 ms: nothing was taken or sent
    if (log.size() == log.capacity() && !log.receive()) return false;
  }
  return sum == 42 && lines > 0;
}

bool a_range() {
  sluice::channel<int> numbers(4);
  for (int i = 1; i <= 4; ++i) {
    if (!numbers.send(i)) return false;
  }
  numbers.close();
  int sum = 0;
  for (int n : numbers) sum += n;  // until it is closed and drained
  return sum == 10;
}

}  // namespace

int main() {
  const bool all = the_first_that_is_ready() && a_range();
  std::puts(all ? "ok" : "failed");
  return all ? 0 : 1;
}
