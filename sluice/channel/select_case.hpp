#pragma once

// One alternative of a select: a send or a receive on some channel, with room for its result.
//
// Made by `on_receive` and `on_send` (select.hpp), used for one select at a time, and again for
// the next when it is kept. `select_case` is what a list of any length is made of.

#include <cstddef>
#include <exception>
#include <optional>
#include <utility>

#include "sluice/channel/channel_calls.hpp"
#include "sluice/channel/receive_only.hpp"
#include "sluice/channel/send_only.hpp"

namespace sluice {

class select_case {
 public:
  select_case(const select_case&) = delete;
  select_case& operator=(const select_case&) = delete;

 protected:
  select_case() = default;
  ~select_case() = default;

 private:
  friend class select_op;

  virtual spin_lock* lock() const noexcept = 0;       // null for a null channel: never ready
  virtual bool hint() const noexcept = 0;             // without the lock: could it be ready?
  virtual bool meets() const noexcept = 0;            // capacity 0: served only while in line
  virtual const wait_node* place() const noexcept = 0;
  virtual void finish() = 0;                          // chosen: give the result to the handler
  virtual watch::subject about() const noexcept = 0;  // for whoever watches; not of a null channel
  virtual void note_use() const noexcept = 0;

  // Under the lock.
  virtual bool attempt(wake_batch& wakes) = 0;
  virtual void link(waiter& who) noexcept = 0;        // without committing
  virtual void leave(wake_batch& wakes) noexcept = 0; // if still in line
  virtual bool landed(wake_batch& wakes) = 0;         // it was the winner; true: finished
};

// What both kinds share: the place in the channel's line.
template <class T, class Store>
class exchange_case : public select_case {
 protected:
  using engine = exchange<T, Store>;
  using line = typename engine::line;
  using turn = typename engine::turn;

  explicit exchange_case(engine* at) noexcept : at_(at) {}
  ~exchange_case() = default;

  spin_lock* lock() const noexcept final { return at_ != nullptr ? &at_->lock_ : nullptr; }
  bool meets() const noexcept final { return at_ != nullptr && at_->capacity_ == 0; }
  const wait_node* place() const noexcept final { return &node_; }

  watch::subject about_side(watch::side which) const noexcept { return at_->about(which); }

  bool closed() const noexcept { return at_->closed_.load(relaxed); }
  bool has_items() const noexcept {
    return at_->size_.load(relaxed) > 0 || (at_->capacity_ == 0 && !at_->producers_.empty());
  }
  bool has_room() const noexcept {
    return at_->size_.load(relaxed) < at_->capacity_ ||
           (at_->capacity_ == 0 && !at_->consumers_.empty());
  }
  line& consumers() noexcept { return at_->consumers_; }
  line& producers() noexcept { return at_->producers_; }
  void count_pop_wait() noexcept { ++at_->stats_.pop_waits; }
  void count_push_wait() noexcept { ++at_->stats_.push_waits; }

  bool take(std::optional<T>& slot, wake_batch& wakes, turn whose) {
    return at_->poll_locked(slot, node_.result, wakes, whose);
  }
  bool give(T& item, wake_batch& wakes, turn whose) {
    return at_->offer_locked(item, node_.weight, node_.result, wakes, nullptr, whose);
  }
  bool drops() const noexcept { return at_->drops(); }
  bool rejects() const noexcept { return at_->overflow_ == overflow::reject; }
  std::size_t weigh(const T& item) const { return at_->weigh(item); }

  void link_in(line& mine, waiter& who) noexcept {
    node_.retries = who.is_thread() && at_->capacity_ > 0;
    node_.result = status::ok;
    mine.link(node_, who);
  }
  void leave_line(line& mine, wake_batch& wakes) noexcept {
    if (node_.linked()) mine.remove(node_);
    at_->serve(wakes);  // it may have stood in the way of others
  }
  bool served(line& mine) noexcept {
    at_->landed(node_, mine);
    return !node_.retries;
  }

  typename engine::node node_;
  engine* const at_;
};

// `Handler` is called with an outcome<T> when the case is chosen: ok, or closed and drained.
template <class T, class Handler>
class receive_case final : public exchange_case<T, ring_store<T>> {
  using base = exchange_case<T, ring_store<T>>;

 public:
  receive_case(receive_only<T> from, Handler handler)
      : base(from.core()), handler_(std::move(handler)) {
    this->node_.slot = &slot_;
  }

 private:
  watch::subject about() const noexcept override { return this->about_side(watch::side::takes); }
  void note_use() const noexcept override { watch::used(this->at_, watch::side::takes); }
  bool hint() const noexcept override { return this->has_items() || this->closed(); }
  bool attempt(wake_batch& wakes) override { return this->take(slot_, wakes, base::turn::any); }
  void link(waiter& who) noexcept override {
    this->count_pop_wait();
    this->link_in(this->consumers(), who);
  }
  void leave(wake_batch& wakes) noexcept override { this->leave_line(this->consumers(), wakes); }
  bool landed(wake_batch& wakes) override {
    return this->served(this->consumers()) || this->take(slot_, wakes, base::turn::mine);
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

// `Handler` is called with a status when the case is chosen: ok, or closed. The item is moved from
// only when it was sent.
template <class T, class Handler>
class send_case final : public exchange_case<T, ring_store<T>> {
  using base = exchange_case<T, ring_store<T>>;

 public:
  send_case(send_only<T> to, T& item, Handler handler)
      : base(to.core()), item_(&item), handler_(std::move(handler)) {
    prepare();
  }
  send_case(send_only<T> to, T&& item, Handler handler)
      : base(to.core()), own_(std::move(item)), item_(&*own_), handler_(std::move(handler)) {
    prepare();
  }

 private:
  void prepare() {
    if (this->at_ == nullptr) return;
    check(!this->drops(), "sluice::select", "a channel that blocks or rejects in a send case");
    this->node_.item = item_;
    this->node_.weight = this->weigh(*item_);
  }
  watch::subject about() const noexcept override { return this->about_side(watch::side::gives); }
  void note_use() const noexcept override { watch::used(this->at_, watch::side::gives); }
  bool hint() const noexcept override {
    return this->has_room() || this->closed() || this->rejects();
  }
  bool attempt(wake_batch& wakes) override { return this->give(*item_, wakes, base::turn::any); }
  void link(waiter& who) noexcept override {
    this->count_push_wait();
    this->link_in(this->producers(), who);
  }
  void leave(wake_batch& wakes) noexcept override { this->leave_line(this->producers(), wakes); }
  bool landed(wake_batch& wakes) override {
    return this->served(this->producers()) || this->give(*item_, wakes, base::turn::mine);
  }
  void finish() override { handler_(this->node_.result); }

  std::optional<T> own_;
  T* item_;
  Handler handler_;
};

}  // namespace sluice
