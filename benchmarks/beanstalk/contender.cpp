#include "benchmarks/beanstalk/contender.hpp"

#include "benchmarks/percentiles.hpp"
#include "benchmarks/wire/crowd.hpp"
#include "benchmarks/wire/load.hpp"
#include "benchmarks/wire/server_cpu.hpp"
#include "sluice/base/testing/temporary_folder.hpp"

namespace sluice::bench {
namespace {

struct throughput {
  std::string workload;
  durability kept;
  load_plan plan;
};

// Every server is measured warm: in its first second the log still grows to its usual length, which
// makes each commit slower.
void warm_up(const queue_server& server, const queue_contender& c, load_plan plan,
             const settings& s) {
  plan.jobs = s.quick ? 128 : 6400;
  (void)run_load(server.port(), *c.protocol, plan);
}

measure jobs_per_second(const queue_contender& c, const throughput& variant) {
  auto size = std::make_shared<run_size>();
  return [c, variant, size](const settings& s) {
    load_plan plan = variant.plan;
    plan.jobs = size->jobs(s, *c.protocol);
    const testing::temporary_folder folder(testing::program_folder());
    const auto server = c.start(folder.path(), variant.kept);
    warm_up(*server, c, plan, s);
    const double cpu_before = server->cpu_us();
    const tally done = run_load(server->port(), *c.protocol, plan);
    size->learn(done);
    const auto jobs = static_cast<double>(done.operations);
    note_server_cpu(variant.workload, c.who, (server->cpu_us() - cpu_before) / jobs);
    return jobs / done.took.count();
  };
}

std::vector<double> idle_to_start(const queue_contender& c, const settings& s) {
  const testing::temporary_folder folder(testing::program_folder());
  const auto server = c.start(folder.path(), durability::durable);
  warm_up(*server, c, {.depth = 1}, s);
  const load_plan plan{.jobs = s.quick ? 200u : 5000u};
  return run_paced(server->port(), *c.protocol, plan, 1000).to_start_us;
}

}  // namespace

peer_server::peer_server(const std::vector<std::string>& command,
                         const std::filesystem::path& folder, std::uint16_t port)
    : port_(port), runs_(command, folder / "server.log", daemon_process::end::by_any_way, [port] {
        return is_listening(port);
      }) {}

void add_contender(suite& s, const queue_contender& c) {
  using enum durability;
  const load_plan d1{.depth = 1};
  const load_plan d64{.depth = 64};
  const load_plan puts{.producers = 1, .workers = 0, .depth = 64};
  for (const throughput& variant : {throughput{"e2e-d1-durable", durable, d1},
                                    {"e2e-d64-durable", durable, d64},
                                    {"e2e-d1-relaxed", relaxed, d1},
                                    {"e2e-d64-relaxed", relaxed, d64},
                                    {"put-d64-durable", durable, puts},
                                    {"put-d64-relaxed", relaxed, puts}}) {
    s.add(variant.workload, c.who, jobs_per_second(c, variant));
  }
  const percentile_runs latency([c](const settings& run) { return idle_to_start(c, run); });
  s.add("latency-p50-durable", c.who, latency.at(0.5));
  s.add("latency-p99-durable", c.who, latency.at(0.99));
}

}  // namespace sluice::bench
