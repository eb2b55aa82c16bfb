#include "jobs/net/body_budget.hpp"

#include <algorithm>
#include <mutex>
#include <utility>

namespace sluice::jobs::net {

bool body_budget::take(share& s, std::uint64_t bytes, std::function<void()> wake) {
  const std::lock_guard hold(guard_);
  s.bytes_ = bytes;
  s.granted_ = waiting_.empty() && fits(bytes);
  if (s.granted_) {
    used_ += bytes;
    return true;
  }
  s.wake_ = std::move(wake);
  waiting_.push_back(&s);
  return false;
}

bool body_budget::has(const share& s) const {
  const std::lock_guard hold(guard_);
  return s.granted_;
}

bool body_budget::is_wanted() const {
  const std::lock_guard hold(guard_);
  return !waiting_.empty();
}

void body_budget::give_back(share& s) {
  const std::lock_guard hold(guard_);
  if (std::exchange(s.granted_, false)) {
    used_ -= s.bytes_;
  } else {
    std::erase(waiting_, &s);
  }
  while (!waiting_.empty() && fits(waiting_.front()->bytes_)) {
    share& next = *waiting_.front();
    waiting_.pop_front();
    used_ += next.bytes_;
    next.granted_ = true;
    next.wake_();
  }
}

}  // namespace sluice::jobs::net
