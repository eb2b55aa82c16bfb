#pragma once

// Sums the changes of a transaction to the counts of its queues, so that a store writes each queue
// once, independent of the number of changed jobs.
//
// Guarantees: plain value, one thread. `running` is not a stored state: passing it is a broken
// contract. Bytes count unfinished jobs only: a move that ends a job subtracts its weight, a move
// that revives it adds it again.
// Cost: one small allocation for each queue of the transaction; a change of the same queue as the
// previous change costs one comparison.
//
//     count_deltas deltas;
//     for (const change& c : transaction.changes) deltas.add(c);
//     for (const auto& d : deltas.touched()) write(d.queue, d.jobs_of(job_state::ready), d.bytes);

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "jobs/model/queue.hpp"
#include "jobs/store/store.hpp"

namespace sluice::jobs {

class count_deltas {
 public:
  struct delta {
    queue_number queue = 0;
    std::array<std::int64_t, 8> jobs{};  // by the number of the state
    std::int64_t bytes = 0;

    std::int64_t jobs_of(job_state s) const noexcept { return jobs[static_cast<std::size_t>(s)]; }
  };

  // Counts a successful add, a move or a drop; ignores other changes.
  void add(const change& c);
  // A job of this weight enters or leaves this state.
  void enter(queue_number queue, job_state state, std::uint64_t weight);
  void leave(queue_number queue, job_state state, std::uint64_t weight);

  // One delta per changed queue, in the order of the first change.
  std::span<const delta> touched() const noexcept { return deltas_; }
  void clear() noexcept;

 private:
  delta& of(queue_number queue);

  std::vector<delta> deltas_;
  std::unordered_map<queue_number, std::size_t> index_;
  std::size_t last_ = 0;  // index into deltas_ of the last change: runs of one queue are common
};

// Adds a delta to the counts. A count below zero is a broken contract.
void apply(const count_deltas::delta& delta, queue_counts& counts);

}  // namespace sluice::jobs
