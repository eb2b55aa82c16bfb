#pragma once

// The rest of batcher.hpp: the waits to push and to take.

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
      call_back_or_report(batcher_.on_error_, "on_drop of batcher", batcher_.name_,
                          batcher_.on_drop_, std::move(*dropped));
    }
    return finished;
  }
  enlisted enlist(waiter& who) {
    aftermath after(batcher_);
    std::optional<T> dropped;  // who drops does not wait
    const std::lock_guard hold(batcher_.guard_);
    if (batcher_.offer(*node_.item, node_.result, dropped, after)) return enlisted::finished;
    node_.result = status::ok;
    return join(batcher_.producers_, node_, who);
  }
  bool woken() const noexcept {  // it was taken in, or told closed
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
  // Room is made by those who take; of a handler, by whoever runs it.
  watch::subject about() const noexcept {
    watch::subject room{.object = &batcher_,
                        .type = "sluice::batcher",
                        .wants = "push",
                        .by = watch::served_by::takers,
                        .capacity = batcher_.capacity_};
    if (batcher_.on_ == nullptr) return room;
    room.by = watch::served_by::one;
    room.others_could = true;
    room.whom = watch::party::executor(batcher_.on_);
    return room;
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
                "its handler to be the only one who takes");
    node_.taken.reserve(b.size_);  // not under the lock
  }
  bool ready() const noexcept {
    return batcher_.queued_.load(relaxed) >= batcher_.size_ || batcher_.closed_.load(relaxed);
  }
  bool attempt() {
    watch::used(&batcher_, watch::side::takes);
    aftermath after(batcher_);
    const std::lock_guard hold(batcher_.guard_);
    return locked(after);
  }
  enlisted enlist(waiter& who) {
    aftermath after(batcher_);
    const std::lock_guard hold(batcher_.guard_);
    if (locked(after)) return enlisted::finished;
    const auto joined = join(batcher_.takers_, node_, who);
    if (joined == enlisted::waiting) batcher_.settle(after);  // the timer; the time may have come
    return joined;
  }
  bool woken() const noexcept { return true; }
  void retract() {
    aftermath after(batcher_);
    const std::lock_guard hold(batcher_.guard_);
    if (node_.linked()) node_.unlink();
    batcher_.settle(after);  // the timer, if it ran for this one
  }
  spin_budget& spin() noexcept { return batcher_.take_spin_; }
  outcome<batch> result(status ended) {
    if (!ended) return ended;
    if (!node_.result) return node_.result;
    return std::move(node_.taken);
  }
  watch::subject about() const noexcept { return {&batcher_, "sluice::batcher", "take"}; }

 private:
  bool locked(aftermath& after) {
    if (const auto count = batcher_.due(); count > 0) {
      batcher_.take(node_.taken, count, after);
      batcher_.settle(after);
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
