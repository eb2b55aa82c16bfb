#pragma once

// Keeps one part of the program from blocking the others: bounds the concurrent calls and the
// waiters, and refuses all further calls with `full` at once.
//
// Use it around calls that can become slow: without a bound every thread ends up waiting there.
// Prefer `semaphore` for any number of waiters, `rate_limiter` when calls per second matter,
// `circuit_breaker` against calls that fail.
//
// Guarantees: any thread may call anything. Waiters enter strictly in order of arrival. When a call
// leaves, the first waiter takes its place directly; no other caller can overtake it. `full` is
// returned without waiting, also by a timed call. The next holder of a place sees all that the
// previous one did. Destroying it with calls or waiters inside is a broken contract, as is an
// active_max of 0.
// Where you resume: a coroutine on its executor, else on the thread that left.
// Cancel safety: a wait that timed out or was stopped holds no place, inside or in the list.
// Cost: 128 bytes, no allocation; uncontended a short lock each way.
//
//     bulkhead printing({.active_max = 4, .waiting_max = 16});
//     auto place = printing.enter(200ms);          // outcome<bulkhead::permit>
//     if (!place) return reply(503, to_string(place.status()));
//     print(document);                                     // leaves at the end of the scope
//
//     auto page = printing.call([&] { return render(document); });   // full: throws refused_error

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <stop_token>
#include <string>
#include <utility>

#include "sluice/base/outcome.hpp"
#include "sluice/flow/detail/call_kind.hpp"
#include "sluice/flow/refused_error.hpp"
#include "sluice/future/promise.hpp"
#include "sluice/sync/named.hpp"
#include "sluice/sync/spin_lock.hpp"
#include "sluice/sync/wait.hpp"

namespace sluice {

struct bulkhead_options {
  std::size_t active_max = 0;   // at least 1
  std::size_t waiting_max = 0;  // 0: no caller waits
  std::string name{};
};

struct bulkhead_stats {
  std::uint64_t entered = 0;
  std::uint64_t waited = 0;     // calls that had to wait
  std::uint64_t refused = 0;    // calls that got `full`
  std::uint64_t gave_up = 0;    // waits that timed out or were stopped
  std::size_t active_most = 0;  // the largest number of concurrent calls so far
};

class bulkhead {
 public:
  using options = bulkhead_options;

  // A place inside, held until it is destroyed.
  class permit {
   public:
    permit(permit&& other) noexcept : in_(std::exchange(other.in_, nullptr)) {}
    permit& operator=(permit&& other) noexcept {
      if (this != &other) {
        leave();
        in_ = std::exchange(other.in_, nullptr);
      }
      return *this;
    }
    ~permit() { leave(); }
    // Gives the place back early.
    void leave() noexcept {
      if (in_ != nullptr) std::exchange(in_, nullptr)->leave();
    }

   private:
    friend class bulkhead;
    explicit permit(bulkhead& in) noexcept : in_(&in) {}
    bulkhead* in_;
  };

  explicit bulkhead(options o);
  bulkhead(const bulkhead&) = delete;
  bulkhead& operator=(const bulkhead&) = delete;
  ~bulkhead();

  // Blocks until it has a place, within the limits. Returns a permit, or full, timed_out or
  // stopped.
  outcome<permit> enter(const wait_limits& limits = {}) {
    auto entered = block_on(op(*this), limits);
    if (entered && wait_report::is_on()) [[unlikely]]
      report_entered(wait_report::party::current(), limits.at);
    return entered;
  }
  // Never waits. Returns full if all places are taken, or another caller waits.
  outcome<permit> try_enter(call_site at = {});
  // co_await returns an outcome<permit>.
  auto async_enter(wait_limits limits = {}) { return awaitable<op>(std::move(limits), *this); }

  // Enters within the limits, calls f, leaves when the result is there. If refused: refused_error,
  // thrown, or in the future or task in place of f's.
  //   f() -> T            T; the calling thread waits
  //   f() -> future<T>    future<T>; the calling thread waits for its place, not for the result
  //   f() -> task<T>      task<T>; only the task waits
  template <class F>
  detail::call_result_t<F> call(F&& f, wait_limits limits = {});

  std::size_t active() const noexcept;
  std::size_t waiting() const noexcept;
  bulkhead_stats stats() const noexcept;
  const std::string& name() const noexcept { return options_.name; }

 private:
  class op {
   public:
    explicit op(bulkhead& b) noexcept : bulkhead_(b) {}
    bool ready() const noexcept { return false; }
    bool attempt() noexcept;
    enlisted enlist(waiter& waiting) noexcept;
    bool woken() const noexcept { return true; }  // always handed a place
    void retract() noexcept;
    bool spins_linked() const noexcept { return true; }  // strict order: joins the list at once
    spin_budget& spin() noexcept { return bulkhead_.spin_; }
    outcome<permit> result(status ended) noexcept {
      if (!ended) return ended;
      if (full_) return status::full;
      return permit(bulkhead_);
    }
    wait_report::subject wait_subject() const noexcept {
      return {.object = &bulkhead_,
              .type = type_name,
              .wants = "enter",
              .by = wait_report::served_by::holders,
              .capacity = bulkhead_.options_.active_max};
    }
    void taken_by(wait_report::party taker, const call_site& at) const noexcept {
      if (!full_) bulkhead_.report_entered(taker, at, true);
    }

   private:
    bulkhead& bulkhead_;
    wait_node node_;
    bool full_ = false;
  };

  static constexpr const char* type_name = "sluice::bulkhead";

  bool take() noexcept;  // must hold guard_
  void leave() noexcept;
  void report_entered(wait_report::party taker, const call_site& at,
                      bool awaited = false) const noexcept;
  permit enter_or_throw(outcome<permit> entered) const;
  refused_error refusal(status why) const;
  template <class T, class F>
  static task<T> call_task(bulkhead& self, F f, wait_limits limits);
  template <class T, class F>
  future<T> call_future(F& f, const wait_limits& limits);

  const options options_;
  mutable spin_lock guard_;
  spin_budget spin_;
  // Protected by guard_.
  std::size_t active_ = 0;
  std::size_t waiting_ = 0;
  wait_list waiters_;
  bulkhead_stats stats_;
};

template <class F>
detail::call_result_t<F> bulkhead::call(F&& f, wait_limits limits) {
  using traits = detail::call_traits_of<F>;
  using T = typename traits::value;
  if constexpr (traits::kind == detail::call_kind::task) {
    return call_task<T>(*this, std::decay_t<F>(std::forward<F>(f)), std::move(limits));
  } else if constexpr (traits::kind == detail::call_kind::future) {
    return call_future<T>(f, limits);
  } else {
    const auto place = enter_or_throw(enter(limits));
    return static_cast<T>(f());
  }
}

template <class T, class F>
task<T> bulkhead::call_task(bulkhead& self, F f, wait_limits limits) {
  auto entered = co_await self.async_enter(std::move(limits));
  const auto place = self.enter_or_throw(std::move(entered));
  co_return co_await f();
}

template <class T, class F>
future<T> bulkhead::call_future(F& f, const wait_limits& limits) {
  try {
    auto place = enter_or_throw(enter(limits));
    auto begun = f();
    wait_report::gave(this);  // the future holds the place now, not this thread
    return std::move(begun).finally([place = std::move(place)]() mutable { place.leave(); });
  } catch (...) {
    return make_failed_future<T>(std::current_exception());
  }
}

}  // namespace sluice
