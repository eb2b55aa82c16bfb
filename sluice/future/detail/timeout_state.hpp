#pragma once

// The state of `with_timeout`: gets its result from the first of the preceding future and a timer.
//
// References to the node: the state's, the consumer's, one for the result of the preceding future,
// one for the timer.

#include <utility>

#include "sluice/base/clock.hpp"
#include "sluice/future/detail/future_parts.hpp"
#include "sluice/future/future_error.hpp"

namespace sluice::detail {

template <class T>
class timeout_state final : public future_state<T>, public cancel_node, private timer {
 public:
  timeout_state(clock& on, cancel_ref up) noexcept
      : future_state<T>(sizeof(timeout_state), this), cancel_node(4), clock_(on) {
    this->wait_for(std::move(up));
  }

  // Arms the timer before it attaches the state, so `arrived` finds a timer to disarm. Throws if
  // the clock cannot allocate; `from` is then dropped.
  void start(future_state<T>& from, time_point when) {
    bool armed = false;
    try {
      armed = clock_.arm(*this, when);
    } catch (...) {
      from.drop();
      this->unref(3);  // the consumer's is the caller's
      throw;
    }
    if (!armed && claim()) fire();
    attach_or_run(from, *this);
  }

  state_base* arrived(state_base& from) noexcept override {
    auto& source = static_cast<future_state<T>&>(from);
    // relaxed: only selects one of the two; the words of the states order the result.
    if (ended_.exchange(true, relaxed)) {
      source.consumed();
      this->unref();
      return nullptr;
    }
    clock_.disarm(*this);  // after this the timer does not touch the state
    move_result(source.result, this->result);
    source.consumed();
    this->unref(2);
    return this;
  }
  void run() noexcept override {}

 private:
  bool claim() noexcept override { return !ended_.exchange(true, relaxed); }
  void fire() noexcept override {
    this->result.fail(std::make_exception_ptr(future_error(future_error::timed_out)));
    this->cancel();
    finish(*this);
    this->unref();
  }
  void destroy() noexcept override { this->free(); }
  bool ends_by_itself() const noexcept override { return true; }

  clock& clock_;
  atomic<bool> ended_{false};
};

template <class T>
future<T> add_timeout(future_parts<T>& from, deadline until, clock& on) {
  if (from.state->is_ready() || until.is_never()) return future_access::make(std::move(from));
  auto* const next = make_state<timeout_state<T>>(on, from.way_back.copy());
  auto result = future_access::make(future_parts<T>(next, cancel_ref::adopt(next), from.on));
  from.way_back.reset();
  next->start(from.take_state(), until.when());
  return result;
}

}  // namespace sluice::detail
