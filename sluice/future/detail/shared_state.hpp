#pragma once

// The state shared by the copies of a shared_future: the source future, whose result stays in its
// state, the list of waiters, and the branches, which are futures that refer to the result.
//
// References to the node: one for each copy and each branch, one for the pending result.

#include <cstddef>
#include <mutex>
#include <type_traits>
#include <utility>

#include "sluice/future/detail/fan_in.hpp"
#include "sluice/future/detail/future_parts.hpp"
#include "sluice/future/future_error.hpp"
#include "sluice/sync/spin_lock.hpp"

namespace sluice::detail {

template <class T>
using shared_view_t =
    std::conditional_t<std::is_object_v<T>, std::add_lvalue_reference_t<std::add_const_t<T>>, T>;

template <class T>
class shared_state;

// One copy of a shared_future.
template <class T>
class shared_ref {
 public:
  shared_ref() noexcept = default;
  explicit shared_ref(shared_state<T>* counted) noexcept : state_(counted) {}
  shared_ref(const shared_ref& other) noexcept : state_(other.state_) {
    if (state_ != nullptr) state_->add_reference();
  }
  shared_ref(shared_ref&& other) noexcept : state_(std::exchange(other.state_, nullptr)) {}
  shared_ref& operator=(shared_ref other) noexcept {
    std::swap(state_, other.state_);
    return *this;
  }
  ~shared_ref() {
    if (state_ != nullptr) state_->unref();
  }
  shared_state<T>& operator*() const noexcept { return *state_; }
  friend bool operator==(const shared_ref& ref, std::nullptr_t) noexcept {
    return ref.state_ == nullptr;
  }

 private:
  shared_state<T>* state_ = nullptr;
};

// A future that refers to the shared result. A cancel stops here: other consumers use the result.
template <class T>
class branch_state final : public future_state<shared_view_t<T>>, public cancel_node {
 public:
  explicit branch_state(shared_ref<T> of) noexcept
      : future_state<shared_view_t<T>>(sizeof(branch_state), this),
        cancel_node(2),
        of_(std::move(of)) {}
  void set_from_source() noexcept {
    if (const auto error = (*of_).error(); error != nullptr) {
      this->result.fail(error);
    } else {
      this->result.construct([&]() -> decltype(auto) { return (*of_).read(); });
    }
  }
  state_base* arrived(state_base&) noexcept override { return this; }
  void run() noexcept override {}

  branch_state* next = nullptr;  // in the list of shared_state

 private:
  void each_source(visitor& visits) override { visits.visit(*of_); }
  bool cancels_sources() const noexcept override { return false; }
  void destroy() noexcept override {
    std::destroy_at(&of_);
    this->free();
  }

  shared_ref<T> of_;
};

template <class T>
class shared_state final : public continuation, public cancel_node {
 public:
  static shared_ref<T> make(future<T>&& source, const call_site& at) {
    check(source.valid(), "sluice::shared_future", "a valid future", at);
    auto* const made = new shared_state(std::move(source));
    shared_ref<T> first(made);
    attach_or_run(*future_access::parts(made->source_).state, *made);
    return first;
  }

  // acquire: pairs with the release in arrived.
  bool is_ready() const noexcept { return ready_.load(acquire); }
  // Must be ready.
  shared_view_t<T> read() const { return std::as_const(result_of(source_)).value(); }
  std::exception_ptr error() const noexcept { return result_of(source_).error(); }
  limited_result_t<shared_view_t<T>> answer(status ended) const {
    if (!ended) return ended;
    if constexpr (std::is_void_v<T>) {
      read();
      return ended;
    } else {
      return std::ref(read());
    }
  }

  class op {
   public:
    explicit op(shared_state& of) noexcept : of_(of) {}
    bool ready() const noexcept { return of_.is_ready(); }
    bool attempt() const noexcept { return ready(); }
    enlisted enlist(waiter& waiting) noexcept {
      const std::lock_guard hold(of_.guard_);
      return ready() ? enlisted::finished : link_waiter(of_.waiters_, node_, waiting);
    }
    bool woken() const noexcept { return true; }
    void retract() noexcept {
      const std::lock_guard hold(of_.guard_);
      if (node_.linked()) node_.unlink();
    }
    spin_budget& spin() noexcept { return get_spin(); }
    auto result(status ended) const { return of_.answer(ended); }
    std::size_t wait_subject(wait_report::subject* out, std::size_t capacity) const noexcept {
      return of_.makers({&of_, "sluice::shared_future", "get"}, out, capacity);
    }

   protected:
    shared_state& of_;

   private:
    wait_node node_;
  };
  // The same for `co_await shared`, which holds a copy and cannot end early without an exception.
  class value_op : private shared_ref<T>, public op {
   public:
    explicit value_op(shared_ref<T> of) noexcept : shared_ref<T>(std::move(of)), op(copy()) {}
    shared_view_t<T> result(status ended) const {
      if (!ended) throw future_error(future_error::cancelled);
      return this->of_.read();
    }

   private:
    shared_state& copy() const noexcept { return **static_cast<const shared_ref<T>*>(this); }
  };

  void wait(const call_site& at) {
    op waiting_for(*this);
    if (waiting_for.attempt()) return;
    const auto ended = wait_blocking(waiting_for, at);
    check(static_cast<bool>(ended), "sluice::shared_future",
          "a wait without limits to end with a result", at);
  }
  std::size_t waiting() const noexcept {
    const std::lock_guard hold(guard_);
    return waiters_.size();
  }

  future<shared_view_t<T>> branch(executor* on) {
    this->add_reference();
    auto* const made = make_state<branch_state<T>>(shared_ref<T>(this));
    auto result = future_access::make(
        future_parts<shared_view_t<T>>(made, cancel_ref::adopt(made), on));
    if (!add(*made)) {
      made->set_from_source();
      finish(*made);
    }
    return result;
  }

  state_base* arrived(state_base&) noexcept override {
    branch_state<T>* branches = nullptr;
    {
      wake_batch wakes;
      const std::lock_guard hold(guard_);
      // release: pairs with the acquire in is_ready.
      ready_.store(true, release);
      branches = std::exchange(first_, nullptr);
      while (auto* const node = claim_front(waiters_)) wakes.add(*node->waiting);
    }
    while (branches != nullptr) {
      auto& each = *std::exchange(branches, branches->next);
      each.set_from_source();
      finish(each);
    }
    this->unref();
    return nullptr;
  }
  void run() noexcept override {}

 private:
  explicit shared_state(future<T>&& source) noexcept
      : cancel_node(2), source_(std::move(source)) {
    this->wait_for(future_access::parts(source_).way_back.copy());
  }
  // Returns false if the result is set already.
  bool add(branch_state<T>& branch) noexcept {
    const std::lock_guard hold(guard_);
    if (is_ready()) return false;
    (first_ == nullptr ? first_ : last_->next) = &branch;
    last_ = &branch;
    return true;
  }
  void destroy() noexcept override {
    leave_input(source_);
    delete this;
  }

  mutable future<T> source_;  // its result is written before ready_ and only read after that
  atomic<bool> ready_{false};
  mutable spin_lock guard_;
  wait_list waiters_;                   // protected by guard_
  branch_state<T>* first_ = nullptr;    // protected by guard_; in FIFO order
  branch_state<T>* last_ = nullptr;     // protected by guard_
};

}  // namespace sluice::detail
