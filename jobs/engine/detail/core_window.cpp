// The windows of the queues: the jobs in memory, which are the next to be leased.
#include <algorithm>
#include <utility>

#include "jobs/engine/detail/change_window.hpp"
#include "sluice/base/check.hpp"

namespace sluice::jobs::detail {

window::bounds core::window_bounds(const queue_state& q) const {
  // Every queue may use all free bytes. When none are free, each queue may use an equal share, so
  // that one deep queue does not evict the next jobs of the others.
  const std::uint64_t others = window_bytes_ - q.ready.bytes();
  const std::uint64_t left =
      options_.window_bytes_max > others ? options_.window_bytes_max - others : 0;
  const std::uint64_t share =
      options_.window_bytes_max / std::max<std::uint64_t>(1, queues_.size());
  return {options_.window_jobs_max, std::max(left, share)};
}

void core::publish(job_ptr job) {
  queue_state* const q = find_queue(job->spec.queue);
  check(q != nullptr, "sluice::jobs::core", "a queue for every job");
  const window::bounds bounds = window_bounds(*q);
  change_window(*q, [&](window& w) { w.publish(std::move(job), bounds); });
  touch(*q);
}

void core::unpublish(const job& j) {
  queue_state* const q = find_queue(j.spec.queue);
  check(q != nullptr, "sluice::jobs::core", "a queue for every job");
  change_window(*q, [&](window& w) { w.erase(position_of(j)); });
}

void core::publish_again(job_ptr job, answers& out) {
  publish(std::move(job));
  settle(out);
}

void core::read_again(const job& j, answers& out) {
  queue_state* const q = find_queue(j.spec.queue);
  check(q != nullptr, "sluice::jobs::core", "a queue for every job");
  change_window(*q, [&](window& w) { w.drop_from(position_of(j)); });
  touch(*q);
  settle(out);
}

void core::want_refill(queue_state& q) {
  const bool is_low = q.ready.size() <= options_.window_jobs_max / 4;
  if (!q.ready.is_cut() || !is_low || q.wants_refill || q.is_unreadable) return;
  // While memory is short, a window is only refilled when it is empty.
  if (!q.ready.empty() && window_bytes_ >= options_.window_bytes_max) return;
  q.wants_refill = true;
  refills_.push_back(&q);
}

std::vector<queue_state*> core::take_refills() {
  return std::exchange(refills_, {});
}

void core::not_refilled(queue_state& q, bool has_failed) {
  q.wants_refill = false;
  q.is_unreadable = has_failed;
  touch(q);
}

void core::refilled(queue_state& q, const position& after, std::vector<job_ptr> jobs,
                    bool was_all) {
  q.wants_refill = false;
  touch(q);
  // A returned job has evicted others meanwhile: there would be a gap between the horizon and this
  // page.
  if (!(q.ready.horizon() == after)) return want_refill(q);
  std::optional<position> last;
  if (!jobs.empty()) last = position_of(*jobs.back());
  std::erase_if(jobs, [&](const job_ptr& job) {
    return leases_.contains(job->id) || busy_.contains(job->id);
  });
  const bool found_none = jobs.empty();
  change_window(q, [&](window& w) { w.extend(std::move(jobs), last, was_all); });
  if (found_none) want_refill(q);
}

}  // namespace sluice::jobs::detail
