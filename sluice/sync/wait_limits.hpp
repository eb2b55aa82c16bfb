#pragma once

// The limits of a wait: none, a deadline, a stop_token, or both; the first one reached ends it.
// Every waiting call takes one, as its last argument if it can, which converts from
// - a duration from now: `q.pop(50ms)`;
// - a time point of any clock: `q.pop(std::chrono::system_clock::now() + 1h)`;
// - a deadline, also on a clock of your own: `q.pop(deadline::after(50ms, clock))`;
// - a stop_token: `q.pop(stop)`;
// - any of the first three with a stop_token: `q.pop({50ms, stop})`.
//
// A conversion records the line of the call, which wait reports show. The type has constructors
// because g++ 12 destroys an aggregate temporary twice in a co_await expression.

#include <chrono>
#include <stop_token>
#include <utility>

#include "sluice/base/call_site.hpp"
#include "sluice/base/deadline.hpp"

namespace sluice {

struct wait_limits {
  wait_limits(call_site caller = {}) noexcept : at(caller) {}
  wait_limits(sluice::deadline until, std::stop_token token = {}, call_site caller = {}) noexcept
      : deadline(until), stop(std::move(token)), at(caller) {}
  wait_limits(std::stop_token token, call_site caller = {}) noexcept
      : stop(std::move(token)), at(caller) {}
  template <class Rep, class Period>
  wait_limits(std::chrono::duration<Rep, Period> wait, std::stop_token token = {},
              call_site caller = {}) noexcept
      : wait_limits(sluice::deadline::after(wait), std::move(token), caller) {}
  template <class Clock, class Duration>
  wait_limits(std::chrono::time_point<Clock, Duration> when, std::stop_token token = {},
              call_site caller = {}) noexcept
      : wait_limits(sluice::deadline::at(when), std::move(token), caller) {}

  sluice::deadline deadline{};
  std::stop_token stop{};
  call_site at;
};

}  // namespace sluice
