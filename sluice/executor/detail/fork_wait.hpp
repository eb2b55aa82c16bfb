#pragma once

// For wait reports: a worker that sleeps in the join of a child run by another worker. It counts as
// one wait even if the worker is woken to help in between; while it helps, it does not wait.

#include <optional>

#include "sluice/executor/fork.hpp"
#include "sluice/sync/named.hpp"
#include "sluice/sync/waiter.hpp"
#include "sluice/sync/detail/wait_report.hpp"

namespace sluice::detail {

class fork_wait {
 public:
  fork_wait(fork_base& on, const call_site& at) noexcept : child(on), limits_(at) {}
  fork_wait(const fork_wait&) = delete;
  fork_wait& operator=(const fork_wait&) = delete;
  ~fork_wait() {
    // Another child may get the same address.
    if (self_.has_value()) [[unlikely]] wait_report::destroyed(&child);
  }

  wait_report::subject wait_subject() const noexcept { return child.wait_subject(); }

  // Called before and after a sleep. The waiter is only for the report; it does not end the sleep.
  void falls_asleep() noexcept {
    if (!wait_report::is_on()) [[likely]]
      return;
    if (!self_.has_value()) self_.emplace().commit();
    reported_.begin(*this, *self_, limits_, wait_report::party::current());
  }
  void woke_up() noexcept { reported_.end(); }

  fork_base& child;

 private:
  const wait_limits limits_;
  std::optional<thread_waiter> self_;
  wait_report::wait_record reported_;
};

}  // namespace sluice::detail
