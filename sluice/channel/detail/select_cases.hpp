#pragma once

// The two kinds of select_case: a receive and a send on a channel.

#include <cstddef>
#include <optional>
#include <utility>

#include "sluice/channel/detail/channel_calls.hpp"
#include "sluice/channel/receive_only.hpp"
#include "sluice/channel/select_case.hpp"
#include "sluice/channel/send_only.hpp"

namespace sluice::detail {

// The part common to both kinds: the place in the channel's list of waiters.
template <class T, class Store>
class end_case : public select_case {
 protected:
  using core_type = queue_core<T, Store>;
  using waiting_list = typename core_type::waiting_list;
  using caller = typename core_type::caller;

  explicit end_case(core_type* core) noexcept : core_(core) {}
  ~end_case() = default;

  spin_lock* lock() const noexcept final { return core_ != nullptr ? &core_->lock_ : nullptr; }
  bool meets() const noexcept final { return core_ != nullptr && core_->capacity_ == 0; }
  const wait_node* place() const noexcept final { return &node_; }

  wait_report::subject subject_at(wait_report::side side) const noexcept {
    return core_->wait_subject(side);
  }

  bool closed() const noexcept { return core_->closed_.load(relaxed); }
  bool has_items() const noexcept {
    return core_->size_.load(relaxed) > 0 || (core_->capacity_ == 0 && !core_->producers_.empty());
  }
  bool has_capacity() const noexcept {
    return core_->size_.load(relaxed) < core_->capacity_ ||
           (core_->capacity_ == 0 && !core_->consumers_.empty());
  }
  waiting_list& consumers() noexcept { return core_->consumers_; }
  waiting_list& producers() noexcept { return core_->producers_; }
  void count_pop_wait() noexcept { ++core_->stats_.pop_waits; }
  void count_push_wait() noexcept { ++core_->stats_.push_waits; }

  bool take(std::optional<T>& slot, wake_batch& wakes, caller by) {
    return core_->poll_locked(slot, node_.result, wakes, by);
  }
  bool give(T& item, wake_batch& wakes, caller by) {
    return core_->offer_locked(item, node_.weight, node_.result, wakes, nullptr, by);
  }
  bool drops() const noexcept { return core_->drops(); }
  bool rejects() const noexcept { return core_->overflow_ == overflow::reject; }
  std::size_t weigh(const T& item) const { return core_->weigh(item); }

  void link_in(waiting_list& list, waiter& waiting) noexcept {
    node_.retries = waiting.is_thread() && core_->capacity_ > 0;
    node_.result = status::ok;
    list.link(node_, waiting);
  }
  void leave_list(waiting_list& list, wake_batch& wakes) noexcept {
    if (node_.linked()) list.remove(node_);
    core_->serve(wakes);  // a later waiter may be able to proceed now
  }
  bool served(waiting_list& list) noexcept {
    core_->clear_wake_pending(node_, list);
    return !node_.retries;
  }

  typename core_type::node node_;
  core_type* const core_;
};

// Calls `Handler` with an outcome<T> when the case is chosen: an item, or closed and drained.
template <class T, class Handler>
class receive_case final : public end_case<T, ring_store<T>> {
  using base = end_case<T, ring_store<T>>;

 public:
  receive_case(receive_only<T> source, Handler handler)
      : base(source.core()), handler_(std::move(handler)) {
    this->node_.slot = &slot_;
  }

 private:
  wait_report::subject wait_subject() const noexcept override {
    return this->subject_at(wait_report::side::consumer);
  }
  void note_use() const noexcept override {
    wait_report::used(this->core_, wait_report::side::consumer);
  }
  bool hint() const noexcept override { return this->has_items() || this->closed(); }
  bool attempt(wake_batch& wakes) override {
    return this->take(slot_, wakes, base::caller::arriving);
  }
  void link(waiter& waiting) noexcept override {
    this->count_pop_wait();
    this->link_in(this->consumers(), waiting);
  }
  void leave(wake_batch& wakes) noexcept override { this->leave_list(this->consumers(), wakes); }
  bool woken(wake_batch& wakes) override {
    return this->served(this->consumers()) || this->take(slot_, wakes, base::caller::woken);
  }
  void finish() override {
    if (slot_.has_value()) {
      outcome<T> item(std::move(*slot_));
      slot_.reset();
      handler_(std::move(item));
    } else {
      handler_(outcome<T>(this->node_.result));
    }
  }

  std::optional<T> slot_;
  Handler handler_;
};

// Calls `Handler` with a status when the case is chosen: ok, or closed. Moves from the item only if
// it was sent.
template <class T, class Handler>
class send_case final : public end_case<T, ring_store<T>> {
  using base = end_case<T, ring_store<T>>;

 public:
  send_case(send_only<T> target, T& item, Handler handler)
      : base(target.core()), item_(&item), handler_(std::move(handler)) {
    prepare();
  }
  send_case(send_only<T> target, T&& item, Handler handler)
      : base(target.core()), own_(std::move(item)), item_(&*own_), handler_(std::move(handler)) {
    prepare();
  }

 private:
  void prepare() {
    if (this->core_ == nullptr) return;
    check(!this->drops(), "sluice::select", "a channel that blocks or rejects in a send case");
    this->node_.item = item_;
    this->node_.weight = this->weigh(*item_);
  }
  wait_report::subject wait_subject() const noexcept override {
    return this->subject_at(wait_report::side::producer);
  }
  void note_use() const noexcept override {
    wait_report::used(this->core_, wait_report::side::producer);
  }
  bool hint() const noexcept override {
    return this->has_capacity() || this->closed() || this->rejects();
  }
  bool attempt(wake_batch& wakes) override {
    return this->give(*item_, wakes, base::caller::arriving);
  }
  void link(waiter& waiting) noexcept override {
    this->count_push_wait();
    this->link_in(this->producers(), waiting);
  }
  void leave(wake_batch& wakes) noexcept override { this->leave_list(this->producers(), wakes); }
  bool woken(wake_batch& wakes) override {
    return this->served(this->producers()) || this->give(*item_, wakes, base::caller::woken);
  }
  void finish() override { handler_(this->node_.result); }

  std::optional<T> own_;
  T* item_;
  Handler handler_;
};

}  // namespace sluice::detail
