#pragma once

// The commands of Faktory's work protocol that the load uses: PUSH or PUSHB, FETCH and ACK on one
// queue.

#include "benchmarks/wire/dialect.hpp"

namespace sluice::bench {

class faktory_dialect final : public dialect {
 public:
  // Puts are PUSH for one job, and PUSHB for more.
  explicit faktory_dialect(std::size_t jobs_a_put = 1) : jobs_a_put_(jobs_a_put) {}

  opening producer_opening() const override;
  opening worker_opening() const override;
  std::size_t jobs_a_put() const override { return jobs_a_put_; }
  std::unique_ptr<job_producer> producer() const override;
  std::unique_ptr<job_worker> worker(std::size_t depth) const override;

 private:
  std::size_t jobs_a_put_;
};

}  // namespace sluice::bench
