#pragma once

// The commands of the beanstalk protocol that the load uses: put, reserve and delete, in the
// default tube.
//
// A worker pipelines reserves of one job each. By the protocol a waiting reserve delays the
// commands behind it on its connection, so workers never reserve more jobs than are put.

#include "benchmarks/wire/dialect.hpp"

namespace sluice::bench {

class beanstalk_dialect final : public dialect {
 public:
  std::unique_ptr<job_producer> producer() const override;
  std::unique_ptr<job_worker> worker(std::size_t depth) const override;
};

}  // namespace sluice::bench
