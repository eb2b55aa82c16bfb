#include "jobs/protocol/beanstalk/detail/reserved_jobs.hpp"

#include <algorithm>
#include <limits>

#include "sluice/base/check.hpp"

namespace sluice::jobs::beanstalk {

reserved_job* reserved_jobs::find(job_id id) noexcept {
  if (size_ == 0 || id == 0) return nullptr;
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t at = place_of(id); slots_[at].lease.job != 0; at = (at + 1) & mask) {
    if (slots_[at].lease.job == id) return &slots_[at];
  }
  return nullptr;
}

bool reserved_jobs::insert(reserved_job job) {
  check(job.lease.job != 0, "sluice::jobs::beanstalk::reserved_jobs", "a job with a number");
  if (reserved_job* const same = find(job.lease.job)) {
    *same = std::move(job);
    return false;
  }
  if ((size_ + 1) * 2 > slots_.size()) grow();
  const std::size_t mask = slots_.size() - 1;
  std::size_t at = place_of(job.lease.job);
  while (slots_[at].lease.job != 0) at = (at + 1) & mask;
  slots_[at] = std::move(job);
  ++size_;
  return true;
}

void reserved_jobs::grow() {
  const std::size_t wanted = std::max<std::size_t>(16, slots_.size() * 2);
  std::vector<reserved_job> old = std::exchange(slots_, std::vector<reserved_job>(wanted));
  shift_ = 64;
  for (std::size_t n = wanted; n > 1; n /= 2) --shift_;
  size_ = 0;
  for (reserved_job& each : old) {
    if (each.lease.job != 0) (void)insert(std::move(each));
  }
}

void reserved_jobs::erase(reserved_job* entry) noexcept {
  const std::size_t mask = slots_.size() - 1;
  auto hole = static_cast<std::size_t>(entry - slots_.data());
  // Move up the entries behind it that would no longer be found.
  for (std::size_t at = (hole + 1) & mask; slots_[at].lease.job != 0; at = (at + 1) & mask) {
    const std::size_t home = place_of(slots_[at].lease.job);
    if (((at - home) & mask) < ((at - hole) & mask)) continue;
    slots_[hole] = std::move(slots_[at]);
    hole = at;
  }
  slots_[hole] = {};
  --size_;
}

std::vector<reserved_job> reserved_jobs::take_all() {
  std::vector<reserved_job> all;
  all.reserve(size_);
  for (reserved_job& each : slots_) {
    if (each.lease.job != 0) all.push_back(std::move(each));
  }
  slots_.clear();
  size_ = 0;
  return all;
}

unix_time reserved_jobs::forget_ended(unix_time now) {
  unix_time first{std::numeric_limits<std::int64_t>::max()};
  for (std::size_t at = 0; size_ > 0 && at < slots_.size();) {
    reserved_job& here = slots_[at];
    if (here.lease.job != 0 && here.until <= now) {
      // Check this place again: erase may have moved another entry here.
      erase(&here);
      continue;
    }
    if (here.lease.job != 0) first = std::min(first, here.until);
    ++at;
  }
  return first;
}

}  // namespace sluice::jobs::beanstalk
