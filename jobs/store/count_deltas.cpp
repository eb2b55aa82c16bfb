#include "jobs/store/count_deltas.hpp"

#include "sluice/base/check.hpp"

namespace sluice::jobs {
namespace {

constexpr const char* count_deltas_object = "sluice::jobs::count_deltas";

std::uint64_t plus(std::uint64_t count, std::int64_t delta) {
  const auto sum = static_cast<std::int64_t>(count) + delta;
  check(sum >= 0, count_deltas_object, "a count of at least zero");
  return static_cast<std::uint64_t>(sum);
}

}  // namespace

void count_deltas::add(const change& c) {
  switch (c.type) {
    case change::op::add:
      return enter(c.queue, c.job->state, weight_of(c.job->spec));
    case change::op::move:
      leave(c.queue, c.from, c.weight);
      return enter(c.queue, c.new_state, c.weight);
    case change::op::drop:
      return leave(c.queue, c.from, c.weight);
    default:
      return;
  }
}

void count_deltas::clear() noexcept {
  deltas_.clear();
  index_.clear();
  last_ = 0;
}

count_deltas::delta& count_deltas::of(queue_number queue) {
  if (last_ < deltas_.size() && deltas_[last_].queue == queue) return deltas_[last_];
  const auto [at, is_new] = index_.try_emplace(queue, deltas_.size());
  if (is_new) deltas_.push_back({.queue = queue});
  last_ = at->second;
  return deltas_[last_];
}

void count_deltas::enter(queue_number queue, job_state state, std::uint64_t weight) {
  check(state != job_state::running, count_deltas_object, "a stored state, not running");
  delta& d = of(queue);
  ++d.jobs[static_cast<std::size_t>(state)];
  if (!has_ended(state)) d.bytes += static_cast<std::int64_t>(weight);
}

void count_deltas::leave(queue_number queue, job_state state, std::uint64_t weight) {
  check(state != job_state::running, count_deltas_object, "a stored state, not running");
  delta& d = of(queue);
  --d.jobs[static_cast<std::size_t>(state)];
  if (!has_ended(state)) d.bytes -= static_cast<std::int64_t>(weight);
}

void apply(const count_deltas::delta& d, queue_counts& counts) {
  for (std::size_t s = 0; s < d.jobs.size(); ++s) {
    if (d.jobs[s] == 0) continue;
    std::uint64_t& count = counts.of(static_cast<job_state>(s));
    count = plus(count, d.jobs[s]);
  }
  counts.bytes = plus(counts.bytes, d.bytes);
}

}  // namespace sluice::jobs
