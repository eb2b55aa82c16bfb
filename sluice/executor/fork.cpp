#include "sluice/executor/fork.hpp"

#include <source_location>

#include "sluice/sync/named.hpp"
#include "sluice/sync/wait.hpp"

namespace sluice::detail {

// The wait of a thread that is no worker of the pool.
class fork_base::wait_op {
 public:
  explicit wait_op(fork_base& child) noexcept : child_(child) {}

  bool ready() const noexcept { return child_.is_done(); }
  bool attempt() const noexcept { return child_.is_done(); }
  enlisted enlist(waiter& who) noexcept {
    node_.who = &who;
    const bool committed = who.commit();
    check(committed, "sluice::fork", "a wait without limits");
    auto expected = pending;
    // release: the node; acquire: pairs with the exchange in finish.
    const auto mine = reinterpret_cast<std::uintptr_t>(&node_);
    return child_.state_.compare_exchange_strong(expected, mine, acq_rel, acquire)
               ? enlisted::waiting
               : enlisted::finished;
  }
  bool woken() const noexcept { return true; }
  void retract() noexcept {}
  spin_budget& spin() noexcept { return child_.pool_.join_spin_; }
  void result(status) noexcept {}
  watch::subject about() const noexcept { return child_.about(); }

 private:
  fork_base& child_;
  wait_node node_;
};

watch::subject fork_base::about() const noexcept {
  return {.object = this,
          .type = "sluice::fork",
          .wants = "join",
          .by = watch::served_by::holders,
          .whom = watch::party::executor(static_cast<const executor*>(&pool_))};
}

void fork_base::running_here::begin() noexcept {
  who_ = watch::party::current();
  watch::took({.object = &child_,
               .type = "sluice::fork",
               .how = watch::held_as::running,
               .by = who_,
               .at = std::source_location(),
               .waited = false});
}

void fork_base::finish() noexcept {
  // Before the exchange: after it, the child may be gone.
  seam::parker* const sleeper = home_ != nullptr ? home_->sleeper : nullptr;
  // acq_rel: the result for whoever joins; and the node of one that waits.
  const auto was = state_.exchange(done, acq_rel);
  if (was == pending) return;
  if (was == awaited) {
    sleeper->unpark();
    return;
  }
  auto& node = *reinterpret_cast<wait_node*>(was);
  waiter& who = *node.who;
  const bool claimed = who.try_claim(node);
  check(claimed, "sluice::fork", "a wait without limits");
  who.wake();
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
  watch::gone(this);  // another will be in its place
  return false;
}

void fork_base::report(std::exception_ptr error) noexcept {
  submission rethrow([&error] { std::rethrow_exception(std::move(error)); });
  pool_.run_submission(rethrow);
}

}  // namespace sluice::detail
