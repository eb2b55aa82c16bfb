#pragma once

// The state of `with_stop`: gets its result from the first of the preceding future and a
// stop_token.
//
// References to the node: the state's, the consumer's, one for the result of the preceding future,
// one for the callback of the token.

#include <optional>
#include <stop_token>
#include <utility>

#include "sluice/future/detail/future_parts.hpp"
#include "sluice/future/future_error.hpp"

namespace sluice::detail {

template <class T>
class stop_state final : public future_state<T>, public cancel_node {
 public:
  explicit stop_state(cancel_ref up) noexcept
      : future_state<T>(sizeof(stop_state), this), cancel_node(4) {
    this->wait_for(std::move(up));
  }

  // Registers the callback before it attaches the state, so `arrived` finds a callback to remove.
  void start(future_state<T>& from, const std::stop_token& stop) {
    callback_.emplace(stop, end_on_stop{*this});
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
    callback_.reset();  // waits for a running callback, which then finds `ended_` set
    move_result(source.result, this->result);
    source.consumed();
    this->unref(2);
    return this;
  }
  void run() noexcept override {}
  bool ends_by_itself() const noexcept override { return true; }

 private:
  struct end_on_stop {
    stop_state& state;
    void operator()() const noexcept {
      if (!state.ended_.exchange(true, relaxed)) state.end();
    }
  };

  void end() noexcept {
    this->result.fail(std::make_exception_ptr(future_error(future_error::cancelled)));
    this->cancel();
    finish(*this);
    this->unref();
  }
  // May be called from inside the callback that it destroys: allowed on its own thread.
  void destroy() noexcept override {
    callback_.reset();
    this->free();
  }

  std::optional<std::stop_callback<end_on_stop>> callback_;
  atomic<bool> ended_{false};
};

template <class T>
future<T> add_stop(future_parts<T>& from, const std::stop_token& stop) {
  if (from.state->is_ready() || !stop.stop_possible()) return future_access::make(std::move(from));
  auto* const next = make_state<stop_state<T>>(from.way_back.copy());
  auto result = future_access::make(future_parts<T>(next, cancel_ref::adopt(next), from.on));
  from.way_back.reset();
  next->start(from.take_state(), stop);
  return result;
}

}  // namespace sluice::detail
