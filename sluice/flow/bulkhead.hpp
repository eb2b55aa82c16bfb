#pragma once

// Keeps one part of the program from sinking the others: at most so many calls at once, at most so
// many waiting for their turn, and the rest hear `full` at once.
//
// Use it around what can become slow: without a bound every thread ends up waiting in there. Prefer
// `semaphore` when any number may wait, `rate_limiter` when calls per second matter,
// `circuit_breaker` against what fails.
//
// Guarantees: any thread may call anything. Those who wait get in strictly in order of arrival.
// When a call leaves, the first in line takes its place directly: nobody can slip in between.
// `full` is said without waiting, also by a timed call. What one did before it left is seen by
// whoever got its place. Destroying it while anybody is inside or waits is a broken contract, as
// are options that let nobody in.
// Where you resume: a coroutine on its executor, else on the thread that left.
// Cancel safety: a wait that timed out or was stopped holds no place, inside or in line.
// Cost: 128 bytes, no allocation; uncontended a short lock each way.
//
//     bulkhead printing({.active_max = 4, .waiting_max = 16});
//     auto place = printing.try_enter_for(200ms);          // outcome<bulkhead::permit>
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
  std::size_t waiting_max = 0;  // 0: nobody waits
  std::string name{};
};

struct bulkhead_stats {
  std::uint64_t entered = 0;
  std::uint64_t waited = 0;     // of those who asked
  std::uint64_t refused = 0;    // heard `full`
  std::uint64_t gave_up = 0;    // timed out or stopped in line
  std::size_t active_most = 0;  // the most that were ever inside at once
};

class bulkhead {
 public:
  using options = bulkhead_options;

  // A place inside, until it is destroyed.
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
    // Early.
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

  // ok, or full; with limits also timed_out, stopped.
  outcome<permit> enter(call_site at = {}) { return enter_within(at); }
  outcome<permit> enter(std::stop_token stop, call_site at = {}) {
    return enter_within({{}, std::move(stop), at});
  }
  // Never waits: full when all places are taken, or somebody waits.
  outcome<permit> try_enter(call_site at = {});
  template <class Rep, class Period>
  outcome<permit> try_enter_for(std::chrono::duration<Rep, Period> wait,
                                std::stop_token stop = {}, call_site at = {}) {
    return enter_within({deadline::after(wait), std::move(stop), at});
  }
  template <class Clock, class Duration>
  outcome<permit> try_enter_until(std::chrono::time_point<Clock, Duration> when,
                                  std::stop_token stop = {}, call_site at = {}) {
    return enter_within({deadline::at(when), std::move(stop), at});
  }
  outcome<permit> enter_within(const wait_limits& limits) {
    auto entered = block_on(op(*this), limits);
    if (entered && watch::is_on()) [[unlikely]]
      tell_entered(watch::party::current(), limits.at);
    return entered;
  }
  // co_await gives an outcome<permit>.
  auto async_enter(wait_limits limits = {}) { return awaitable<op>(std::move(limits), *this); }

  // Enters within the limits, calls f, leaves when what it gives is there. Not let in:
  // refused_error, thrown, or in the future or task that f would have given.
  //   f() -> T            T; the calling thread waits
  //   f() -> future<T>    future<T>; the calling thread waits for its turn, not for the result
  //   f() -> task<T>      task<T>; nothing waits but the task
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
    enlisted enlist(waiter& who) noexcept;
    bool woken() const noexcept { return true; }  // always handed a place
    void retract() noexcept;
    bool spins_linked() const noexcept { return true; }  // strict order: into the line at once
    spin_budget& spin() noexcept { return bulkhead_.spin_; }
    outcome<permit> result(status ended) noexcept {
      if (!ended) return ended;
      if (full_) return status::full;
      return permit(bulkhead_);
    }
    watch::subject about() const noexcept {
      return {.object = &bulkhead_,
              .type = type_name,
              .wants = "enter",
              .by = watch::served_by::holders,
              .capacity = bulkhead_.options_.active_max};
    }
    void taken_by(watch::party who, const call_site& at) const noexcept {
      if (!full_) bulkhead_.tell_entered(who, at, true);
    }

   private:
    bulkhead& bulkhead_;
    wait_node node_;
    bool full_ = false;
  };

  static constexpr const char* type_name = "sluice::bulkhead";

  bool take() noexcept;  // guard_ held
  void leave() noexcept;
  void tell_entered(watch::party who, const call_site& at, bool awaited = false) const noexcept;
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
  std::size_t in_line_ = 0;
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
    const auto place = enter_or_throw(enter_within(limits));
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
    auto place = enter_or_throw(enter_within(limits));
    auto begun = f();
    watch::gave(this);  // the place is the future's now, whoever completes it
    return std::move(begun).finally([place = std::move(place)]() mutable { place.leave(); });
  } catch (...) {
    return make_failed_future<T>(std::current_exception());
  }
}

}  // namespace sluice
