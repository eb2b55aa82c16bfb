#include "jobs/model/queue.hpp"

#include <string>
#include <utility>

#include "sluice/base/check.hpp"

namespace sluice::jobs {

namespace {

constexpr double rate_max = 1e6;
constexpr std::uint32_t burst_max = 10'000'000;
constexpr std::uint32_t concurrency_max = 1'000'000;
constexpr std::uint32_t weight_max = 1000;

bool is_rate(double rate) {
  return rate >= 0 && rate <= rate_max;  // false for NaN
}

void_result validate_limits(const queue_options& o) {
  if (!is_rate(o.rate)) return invalid_error("rate must be from 0 (no limit) to 1000000 a second");
  if (!is_rate(o.key_rate))
    return invalid_error("key_rate must be from 0 (no limit) to 1000000 a second");
  if (o.rate_burst > burst_max) return invalid_error("rate_burst must be from 0 to 10000000");
  if (o.key_burst > burst_max) return invalid_error("key_burst must be from 0 to 10000000");
  if (o.concurrency > concurrency_max)
    return invalid_error("concurrency must be from 0 to 1000000");
  if (o.key_concurrency < 1 || o.key_concurrency > concurrency_max) {
    return invalid_error("key_concurrency must be from 1 to 1000000");
  }
  if (o.weight < 1 || o.weight > weight_max) return invalid_error("weight must be from 1 to 1000");
  if (o.deliver.url.size() > limits::url_bytes_max) {
    return invalid_error("deliver.url is longer than 2048 bytes");
  }
  if (o.deliver.concurrency < 1 || o.deliver.concurrency > 10'000) {
    return invalid_error("deliver.concurrency must be from 1 to 10000");
  }
  if (o.deliver.timeout < milliseconds(1) || o.deliver.timeout > limits::duration_max) {
    return invalid_error("deliver.timeout must be from 1 ms to 10 years");
  }
  return done{};
}

}  // namespace

void_result validate(const queue_options& o) {
  constexpr milliseconds longest = limits::duration_max;
  if (o.capacity_jobs == 0) return invalid_error("capacity_jobs must be at least 1");
  if (o.capacity_bytes == 0) return invalid_error("capacity_bytes must be at least 1");
  if (o.when_full == overflow::caller_runs) {
    return invalid_error("when_full must be block, reject, drop_newest, drop_oldest or latest");
  }
  if (o.lease_for < milliseconds(1) || o.lease_for > longest) {
    return invalid_error("lease_for must be from 1 ms to 10 years");
  }
  for (const milliseconds kept : {o.keep_done, o.keep_results, o.keep_dead}) {
    if (kept < milliseconds(0) || kept > longest) {
      return invalid_error("keep_done, keep_results and keep_dead must be from 0 to 10 years");
    }
  }
  return validate_limits(o);
}

std::uint64_t& queue_counts::of(job_state state) noexcept {
  switch (state) {
    case job_state::scheduled:
      return scheduled;
    case job_state::held:
      return held;
    case job_state::ready:
      return ready;
    case job_state::running:
      return running;
    case job_state::retrying:
      return retrying;
    case job_state::done:
      return done;
    case job_state::dead:
      return dead;
    case job_state::cancelled:
      return cancelled;
  }
  check(false, "sluice::jobs::queue_counts", "a state that exists");
  return ready;
}

std::uint64_t queue_counts::of(job_state state) const noexcept {
  return const_cast<queue_counts*>(this)->of(state);
}

}  // namespace sluice::jobs
