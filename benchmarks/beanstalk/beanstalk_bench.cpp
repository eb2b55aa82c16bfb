// ./bench beanstalk: sluice in beanstalkd's place. One load program drives sluice, beanstalkd and
// Redis Streams over loopback TCP, in turns. Each server is warm when it is measured.
#include <iostream>
#include <utility>
#include <vector>

#include "benchmarks/harness.hpp"
#include "benchmarks/wire/server_cpu.hpp"

using namespace sluice::bench;

int main(int argc, char** argv) {
  suite s("beanstalk");
  const auto declare = [&](const char* name, const char* summary, std::vector<bar> bars) {
    s.declare({.name = name,
               .summary = summary,
               .unit = "jobs/s",
               .bars = std::move(bars),
               .repetitions_max = 5});
  };
  declare("e2e-d1-durable", "8 producers, 8 workers, 100-byte jobs, one command at a time, durable",
          {at_least(4, "beanstalkd"), at_least(1, "redis_streams")});
  declare("e2e-d64-durable", "the same with 64 unanswered commands on each connection",
          {at_least(20, "beanstalkd"), at_least(1, "redis_streams")});
  declare("e2e-d1-relaxed", "one command at a time; synced periodically, beanstalkd: never", {});
  declare("e2e-d64-relaxed", "the same with 64 unanswered commands on each connection",
          {at_least(1.5, "beanstalkd")});
  declare("put-d64-durable", "puts alone, one connection, 64 unanswered, durable", {});
  declare("put-d64-relaxed", "the same, synced periodically, beanstalkd: never", {});
  for (const char* name : {"latency-p50-durable", "latency-p99-durable"}) {
    s.declare({.name = name,
               .summary = "from put to start, 1,000 jobs/s for 5 s, 8 workers waiting, durable",
               .unit = "us",
               .direction = better::lower,
               .bars = {at_most(1, "beanstalkd")},
               .repetitions_max = 3});
  }
  declare("load-ceiling-d1", "the load program alone, answered at once", {});
  declare("load-ceiling-d64", "the same with 64 unanswered commands on each connection", {});
  const int code = s.run(argc, argv);
  print_server_cpu(std::cout);
  return code;
}
