#pragma once

// Bounds a rate, with a burst: a bucket that holds at most `burst` tokens and fills at a steady
// rate; requests for more tokens than it holds wait.
//
// Use it in front of a resource with a limit of calls per second. Prefer `bulkhead` or `semaphore`
// for a limit of concurrent calls, and `keyed_rate_limiter` for a rate per customer or address.
//
// Guarantees: any thread may call anything. Waiters are served strictly in order of arrival, also
// when they request different amounts: a large request is not overtaken, not even by a
// `try_acquire`. Tokens are counted exactly, as fractions, so nothing drifts: over time t at
// most burst + rate * t tokens are given, and exactly that many under demand. A waiter that was
// woken late is served as of the moment its tokens were there, so at most one request can be on
// top. A request for more than the burst can never succeed: every form returns `full` at once, and
// waiting requests do when the burst is lowered below them. Acquiring 0 or less, and destroying it
// with waiters inside, are broken contracts. A rate of 0 serves no request until it is changed.
// Where you resume: a coroutine on its executor, else on the clock's thread.
// Cancel safety: a wait that timed out or was stopped took no token.
// Cost: no polling: one timer, armed for the first waiter. One allocation, at construction; waiting
// allocates nothing. A try is a short lock and a clock reading.
//
//     rate_limiter calls({.rate = {100, 1s}, .burst = 20});
//     calls.acquire();                                       // waits for one
//     if (!calls.try_acquire(5)) reply(429, calls.time_until(5));
//     if (auto s = calls.acquire(2, 50ms); !s) reply(503, to_string(s));
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
#include "sluice/sync/detail/wake_timer.hpp"
#include "sluice/sync/named.hpp"
#include "sluice/sync/spin_lock.hpp"
#include "sluice/sync/wait.hpp"

namespace sluice {

struct rate_limiter_options {
  sluice::rate rate;
  std::int64_t burst = 1;          // at least 1
  std::int64_t initial = -1;       // tokens inside at the start; -1: a full burst
  sluice::clock* clock = nullptr;  // null: the real clock; outlives the limiter
  std::string name{};              // shown in reports; empty: none
};

struct rate_limiter_stats {
  std::int64_t granted = 0;   // tokens given
  std::uint64_t served = 0;   // requests that got their tokens
  std::uint64_t waits = 0;    // requests that waited
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

  // Blocks until a token is taken; every burst holds at least one.
  void acquire(call_site at = {}) {
    const status ended = acquire(1, wait_limits(at));
    check(static_cast<bool>(ended), type_name, "an unlimited wait to end with a token", at);
  }
  // Blocks until n tokens are taken. Returns ok, or full if n is more than the burst.
  status acquire(count_type n, call_site at = {}) { return acquire(n, wait_limits(at)); }
  // Blocks until n tokens are taken, within the limits. Returns ok, full, timed_out or stopped.
  status acquire(count_type n, const wait_limits& limits) {
    return block_on(op(*this, n, &limits.at), limits);
  }
  status acquire(const wait_limits& limits) { return acquire(1, limits); }
  bool try_acquire(count_type n = 1, call_site at = {});
  // co_await returns a status.
  auto async_acquire(count_type n = 1, wait_limits limits = {}) {
    const call_site at = limits.at;
    return awaitable<op>(std::move(limits), *this, n, &at);
  }

  // Changes the rate. Tokens inside stay, up to the burst.
  void set_rate(sluice::rate r);
  void set(sluice::rate r, count_type burst);

  sluice::rate rate() const noexcept;
  count_type burst() const noexcept;
  // Whole tokens inside now; some may be about to go to waiters.
  count_type available() const noexcept;
  // Returns the time until a request for n made now would be served, after all waiters; the longest
  // duration if never.
  std::chrono::nanoseconds time_until(count_type n = 1, call_site at = {}) noexcept;
  // Returns the time at which the bucket is or was full if no token is taken; time_point::max() if
  // never.
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
    enlisted enlist(waiter& waiting) noexcept;
    bool woken() const noexcept { return true; }  // always handed its tokens, or refused
    void retract() noexcept;
    bool spins_linked() const noexcept { return true; }  // strict order: joins the list at once
    spin_budget& spin() noexcept { return limiter_.spin_; }
    status result(status ended) const noexcept {
      return ended && refused() ? status(status::full) : ended;
    }

    bool refused() const noexcept { return node_.refused; }
    wait_report::subject wait_subject() const noexcept {
      return {.object = &limiter_,
              .type = type_name,
              .wants = "acquire",
              .ends_by_itself = limiter_.rate().count > 0};
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

  // All must hold guard_.
  op::node& front() noexcept { return static_cast<op::node&>(waiters_.front()); }
  void refill() noexcept;
  void grant(count_type n) noexcept;
  bool take(op::node& request) noexcept;   // returns true if granted or refused
  void serve(wake_batch& wakes) noexcept;  // serves all it can, and sets the alarm for the next
  bool serve_front(wake_batch& wakes) noexcept;
  bool set_alarm(time_point when) noexcept;  // returns false if that time has passed
  void due(wake_batch& wakes) noexcept;      // runs at the alarm; takes guard_ itself

  clock& clock_;
  mutable spin_lock guard_;
  spin_budget spin_;
  // Protected by guard_.
  detail::token_bucket bucket_;
  wait_list waiters_;
  detail::wake_timer* const alarm_;
  time_point armed_for_ = time_point::max();  // max: not armed
  rate_limiter_stats stats_;
};

}  // namespace sluice
