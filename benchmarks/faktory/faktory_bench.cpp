// ./bench faktory: the real binary for Faktory's clients, on a fresh store with sync=full, one
// command at a time on each connection. There is no Debian package of Faktory itself.
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "benchmarks/faktory/faktory_dialect.hpp"
#include "benchmarks/harness.hpp"
#include "benchmarks/percentiles.hpp"
#include "benchmarks/server/server_process.hpp"
#include "benchmarks/wire/load.hpp"
#include "benchmarks/wire/server_cpu.hpp"
#include "sluice/base/testing/temporary_folder.hpp"

using namespace sluice::bench;

namespace {

constexpr std::size_t bulk = 100;

// A percentile: its name, and the share of latencies below it.
struct latency_share {
  std::string name;
  double share;
};
const std::vector<latency_share> percentiles = {
    {"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}, {"p99.9", 0.999}};

class faktory_server {
 public:
  std::uint16_t port() const { return runs_.port("faktory"); }
  double cpu_us() const { return runs_.cpu_us(); }

 private:
  sluice::testing::temporary_folder folder_{sluice::testing::program_folder()};
  server_process runs_{folder_.path(), {"--faktory", "127.0.0.1:0"}};
};

struct measured {
  tally done;
  double cpu_us_a_job;
};

// Runs `plan` on a fresh server. A plan without producers finds its jobs already stored.
measured run_on_fresh_server(const dialect& protocol, const load_plan& plan) {
  const faktory_server server;
  if (plan.producers == 0) {
    run_load(server.port(), faktory_dialect(bulk), {.workers = 0, .jobs = plan.jobs});
  }
  const double cpu_before = server.cpu_us();
  const tally done = run_load(server.port(), protocol, plan);
  return {done, (server.cpu_us() - cpu_before) / static_cast<double>(done.operations)};
}

struct throughput {
  std::string workload;
  std::size_t jobs_a_put;
  load_plan plan;
};

measure jobs_per_second(const throughput& variant) {
  auto size = std::make_shared<run_size>();
  return [variant, size](const settings& s) {
    load_plan plan = variant.plan;
    plan.jobs = size->jobs(s, faktory_dialect(bulk));
    const measured m = run_on_fresh_server(faktory_dialect(variant.jobs_a_put), plan);
    size->learn(m.done);
    note_server_cpu(variant.workload, "sluice", m.cpu_us_a_job);
    return static_cast<double>(m.done.operations) / m.done.took.count();
  };
}

measure cpu_us_per_job(std::size_t jobs_a_put) {
  return [jobs_a_put](const settings& s) {
    const load_plan plan{.jobs = s.quick ? 400u : 20'000u};
    return run_on_fresh_server(faktory_dialect(jobs_a_put), plan).cpu_us_a_job;
  };
}

percentile_runs at_a_steady_rate(std::vector<double> latencies::*which) {
  return percentile_runs([which](const settings& s) {
    const faktory_server server;
    const load_plan plan{.jobs = s.quick ? 200u : 5000u};
    return run_paced(server.port(), faktory_dialect(), plan, 1000).*which;
  });
}

void add_throughputs(suite& s) {
  for (const std::size_t connections : {1u, 8u, 64u}) {
    const std::string on = "-c" + std::to_string(connections);
    const load_plan puts{.producers = connections, .workers = 0};
    const load_plan work{.producers = 0, .workers = connections};
    const load_plan both{.producers = connections, .workers = connections};
    for (const throughput& variant : {throughput{"push" + on, 1, puts},
                                      {"pushb" + on, bulk, puts},
                                      {"fetch-ack" + on, 1, work},
                                      {"e2e" + on, 1, both}}) {
      s.add(variant.workload, "sluice", jobs_per_second(variant));
    }
  }
}

void declare_throughputs(suite& s, const std::string& name, const std::string& summary) {
  for (const char* connections : {"1", "8", "64"}) {
    s.declare({.name = name + "-c" + connections,
               .summary = summary + ", connections: " + connections,
               .unit = "jobs/s",
               .repetitions_max = 5});
  }
}

}  // namespace

int main(int argc, char** argv) {
  suite s("faktory");
  declare_throughputs(s, "push", "100-byte jobs, one a PUSH");
  declare_throughputs(s, "pushb", "100 jobs a PUSHB");
  declare_throughputs(s, "fetch-ack", "FETCH and ACK of jobs already in the queue");
  declare_throughputs(s, "e2e", "PUSH, and FETCH and ACK on the same number of others");
  const auto declare = [&](const std::string& name, const char* summary, unsigned repetitions_max) {
    s.declare({.name = name,
               .summary = summary,
               .unit = "us",
               .direction = better::lower,
               .repetitions_max = repetitions_max});
  };
  const char* to_answer = "from PUSH to its answer, 1,000 jobs/s for 5 s";
  const char* to_start = "from PUSH to start, 1,000 jobs/s for 5 s, 8 workers waiting";
  for (const auto& p : percentiles) declare("latency-push-" + p.name, to_answer, 3);
  for (const auto& p : percentiles) declare("latency-start-" + p.name, to_start, 3);
  declare("cpu_us_per_job", "CPU of the server for a whole life cycle, 8 connections each way", 5);

  add_throughputs(s);
  const percentile_runs answers = at_a_steady_rate(&latencies::to_answer_us);
  const percentile_runs starts = at_a_steady_rate(&latencies::to_start_us);
  for (const auto& p : percentiles) s.add("latency-push-" + p.name, "sluice", answers.at(p.share));
  for (const auto& p : percentiles) s.add("latency-start-" + p.name, "sluice", starts.at(p.share));
  s.add("cpu_us_per_job", "sluice", cpu_us_per_job(1));
  s.add("cpu_us_per_job", "sluice_pushb", cpu_us_per_job(bulk));
  const int code = s.run(argc, argv);
  print_server_cpu(std::cout);
  return code;
}
