#pragma once

// The load program: the same for every server and every protocol (see dialect.hpp). One thread
// serves all connections, with as few reads and writes as the replies allow.
//
// Every job is accounted for: a run that loses, doubles or invents one ends the bench.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "benchmarks/harness.hpp"
#include "benchmarks/wire/dialect.hpp"

namespace sluice::bench {

struct load_plan {
  std::size_t producers = 8;  // connections; 0: the jobs are already stored
  std::size_t workers = 8;    // connections; 0: the jobs stay stored
  std::size_t depth = 1;
  std::uint64_t jobs = 1000;
};

// Measures from the first put until the last job is finished, or stored if there are no workers.
tally run_load(std::uint16_t port, const dialect& protocol, const load_plan& plan);

// Computes the number of jobs for a run of about a second and a half from the rate of the previous
// run; a few for the first run.
class run_size {
 public:
  std::uint64_t jobs(const settings& s, const dialect& protocol) const;
  void learn(const tally& done);

 private:
  double jobs_per_second_ = 0;
};

// Latencies of jobs put at a steady rate, by the producers in turn without waiting for replies, to
// waiting workers: in microseconds, sorted, each from just before the put is sent.
struct latencies {
  std::vector<double> to_answer_us;  // until the producer has read the reply
  std::vector<double> to_start_us;   // until a worker has read the job
};
latencies run_paced(std::uint16_t port, const dialect& protocol, const load_plan& plan,
                    double jobs_per_second);

}  // namespace sluice::bench
