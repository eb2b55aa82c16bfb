#pragma once

// The load program: the same for every server and every protocol (see dialect.hpp). One thread
// serves all connections, with as few reads and writes as the answers allow.
//
// Every job is accounted for: a run in which one is lost, doubled or invented ends the bench.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "benchmarks/harness.hpp"
#include "benchmarks/wire/dialect.hpp"

namespace sluice::bench {

struct load_plan {
  std::size_t producers = 8;  // connections; none: the jobs are there
  std::size_t workers = 8;    // connections; none: the jobs stay there
  std::size_t depth = 1;
  std::uint64_t jobs = 1000;
};

// From the first put until the last job is finished, or stored when there are no workers.
tally run_load(std::uint16_t port, const dialect& speaks, const load_plan& plan);

// How many jobs make a run of about a second and a half, whatever the server: as many as it did in
// that time before; a few at first.
class run_size {
 public:
  std::uint64_t jobs(const settings& s, const dialect& speaks) const;
  void learn(const tally& done);

 private:
  double jobs_per_second_ = 0;
};

// Jobs at a steady rate, put by the producers in turn without waiting for answers, to workers that
// wait: in microseconds, sorted, each from just before the put is sent.
struct latencies {
  std::vector<double> to_answer_us;  // until the producer has read that it is stored
  std::vector<double> to_start_us;   // until a worker has read the job
};
latencies run_paced(std::uint16_t port, const dialect& speaks, const load_plan& plan,
                    double jobs_per_second);

}  // namespace sluice::bench
