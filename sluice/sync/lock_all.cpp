#include "sluice/sync/lock_all.hpp"

#include "sluice/base/check.hpp"
#include "sluice/sync/backoff.hpp"

namespace sluice::detail {
namespace {

void check_distinct(std::span<const any_lock> locks) noexcept {
  for (std::size_t i = 0; i < locks.size(); ++i) {
    for (std::size_t j = i + 1; j < locks.size(); ++j) {
      check(locks[i].lock != locks[j].lock, "sluice::lock_all",
            "every lock only once; the same lock was passed twice");
    }
  }
}

// The locks held so far: a run of the set that begins at any index and may wrap around its end.
// Releases them in the destructor, unless `keep` was called.
class run_of_locks {
 public:
  run_of_locks(std::span<const any_lock> all, std::size_t first) noexcept
      : all_(all), first_(first) {}
  run_of_locks(const run_of_locks&) = delete;
  run_of_locks& operator=(const run_of_locks&) = delete;
  ~run_of_locks() {
    while (held_ > 0) {
      --held_;
      const auto& last = all_[(first_ + held_) % all_.size()];
      last.unlock(last.lock);
    }
  }

  std::size_t next() const noexcept { return (first_ + held_) % all_.size(); }
  bool complete() const noexcept { return held_ == all_.size(); }
  void took_next() noexcept { ++held_; }
  void keep() noexcept { held_ = 0; }

  // Tries to take the rest. Returns false if the lock at `next` is not free.
  bool try_rest() {
    while (!complete()) {
      const auto& one = all_[next()];
      if (!one.try_once(one.lock)) return false;
      took_next();
    }
    return true;
  }

 private:
  const std::span<const any_lock> all_;
  const std::size_t first_;
  std::size_t held_ = 0;
};

bool unlimited(const wait_limits& limits) noexcept {
  return limits.deadline.is_never() && !limits.stop.stop_possible();
}

status wait_for_one(const any_lock& one, const wait_limits& limits) {
  if (unlimited(limits)) {
    one.wait(one.lock);
    return status::ok;
  }
  if (one.wait_limited != nullptr) return one.wait_limited(one.lock, limits);
  for (backoff again;; again.pause()) {
    if (limits.stop.stop_requested()) return status::stopped;
    if (one.try_once(one.lock)) return status::ok;
    if (limits.deadline.passed()) return status::timed_out;
  }
}

}  // namespace

status take_all(std::span<const any_lock> locks, const wait_limits& limits) {
  check_distinct(locks);
  std::size_t first = 0;
  for (backoff again;; again.pause()) {
    run_of_locks held(locks, first);
    if (const auto ended = wait_for_one(locks[first], limits); !ended) return ended;
    held.took_next();
    if (held.try_rest()) {
      held.keep();
      return status::ok;
    }
    first = held.next();  // wait for the lock that was not free
    if (limits.deadline.passed()) return status::timed_out;
  }
}

std::size_t try_all(std::span<const any_lock> locks) {
  check_distinct(locks);
  run_of_locks held(locks, 0);
  if (!held.try_rest()) return held.next();
  held.keep();
  return locks.size();
}

}  // namespace sluice::detail
