#pragma once

// What a `guarded` hands out: its lock, held, and the value behind it; and the means by which one
// who waits for the value to change hears of it.

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

// Wakes those who wait for a change. The number of them is protected by the guarded's own lock, so
// that where nobody waits, a release pays for one look at plain memory.
class change_signal {
 public:
  change_signal() = default;
  explicit change_signal(named as) : condition_(as) {}

  // With the lock held: once it is released, the guarded may be gone.
  void changed() noexcept {
    if (waiting_ != 0) condition_.notify_all();
  }

  template <class Hold, class Predicate>
  status wait_within(Hold& hold, const wait_limits& limits, Predicate holds) {
    const counted me(*this);
    return condition_.wait_within(hold, limits, std::move(holds));
  }

  // Gives a status; the predicate is asked, and the coroutine resumed, with the lock held.
  template <class Hold, class Predicate>
  auto async_wait(Hold& hold, Predicate holds, wait_limits limits) {
    return async<Hold, Predicate>(*this, hold, std::move(holds), std::move(limits));
  }

  std::size_t waiting() const noexcept { return condition_.waiting(); }

 private:
  // Lives while the lock is held, at its start and at its end.
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

// For readers, and for locks under which nobody should sleep.
struct no_signal {
  void changed() const noexcept {}
};

// The value, for as long as this lives: `*` and `->`. False in a condition when the lock was not
// taken; reading the value then is a broken contract. Belongs to whoever took the lock. It cannot
// be assigned, because the new lock would be taken before the old one is released.
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
  // Why the lock was not taken, or ok.
  sluice::status status() const noexcept { return status_; }

  T& operator*() const& noexcept { return get(); }
  // A reference out of a temporary would outlive the lock.
  T& operator*() const&& = delete;
  T* operator->() const noexcept { return &get(); }

  // Releases the lock early. The access is empty afterwards.
  void unlock() noexcept {
    if (value_ == nullptr) return;
    tell();
    value_ = nullptr;
    hold_.unlock();
  }

  // Releases the lock until `holds(const T&)` is true, or a limit ends the wait; takes it again
  // either way. What was read before may have changed.
  template <std::predicate<const T&> Predicate>
    requires std::is_same_v<Signal, change_signal>
  sluice::status wait_within(const wait_limits& limits, Predicate holds) {
    tell_before_wait(limits.at);
    return signal_->wait_within(hold_, limits, ask(std::move(holds)));
  }
  template <std::predicate<const T&> Predicate>
    requires std::is_same_v<Signal, change_signal>
  void wait(Predicate holds, call_site at = {}) {
    const auto ended = wait_within(at, std::move(holds));
    check(static_cast<bool>(ended), "sluice::guarded", "an unlimited wait to be told", at);
  }
  // co_await gives a status. The access must stay where it is meanwhile.
  template <std::predicate<const T&> Predicate>
    requires std::is_same_v<Signal, change_signal>
  auto async_wait(Predicate holds, wait_limits limits = {}) {
    tell_before_wait(limits.at);
    return signal_->async_wait(hold_, ask(std::move(holds)), std::move(limits));
  }

  // The first wait of one that has just taken the lock and changed nothing. Empty at failure.
  template <class Predicate>
  static guarded_access when(guarded_access fresh, const wait_limits& limits, Predicate holds) {
    if (!fresh) return fresh;
    const auto ended = fresh.signal_->wait_within(fresh.hold_, limits, fresh.ask(std::move(holds)));
    if (ended) return fresh;
    fresh.value_ = nullptr;  // nothing was changed, so nobody is told
    return guarded_access(ended);
  }

 private:
  T& get() const noexcept {
    check(value_ != nullptr, "sluice::guarded", "an access that holds the lock");
    return *value_;
  }
  void tell() noexcept {
    if constexpr (!std::is_const_v<T>) signal_->changed();
  }
  void tell_before_wait(const call_site& at) noexcept {
    check(value_ != nullptr, "sluice::guarded", "an access that holds the lock", at);
    tell();
  }
  template <class Predicate>
  auto ask(Predicate holds) const {
    return [value = value_, holds = std::move(holds)]() mutable -> bool {
      return std::invoke(holds, std::as_const(*value));
    };
  }

  Hold hold_;
  T* value_ = nullptr;  // null: not held
  Signal* signal_ = nullptr;
  sluice::status status_;
};

// The lock's awaitable, whose hold becomes an access.
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
