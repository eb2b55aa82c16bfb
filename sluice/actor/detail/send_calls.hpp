#pragma once

// The calls that come down to two others, `send_within` and `try_send_ref`: written once for all
// that a message can be sent to. `Usual` is the message of one that takes only that.

#include <chrono>
#include <stop_token>
#include <utility>

#include "sluice/actor/message.hpp"
#include "sluice/base/deadline.hpp"
#include "sluice/base/outcome.hpp"
#include "sluice/sync/waiter.hpp"

namespace sluice::detail {

template <class Self, class Usual = void>
class send_calls {
 public:
  template <message M = Usual>
  status send(M m) const {
    const wait_limits none;
    return self().send_within(m, none);
  }
  template <message M = Usual>
  status send(M m, std::stop_token stop) const {
    return self().send_within(m, wait_limits(std::move(stop)));
  }
  template <message M = Usual>
  status try_send(M m) const {
    return self().try_send_ref(m);
  }
  template <message M = Usual, class Rep, class Period>
  status try_send_for(M m, std::chrono::duration<Rep, Period> wait,
                      std::stop_token stop = {}) const {
    return self().send_within(m, {deadline::after(wait), std::move(stop)});
  }
  template <message M = Usual, class Clock, class Duration>
  status try_send_until(M m, std::chrono::time_point<Clock, Duration> when,
                        std::stop_token stop = {}) const {
    return self().send_within(m, {deadline::at(when), std::move(stop)});
  }

 protected:
  send_calls() noexcept = default;
  ~send_calls() = default;
  send_calls(const send_calls&) noexcept = default;
  send_calls(send_calls&&) noexcept = default;
  send_calls& operator=(const send_calls&) noexcept = default;
  send_calls& operator=(send_calls&&) noexcept = default;

 private:
  const Self& self() const noexcept { return static_cast<const Self&>(*this); }
};

}  // namespace sluice::detail
