#pragma once

// Holds a lock for a scope, and records the place where it was taken.
//
// Use it in place of std::lock_guard with locks of this library: reports of `inspect` and contract
// messages then show the line of the guard in every build. A lock taken through std::lock_guard,
// std::unique_lock or std::scoped_lock has a line of the standard library, and reports can only
// show only an address of the calling code. Prefer std::unique_lock where it is released early
// or handed to a `condition`, `lock_all` for several locks, and `guarded<T>` where the lock guards
// a value.
//
// Guarantees: the lock's own. Works with any lock that has `lock` and `unlock`, also std's;
// of a shared_mutex it takes the exclusive side.
// Cost: none beyond the lock's.
//
//     const sluice::lock_guard hold(ledger);
//     const sluice::lock_guard adopted(ledger, std::adopt_lock);

#include <concepts>
#include <mutex>

#include "sluice/base/call_site.hpp"

namespace sluice {

template <class Lock>
class [[nodiscard("without a name it releases the lock at once")]] lock_guard {
 public:
  using mutex_type = Lock;

  explicit lock_guard(Lock& lock, call_site at = {}) : lock_(lock), at_(at) {
    if constexpr (requires { { lock.lock(at) } -> std::same_as<void>; }) {
      lock.lock(at);
    } else {
      lock.lock();
    }
  }
  // The calling thread holds the lock already.
  lock_guard(Lock& lock, std::adopt_lock_t, call_site at = {}) noexcept : lock_(lock), at_(at) {}
  lock_guard(const lock_guard&) = delete;
  lock_guard& operator=(const lock_guard&) = delete;
  ~lock_guard() {
    if constexpr (requires { lock_.unlock(at_); }) {
      lock_.unlock(at_);
    } else {
      lock_.unlock();
    }
  }

 private:
  Lock& lock_;
  const call_site at_;
};

}  // namespace sluice
