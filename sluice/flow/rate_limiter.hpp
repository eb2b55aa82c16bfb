#pragma once

// Lets through so many per second, with a burst: a bucket that holds at most `burst` tokens, fills
// at a steady rate, and makes those wait who ask for more than is in it.
//
// Use it in front of something that must not be called faster than so. Prefer `bulkhead` or
// `semaphore` when it is the number at the same time that matters, and `keyed_rate_limiter` for a
// rate per customer or address.
//
// Guarantees: any thread may call anything. Those who wait are served strictly in order of arrival,
// also when they ask for different amounts: a request for many is not overtaken for ever, not even
// by a `try_acquire`. Tokens are counted exactly, as fractions, so nothing drifts: over time t at
// most burst + rate * t tokens are given, and that many when there is demand. Whoever was woken
// late is served as of the moment its tokens were there, so at most one request can come on top.
// Asking for more than the burst can never succeed: every form says `full` at once, and so do
// requests that wait when the burst is lowered below them. Asking for 0 or less, and destroying it
// with waiters inside, are broken contracts. A rate of 0 lets nobody through until it is changed.
// Where you resume: a coroutine on its executor, else on the clock's thread.
// Cancel safety: a wait that timed out or was stopped took no token.
// Cost: no polling: one timer, armed for the first in line while somebody waits. One allocation, at
// construction; waiting allocates nothing. A try is a short lock and a look at the clock.
//
//     rate_limiter calls({.rate = {100, 1s}, .burst = 20});
//     calls.acquire();                                       // waits for one
//     if (!calls.try_acquire(5)) reply(429, calls.time_until(5));
//     if (auto s = calls.try_acquire_for(50ms, 2); !s) reply(503, to_string(s));
//     (void)co_await calls.async_acquire();

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <stop_token>
#include <string>
#include <utility>

#include "sluice/base/clock.hpp"
#include "sluice/flow/detail/token_bucket.hpp"
#include "sluice/flow/rate.hpp"
#include "sluice/sync/named.hpp"
#include "sluice/sync/spin_lock.hpp"
#include "sluice/sync/wait.hpp"
#include "sluice/sync/wake_timer.hpp"

namespace sluice {

struct rate_limiter_options {
  sluice::rate rate;
  std::int64_t burst = 1;          // at least 1
  std::int64_t initial = -1;       // tokens inside at the start; -1: a full burst
  sluice::clock* clock = nullptr;  // null: the real clock; outlives the limiter
  std::string name{};              // what reports call it; empty: none
};

struct rate_limiter_stats {
  std::int64_t granted = 0;   // tokens given
  std::uint64_t served = 0;   // requests that got theirs
  std::uint64_t waits = 0;    // requests that stood in line
  std::uint64_t refused = 0;  // answered `full`, or false by a try
};

class rate_limiter {
 public:
  using options = rate_limiter_options;
  using count_type = std::int64_t;

  explicit rate_limiter(options o);
  rate_limiter(const rate_limiter&) = delete;
  rate_limiter& operator=(const rate_limiter&) = delete;
  ~rate_limiter();

  // One token; there is always a burst that holds it.
  void acquire(call_site at = {}) {
    const status ended = acquire_within(1, at);
    check(static_cast<bool>(ended), type_name, "an unlimited wait to be served", at);
  }
  // ok, or full: more than the burst.
  status acquire(count_type n, call_site at = {}) { return acquire_within(n, at); }
  status acquire(std::stop_token stop, count_type n = 1, call_site at = {}) {
    return acquire_within(n, {{}, std::move(stop), at});
  }
  bool try_acquire(count_type n = 1, call_site at = {});

  template <class Rep, class Period>
  status try_acquire_for(std::chrono::duration<Rep, Period> wait, count_type n = 1,
                         std::stop_token stop = {}, call_site at = {}) {
    return acquire_within(n, {deadline::after(wait), std::move(stop), at});
  }
  template <class Clock, class Duration>
  status try_acquire_until(std::chrono::time_point<Clock, Duration> when, count_type n = 1,
                           std::stop_token stop = {}, call_site at = {}) {
    return acquire_within(n, {deadline::at(when), std::move(stop), at});
  }
  // With both limits at once; also the form for a deadline on another clock.
  status acquire_within(count_type n, const wait_limits& limits) {
    return block_on(op(*this, n, &limits.at), limits);
  }
  // co_await gives a status.
  auto async_acquire(count_type n = 1, wait_limits limits = {}) {
    const call_site at = limits.at;
    return awaitable<op>(std::move(limits), *this, n, &at);
  }

  // From now on. Tokens that are inside stay, as far as the burst holds them.
  void set_rate(sluice::rate r);
  void set(sluice::rate r, count_type burst);

  sluice::rate rate() const noexcept;
  count_type burst() const noexcept;
  // Whole tokens inside now; some may be on their way to those who wait.
  count_type available() const noexcept;
  // How long until a request for n made now would be served, behind all who wait; the longest
  // duration if never.
  std::chrono::nanoseconds time_until(count_type n = 1, call_site at = {}) noexcept;
  // When the bucket will be full, or was, if nobody takes anything; time_point::max() if never.
  time_point full_at() const noexcept;
  std::size_t waiting() const noexcept;
  rate_limiter_stats stats() const noexcept;

 private:
  template <class, class, class>
  friend class keyed_rate_limiter;

  static constexpr const char* type_name = "sluice::rate_limiter";

  class op {
   public:
    op(rate_limiter& l, count_type n, const call_site* at) noexcept;
    bool ready() const noexcept { return false; }
    bool attempt() noexcept;
    enlisted enlist(waiter& who) noexcept;
    bool woken() const noexcept { return true; }  // handed its tokens, or refused for ever
    void retract() noexcept;
    bool spins_linked() const noexcept { return true; }  // strict order: into the line at once
    spin_budget& spin() noexcept { return limiter_.spin_; }
    status result(status ended) const noexcept {
      return ended && refused() ? status(status::full) : ended;
    }

    bool refused() const noexcept { return node_.refused; }
    watch::subject about() const noexcept {
      return {.object = &limiter_,
              .type = type_name,
              .wants = "acquire",
              .ends_in_time = limiter_.rate().count > 0};
    }

   private:
    friend class rate_limiter;
    struct node : wait_node {
      count_type wanted = 0;
      bool refused = false;  // more than the burst
    };
    rate_limiter& limiter_;
    node node_;
  };

  // All with guard_ held.
  op::node& front() noexcept { return static_cast<op::node&>(waiters_.front()); }
  void refill() noexcept;
  void grant(count_type n) noexcept;
  bool take(op::node& request) noexcept;   // true: it has an answer
  void serve(wake_batch& wakes) noexcept;  // as many as can be, and sets the alarm for the next
  bool serve_front(wake_batch& wakes) noexcept;
  bool set_alarm(time_point when) noexcept;  // false: that time has come
  void due(wake_batch& wakes) noexcept;      // the alarm; takes guard_ itself

  clock& clock_;
  mutable spin_lock guard_;
  spin_budget spin_;
  // Protected by guard_.
  detail::token_bucket bucket_;
  wait_list waiters_;
  wake_timer* const alarm_;
  time_point armed_for_ = time_point::max();  // max: not armed
  rate_limiter_stats stats_;
};

}  // namespace sluice
