#include "sluice/executor/fork.hpp"

#include <source_location>

#include "sluice/sync/named.hpp"
#include "sluice/sync/wait.hpp"

namespace sluice::detail {

// The wait of a thread outside the pool.
class fork_base::wait_op {
 public:
  explicit wait_op(fork_base& child) noexcept : child_(child) {}

  bool ready() const noexcept { return child_.is_done(); }
  bool attempt() const noexcept { return child_.is_done(); }
  enlisted enlist(waiter& waiting) noexcept {
    node_.waiting = &waiting;
    const bool committed = waiting.commit();
    check(committed, "sluice::fork", "a wait without limits");
    auto expected = pending;
    // release: the node; acquire: pairs with the exchange in finish.
    const auto linked = reinterpret_cast<std::uintptr_t>(&node_);
    return child_.state_.compare_exchange_strong(expected, linked, acq_rel, acquire)
               ? enlisted::waiting
               : enlisted::finished;
  }
  bool woken() const noexcept { return true; }
  void retract() noexcept {}
  spin_budget& spin() noexcept { return child_.pool_.join_spin_; }
  void result(status) noexcept {}
  wait_report::subject wait_subject() const noexcept { return child_.wait_subject(); }

 private:
  fork_base& child_;
  wait_node node_;
};

wait_report::subject fork_base::wait_subject() const noexcept {
  return {.object = this,
          .type = "sluice::fork",
          .wants = "join",
          .by = wait_report::served_by::holders,
          .target = wait_report::party::executor(static_cast<const executor*>(&pool_))};
}

void fork_base::running_here::begin() noexcept {
  runner_ = wait_report::party::current();
  wait_report::took({.object = &child_,
               .type = "sluice::fork",
               .mode = wait_report::held_as::running,
               .by = runner_,
               .at = std::source_location(),
               .waited = false});
}

void fork_base::finish() noexcept {
  // Before the exchange: after it, the child may be destroyed.
  seam::parker* const sleeper = home_ != nullptr ? home_->sleeper : nullptr;
  // release: publishes the result to the joining thread. acquire: reads the node of a waiter.
  const auto was = state_.exchange(done, acq_rel);
  if (was == pending) return;
  if (was == awaited) {
    sleeper->unpark();
    return;
  }
  auto& node = *reinterpret_cast<wait_node*>(was);
  waiter& waiting = *node.waiting;
  const bool claimed = waiting.try_claim(node);
  check(claimed, "sluice::fork", "a wait without limits");
  waiting.wake();
}

bool fork_base::announce_wait() noexcept {
  auto expected = pending;
  // acquire: pairs with the exchange in finish.
  return state_.compare_exchange_strong(expected, awaited, acquire, acquire) ||
         expected == awaited;
}

void fork_base::start_outside() noexcept {
  forker_ = seam::thread_number();
  if (!pool_.fork_from_outside(*this)) run();
}

bool fork_base::wait_outside(const call_site& at) {
  check(forker_ == seam::thread_number(), "sluice::fork",
        "a child to be joined by the thread that forked it", at);
  block_on(wait_op(*this), at);
  wait_report::destroyed(this);  // another child may get the same address
  return false;
}

void fork_base::report(std::exception_ptr error) noexcept {
  submission rethrow([&error] { std::rethrow_exception(std::move(error)); });
  pool_.run_submission(rethrow);
}

}  // namespace sluice::detail
