#pragma once

// The wait operations of batcher.hpp: push and take.

#include "sluice/flow/batcher.hpp"

namespace sluice {

template <class T>
class batcher<T>::push_op {
 public:
  push_op(batcher& b, T& item) noexcept : batcher_(b) { node_.item = &item; }
  bool ready() const noexcept {
    return batcher_.queued_.load(relaxed) < batcher_.capacity_ || batcher_.closed_.load(relaxed);
  }
  bool attempt() {
    std::optional<T> dropped;
    const bool finished = locked(dropped);
    if (dropped.has_value() && batcher_.on_drop_) {
      detail::call_back_or_report(batcher_.on_error_, "on_drop of batcher", batcher_.name_,
                                  batcher_.on_drop_, std::move(*dropped));
    }
    return finished;
  }
  enlisted enlist(waiter& waiting) {
    aftermath after(batcher_);
    std::optional<T> dropped;  // unused: a policy that drops does not wait
    const std::lock_guard hold(batcher_.guard_);
    if (batcher_.offer(*node_.item, node_.result, dropped, after)) return enlisted::finished;
    node_.result = status::ok;
    return link_waiter(batcher_.producers_, node_, waiting);
  }
  bool woken() const noexcept {  // the item was taken, or the result is closed
    return true;
  }
  void retract() noexcept {
    const std::lock_guard hold(batcher_.guard_);
    if (node_.linked()) node_.unlink();
  }
  spin_budget& spin() noexcept { return batcher_.push_spin_; }
  status result(status ended) {
    if (ended) return node_.result;
    if (ended == status::timed_out) (void)give_up();
    return ended;
  }
  status give_up() {
    const std::lock_guard hold(batcher_.guard_);
    ++batcher_.counts_.rejected;
    return node_.result;
  }
  // Consumers free capacity; with a handler, the executor that runs it.
  wait_report::subject wait_subject() const noexcept {
    wait_report::subject push{.object = &batcher_,
                              .type = "sluice::batcher",
                              .wants = "push",
                              .by = wait_report::served_by::consumers,
                              .capacity = batcher_.capacity_};
    if (batcher_.on_ == nullptr) return push;
    push.by = wait_report::served_by::one;
    push.others_can_end = true;
    push.target = wait_report::party::executor(batcher_.on_);
    return push;
  }

 private:
  bool locked(std::optional<T>& dropped) {
    aftermath after(batcher_);
    const std::lock_guard hold(batcher_.guard_);
    return batcher_.offer(*node_.item, node_.result, dropped, after);
  }
  batcher& batcher_;
  push_node node_;
};

template <class T>
class batcher<T>::take_op {
 public:
  explicit take_op(batcher& b) : batcher_(b) {
    check_named(b.on_ == nullptr, "sluice::batcher", b.name_.c_str(),
                "no take, because it has a handler");
    node_.taken.reserve(b.size_);  // not under the lock
  }
  bool ready() const noexcept {
    return batcher_.queued_.load(relaxed) >= batcher_.size_ || batcher_.closed_.load(relaxed);
  }
  bool attempt() {
    wait_report::used(&batcher_, wait_report::side::consumer);
    aftermath after(batcher_);
    const std::lock_guard hold(batcher_.guard_);
    return locked(after);
  }
  enlisted enlist(waiter& waiting) {
    aftermath after(batcher_);
    const std::lock_guard hold(batcher_.guard_);
    if (locked(after)) return enlisted::finished;
    const auto joined = link_waiter(batcher_.takers_, node_, waiting);
    if (joined == enlisted::waiting) batcher_.serve(after);  // sets the timer, or serves if due
    return joined;
  }
  bool woken() const noexcept { return true; }
  void retract() {
    aftermath after(batcher_);
    const std::lock_guard hold(batcher_.guard_);
    if (node_.linked()) node_.unlink();
    batcher_.serve(after);  // stops the timer if it ran for this waiter
  }
  spin_budget& spin() noexcept { return batcher_.take_spin_; }
  outcome<batch> result(status ended) {
    if (!ended) return ended;
    if (!node_.result) return node_.result;
    return std::move(node_.taken);
  }
  wait_report::subject wait_subject() const noexcept {
    return {&batcher_, "sluice::batcher", "take"};
  }

 private:
  bool locked(aftermath& after) {
    if (const auto count = batcher_.due(); count > 0) {
      batcher_.take(node_.taken, count, after);
      batcher_.serve(after);
      return true;
    }
    if (!batcher_.closed_.load(relaxed)) return false;
    node_.result = status::closed;
    return true;
  }
  batcher& batcher_;
  take_node node_;
};

}  // namespace sluice
