// ./bench server: the real binary over HTTP, on a fresh store with sync=full, keep-alive
// connections from one client thread.
#include <string>
#include <vector>

#include "benchmarks/harness.hpp"
#include "benchmarks/percentiles.hpp"
#include "benchmarks/server/server_process.hpp"
#include "benchmarks/server/workloads.hpp"
#include "sluice/base/testing/temporary_folder.hpp"

using namespace sluice::bench;

namespace {

constexpr std::size_t bulk = 100;

// Disk commits come in bursts, so a run is longer than the harness's default.
seconds run_time(const settings& s) {
  return s.quick ? seconds(0.2) : seconds(2);
}

served on_fresh_server(const settings& s, std::size_t jobs_a_request,
                       served (*run)(server_process&, seconds, std::size_t)) {
  const sluice::testing::temporary_folder folder(sluice::testing::program_folder());
  server_process server(folder.path());
  return run(server, run_time(s), jobs_a_request);
}

measure jobs_per_second(std::size_t jobs_a_request,
                        served (*run)(server_process&, seconds, std::size_t)) {
  return [=](const settings& s) {
    const served done = on_fresh_server(s, jobs_a_request, run);
    return static_cast<double>(done.jobs) / done.took.count();
  };
}

measure cpu_us_per_job(std::size_t jobs_a_request) {
  return [=](const settings& s) {
    const served done = on_fresh_server(s, jobs_a_request, work_for);
    return done.server_cpu_us / static_cast<double>(done.jobs);
  };
}

std::vector<double> latencies_of_jobs(const settings& s) {
  const sluice::testing::temporary_folder folder(sluice::testing::program_folder());
  server_process server(folder.path());
  return latencies_at(server, 1000, s.quick ? seconds(0.5) : seconds(10));
}

}  // namespace

int main(int argc, char** argv) {
  suite s("server");
  const percentile_runs latency(latencies_of_jobs);
  const auto declare = [&](const char* name, const char* summary, const char* unit,
                           better direction, unsigned repetitions_max) {
    s.declare({.name = name,
               .summary = summary,
               .unit = unit,
               .direction = direction,
               .repetitions_max = repetitions_max});
  };
  declare("push", "8 connections, one 100-byte job a request", "jobs/s", better::higher, 5);
  declare("push_bulk", "8 connections, 100 jobs a request", "jobs/s", better::higher, 5);
  declare("e2e", "8 connections push, 8 lease and ack, one job a request", "jobs/s", better::higher,
          5);
  declare("e2e_bulk", "8 connections push, 8 lease and ack, 100 jobs a request", "jobs/s",
          better::higher, 5);
  const char* at_rate = "from push to start, 1,000 jobs/s for 10 s, 8 workers waiting";
  declare("latency-p50", at_rate, "us", better::lower, 3);
  declare("latency-p99", at_rate, "us", better::lower, 3);
  declare("latency-p99.9", at_rate, "us", better::lower, 3);
  declare("cpu_us_per_job", "CPU of the server for a whole life cycle, as in e2e and e2e_bulk",
          "us", better::lower, 5);

  s.add("push", "sluice", jobs_per_second(1, push_for));
  s.add("push_bulk", "sluice", jobs_per_second(bulk, push_for));
  s.add("e2e", "sluice", jobs_per_second(1, work_for));
  s.add("e2e_bulk", "sluice", jobs_per_second(bulk, work_for));
  s.add("latency-p50", "sluice", latency.at(0.5));
  s.add("latency-p99", "sluice", latency.at(0.99));
  s.add("latency-p99.9", "sluice", latency.at(0.999));
  s.add("cpu_us_per_job", "sluice", cpu_us_per_job(1));
  s.add("cpu_us_per_job", "sluice_bulk", cpu_us_per_job(bulk));
  return s.run(argc, argv);
}
