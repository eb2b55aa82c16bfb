#pragma once

// The state of an async function: holds the function until an executor runs it.

#include <exception>
#include <functional>
#include <stop_token>
#include <type_traits>
#include <utility>

#include "sluice/executor/submission.hpp"
#include "sluice/future/detail/actions.hpp"
#include "sluice/future/detail/stage.hpp"
#include "sluice/future/future.hpp"
#include "sluice/future/future_error.hpp"
#include "sluice/future/start_on.hpp"

namespace sluice::detail {

// Calls a user's function with the token, or with nothing if it takes nothing.
template <class F>
decltype(auto) call_with_token(F& f, cancel_node& node) {
  if constexpr (std::is_invocable_v<F&, std::stop_token>) {
    return std::invoke(f, node.token());
  } else {
    static_assert(std::is_invocable_v<F&>, "a function of nothing, or of a std::stop_token");
    return std::invoke(f);
  }
}
template <class F>
using token_call_t = decltype(call_with_token(std::declval<F&>(), std::declval<cancel_node&>()));

template <class U, class F>
class async_state final : public forwarding_state<U> {
 public:
  template <class G>
  explicit async_state(G&& f)
      : forwarding_state<U>(sizeof(async_state)), call_(action{F(std::forward<G>(f))}) {}

  state_base* arrived(state_base& from) noexcept override { return this->pass(from); }
  void run() noexcept override {}

  // Exactly one of `call` and `drop_unrun` is called, once.
  void call() noexcept {
    finish_with([this]() -> state_base* {
      cancel_node& node = *this;
      if (wait_report::is_on()) [[unlikely]] this->made_by(wait_report::party::current());
      if constexpr (is_future_v<token_call_t<F>>) {
        future_parts<U> inner = call_(node, this->result);
        this->made();
        if (!this->result.is_set()) return this->adopt(std::move(inner));
      } else {
        call_(node, this->result);
        this->made();
      }
      this->result.report_unread(executor::current());
      return this;
    });
  }
  void drop_unrun() noexcept {
    call_.end();
    this->result.fail(std::make_exception_ptr(future_error(why_unrun_, detail_)));
    finish(*this);
  }
  // Called by the owner of the function, before `drop_unrun`.
  void refused(status reason) noexcept {
    switch (reason) {
      case status::full: set_rejected("it is full"); break;
      case status::closed: set_rejected("it is closed"); break;
      case status::timed_out: set_rejected("no capacity in time"); break;
      case status::stopped: set_rejected("stopped while waiting for capacity"); break;
      default: set_rejected("for no known reason"); break;
    }
  }

 private:
  struct action {
    F f;
    auto operator()(cancel_node& node, settled<U>& out) noexcept {
      const auto call = [&]() -> decltype(auto) { return call_with_token(f, node); };
      using made = decltype(produce(out, call));
      if (node.is_cancelled()) {
        out.fail(std::make_exception_ptr(
            future_error(future_error::cancelled, "before its function began")));
        return made();
      }
      return produce(out, call);
    }
  };
  void set_rejected(const char* reason) noexcept {
    why_unrun_ = future_error::rejected;
    detail_ = reason;
  }

  once<action> call_;
  // Written only by the owner of the function.
  future_error::reason why_unrun_ = future_error::broken_promise;
  const char* detail_ = "its executor dropped the function";
};

// The submitted callable: runs the function once. If it is destroyed unrun, the future fails.
template <class State>
class async_job {
 public:
  explicit async_job(State* state) noexcept : state_(state) {}
  async_job(async_job&& other) noexcept : state_(std::exchange(other.state_, nullptr)) {}
  async_job& operator=(async_job&&) = delete;
  ~async_job() {
    if (state_ != nullptr) state_->drop_unrun();
  }
  void operator()() { std::exchange(state_, nullptr)->call(); }

 private:
  State* state_;
};

// One async call: the future and the submission.
template <class F>
class async_start {
 public:
  using value = future_value_t<token_call_t<F>>;

  template <class G>
  async_start(start_on where, G&& f)
      : state_(make_state<state>(std::forward<G>(f))),
        result(
            future_access::make(future_parts<value>(state_, cancel_ref::adopt(state_), &where.on))),
        function(where.priority, async_job<state>(state_)) {
    if (wait_report::is_on()) [[unlikely]]
      state_->made_by(wait_report::party::executor(&where.on));
  }

  // Called with the result of the submit. A refused submission is still in `function`.
  void answered(status submitted) noexcept {
    if (submitted || submitted == status::dropped) return;
    state_->refused(submitted);
    function = submission();
  }

 private:
  using state = async_state<value, F>;
  state* const state_;

 public:
  future<value> result;
  submission function;
};

}  // namespace sluice::detail
