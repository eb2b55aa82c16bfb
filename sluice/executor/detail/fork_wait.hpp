#pragma once

// A worker that sleeps in the join of a child which another runs, for whoever watches. It is one
// wait, however often it is called to help meanwhile; while it helps it does not wait.

#include <optional>

#include "sluice/executor/fork.hpp"
#include "sluice/sync/named.hpp"
#include "sluice/sync/waiter.hpp"
#include "sluice/sync/watch.hpp"

namespace sluice::detail {

class fork_wait {
 public:
  fork_wait(fork_base& on, const call_site& at) noexcept : child(on), limits_(at) {}
  fork_wait(const fork_wait&) = delete;
  fork_wait& operator=(const fork_wait&) = delete;
  ~fork_wait() {
    if (self_.has_value()) [[unlikely]] watch::gone(&child);  // another will be in its place
  }

  watch::subject about() const noexcept { return child.about(); }

  // Around its sleep. What ends that is no business of the waiter.
  void falls_asleep() noexcept {
    if (!watch::is_on()) [[likely]]
      return;
    if (!self_.has_value()) self_.emplace().commit();
    told_.begin(*this, *self_, limits_, watch::party::current());
  }
  void woke_up() noexcept { told_.end(); }

  fork_base& child;

 private:
  const wait_limits limits_;
  std::optional<thread_waiter> self_;
  watch::wait_record told_;
};

}  // namespace sluice::detail
