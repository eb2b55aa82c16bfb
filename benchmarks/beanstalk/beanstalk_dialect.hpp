#pragma once

// The beanstalk protocol, as far as a load needs it: the default tube, put, reserve and delete.
//
// A worker asks for a job at a time, in commands that follow each other: a reserve that waits holds
// up what is behind it on its connection, as the protocol says. So no more jobs are asked for than
// are put.

#include "benchmarks/wire/dialect.hpp"

namespace sluice::bench {

class beanstalk_dialect final : public dialect {
 public:
  std::unique_ptr<job_producer> producer() const override;
  std::unique_ptr<job_worker> worker(std::size_t depth) const override;
};

}  // namespace sluice::bench
