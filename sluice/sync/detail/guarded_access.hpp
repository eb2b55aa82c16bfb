#pragma once

// The accesses of a `guarded`: its lock, held, and the value; and the signal that notifies waiters
// of a change of the value.

#include <concepts>
#include <coroutine>
#include <cstddef>
#include <functional>
#include <optional>
#include <type_traits>
#include <utility>

#include "sluice/base/check.hpp"
#include "sluice/base/outcome.hpp"
#include "sluice/sync/condition.hpp"
#include "sluice/sync/wait.hpp"

namespace sluice::detail {

// Wakes the waiters for a change. Their number is protected by the guarded's own lock, so that a
// release without waiters costs one read of plain memory.
class change_signal {
 public:
  change_signal() = default;
  explicit change_signal(named as) : condition_(as) {}

  // Call with the lock held: once it is released, the guarded may be destroyed.
  void changed() noexcept {
    if (waiting_ != 0) condition_.notify_all();
  }

  template <class Hold, class Predicate>
  status wait(Hold& hold, Predicate holds, const wait_limits& limits) {
    const counted me(*this);
    return condition_.wait(hold, std::move(holds), limits);
  }

  // co_await returns a status. The predicate runs, and the coroutine resumes, with the lock held.
  template <class Hold, class Predicate>
  auto async_wait(Hold& hold, Predicate holds, wait_limits limits) {
    return async<Hold, Predicate>(*this, hold, std::move(holds), std::move(limits));
  }

  std::size_t waiting() const noexcept { return condition_.waiting(); }

 private:
  // Must be created and destroyed with the lock held.
  class counted {
   public:
    explicit counted(change_signal& s) noexcept : signal_(s) { ++signal_.waiting_; }
    counted(const counted&) = delete;
    counted& operator=(const counted&) = delete;
    ~counted() { --signal_.waiting_; }

   private:
    change_signal& signal_;
  };

  template <class Hold, class Predicate>
  class [[nodiscard("co_await it")]] async {
   public:
    async(change_signal& s, Hold& hold, Predicate holds, wait_limits limits)
        : signal_(s),
          inner_(s.condition_.async_wait(hold, std::move(holds), std::move(limits))) {}

    bool await_ready() {
      me_.emplace(signal_);
      return inner_.await_ready();
    }
    template <class Promise>
    auto await_suspend(std::coroutine_handle<Promise> awaiting) {
      return inner_.await_suspend(awaiting);
    }
    status await_resume() {
      me_.reset();
      return inner_.await_resume();
    }

   private:
    change_signal& signal_;
    decltype(std::declval<condition&>().async_wait(std::declval<Hold&>(),
                                                   std::declval<Predicate>())) inner_;
    std::optional<counted> me_;
  };

  condition condition_;
  std::size_t waiting_ = 0;  // protected by the lock of the guarded
};

// For readers, and for locks under which no thread should sleep.
struct no_signal {
  void changed() const noexcept {}
};

// Access to the value by `*` and `->`, while this object lives. False in a condition if the lock
// was not taken; reading the value then is a broken contract. Belongs to the party that took the
// lock. It cannot be assigned, because the new lock would be taken before the old one is released.
template <class T, class Hold, class Signal>
class [[nodiscard("without a name it releases the lock at once")]] guarded_access {
 public:
  // The lock was not taken.
  explicit guarded_access(sluice::status why) noexcept : status_(why) {
    check(!why, "sluice::guarded", "a reason other than ok when the lock is not held");
  }
  guarded_access(Hold hold, T& value, Signal& signal) noexcept
      : hold_(std::move(hold)), value_(&value), signal_(&signal), status_(sluice::status::ok) {}

  guarded_access(guarded_access&& other) noexcept
      : hold_(std::move(other.hold_)),
        value_(std::exchange(other.value_, nullptr)),
        signal_(other.signal_),
        status_(other.status_) {}
  guarded_access& operator=(guarded_access&&) = delete;
  ~guarded_access() { unlock(); }

  explicit operator bool() const noexcept { return value_ != nullptr; }
  // ok, or the reason why the lock was not taken.
  sluice::status status() const noexcept { return status_; }

  T& operator*() const& noexcept { return get(); }
  // A reference out of a temporary would outlive the lock.
  T& operator*() const&& = delete;
  T* operator->() const noexcept { return &get(); }

  // Releases the lock early. The access is empty afterwards.
  void unlock() noexcept {
    if (value_ == nullptr) return;
    signal_change();
    value_ = nullptr;
    hold_.unlock();
  }

  // Releases the lock until `holds(const T&)` is true, or a limit ends the wait; takes it again
  // either way. The value may have changed since it was read.
  template <std::predicate<const T&> Predicate>
    requires std::is_same_v<Signal, change_signal>
  sluice::status wait(Predicate holds, const wait_limits& limits) {
    signal_before_wait(limits.at);
    return signal_->wait(hold_, bound_predicate(std::move(holds)), limits);
  }
  template <std::predicate<const T&> Predicate>
    requires std::is_same_v<Signal, change_signal>
  void wait(Predicate holds, call_site at = {}) {
    const auto ended = wait(std::move(holds), wait_limits(at));
    check(static_cast<bool>(ended), "sluice::guarded", "an unlimited wait to end by a change", at);
  }
  // co_await returns a status. The access must not be moved meanwhile.
  template <std::predicate<const T&> Predicate>
    requires std::is_same_v<Signal, change_signal>
  auto async_wait(Predicate holds, wait_limits limits = {}) {
    signal_before_wait(limits.at);
    return signal_->async_wait(hold_, bound_predicate(std::move(holds)), std::move(limits));
  }

  // The first wait of an access that has just taken the lock and changed nothing. Returns an empty
  // access on failure.
  template <class Predicate>
  static guarded_access when(guarded_access fresh, const wait_limits& limits, Predicate holds) {
    if (!fresh) return fresh;
    const auto ended =
        fresh.signal_->wait(fresh.hold_, fresh.bound_predicate(std::move(holds)), limits);
    if (ended) return fresh;
    fresh.value_ = nullptr;  // nothing was changed: do not wake waiters
    return guarded_access(ended);
  }

 private:
  T& get() const noexcept {
    check(value_ != nullptr, "sluice::guarded", "an access that holds the lock");
    return *value_;
  }
  void signal_change() noexcept {
    if constexpr (!std::is_const_v<T>) signal_->changed();
  }
  void signal_before_wait(const call_site& at) noexcept {
    check(value_ != nullptr, "sluice::guarded", "an access that holds the lock", at);
    signal_change();
  }
  template <class Predicate>
  auto bound_predicate(Predicate holds) const {
    return [value = value_, holds = std::move(holds)]() mutable -> bool {
      return std::invoke(holds, std::as_const(*value));
    };
  }

  Hold hold_;
  T* value_ = nullptr;  // null: not held
  Signal* signal_ = nullptr;
  sluice::status status_;
};

// Wraps the lock's awaitable; its hold becomes an access.
template <class Access, class Guarded, class Inner>
class [[nodiscard("co_await it")]] access_await {
 public:
  template <class Start>
  access_await(Guarded& owner, Start&& start) : owner_(owner), inner_(start()) {}

  bool await_ready() { return inner_.await_ready(); }
  template <class Promise>
  auto await_suspend(std::coroutine_handle<Promise> awaiting) {
    return inner_.await_suspend(awaiting);
  }
  Access await_resume() {
    auto held = inner_.await_resume();
    if (!held) return Access(held.status());
    return owner_.wrap(std::move(*held));
  }

 private:
  Guarded& owner_;
  Inner inner_;
};

}  // namespace sluice::detail
