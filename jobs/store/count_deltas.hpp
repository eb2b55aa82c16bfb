#pragma once

// What a batch does to the counts of the queues that it touches, summed up so that a store writes
// each queue once however many jobs went through it.
//
// Guarantees: plain value, one thread. A state is one that a store keeps: `running` is a broken
// contract. Bytes are those of jobs that have not ended, so a move that ends a job takes its weight
// away, and one that brings it back adds it again.
// Cost: one small allocation for each queue that a batch touches; a change of the same queue as the
// change before finds it by one comparison.
//
//     count_deltas deltas;
//     for (const change& c : batch.changes) deltas.add(c);
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

  // An add that was done, a move or a drop; other changes count for nothing.
  void add(const change& what);
  // A job of this weight is in this state from now on, or is not any more.
  void enter(queue_number queue, job_state state, std::uint64_t weight);
  void leave(queue_number queue, job_state state, std::uint64_t weight);

  // One for each queue that was touched, in the order of the first touch.
  std::span<const delta> touched() const noexcept { return deltas_; }
  void clear() noexcept;

 private:
  delta& of(queue_number queue);

  std::vector<delta> deltas_;
  std::unordered_map<queue_number, std::size_t> index_;
  std::size_t last_ = 0;  // into deltas_: a batch stays with one queue for long
};

// The counts after a delta. A count below zero is a broken contract.
void apply(const count_deltas::delta& delta, queue_counts& counts);

}  // namespace sluice::jobs
