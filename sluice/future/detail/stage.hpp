#pragma once

// One stage of a chain: the state of the new future, with the function that makes its result from
// the result of the preceding future. `stage` is for functions that return the value, `flat_stage`
// for functions that return a future of it.
//
// The function is an action: called once with the settled input, it sets the output, its second
// argument. It is destroyed before the result is published, so its captures are freed by then.

#include <memory>
#include <type_traits>
#include <utility>

#include "sluice/future/detail/future_parts.hpp"
#include "sluice/future/future_error.hpp"

namespace sluice::detail {

// A function that is destroyed as soon as it has been called. Must be called or ended exactly once.
template <class Action>
class once {
 public:
  explicit once(Action&& a) noexcept(std::is_nothrow_move_constructible_v<Action>)
      : action_(std::move(a)) {}
  ~once() {}
  template <class... Args>
  auto operator()(Args&... args) noexcept {
    struct ending {
      Action& called;
      ~ending() { std::destroy_at(&called); }
    } const at_end{action_};
    return action_(args...);
  }
  // Destroys it without a call.
  void end() noexcept { std::destroy_at(&action_); }

 private:
  union {
    Action action_;
  };
};

// The executor of a stage, which it uses until its function has ended. Null: the stage runs on the
// thread that completes the preceding future.
class stage_place {
 public:
  explicit stage_place(executor* on) noexcept : on_(on) {
    if (on != nullptr) on->begin_use(executor_user::stage);
  }
  executor* on() const noexcept { return on_; }
  // Called after the function has ended and before the result is published: the consumer may then
  // end the executor.
  template <class U>
  void leave(settled<U>& result) const noexcept {
    if (on_ == nullptr) return;
    result.report_unread(on_);
    on_->end_use(executor_user::stage);
  }

 private:
  executor* const on_;
};

template <class T, class U, class Action>
class stage final : public future_state<U> {
 public:
  stage(executor* on, Action&& action)
      : future_state<U>(sizeof(stage), nullptr), action_(std::move(action)), place_(on) {}

  state_base* arrived(state_base& from) noexcept override {
    source_ = static_cast<future_state<T>*>(&from);
    if (may_run_here(place_.on())) [[likely]] return step();
    post_or_run_here(*this, place_.on());
    return nullptr;
  }
  void run() noexcept override {
    finish_with([this] { return step(); });
  }

 private:
  state_base* step() noexcept {
    future_state<T>& from = *source_;
    action_(from.result, this->result);
    from.consumed();
    place_.leave(this->result);
    return this;
  }

  future_state<T>* source_;  // set when it has arrived
  once<Action> action_;
  const stage_place place_;  // last member: nothing throws after its construction
};

// A state that gets its result from another future, which is known only later. Created with two
// references to its node, as a source_state.
template <class U>
class forwarding_state : public future_state<U>, public cancel_node {
 public:
  void* passes_on_to() noexcept override { return passing_ ? this : nullptr; }

 protected:
  explicit forwarding_state(std::size_t bytes) noexcept
      : future_state<U>(bytes, this), cancel_node(2) {}
  ~forwarding_state() = default;
  void destroy() noexcept override { this->free(); }

  bool is_passing() const noexcept { return passing_; }

  // Producer: makes the result of `inner` the result of this state. Returns the state to publish
  // now, or null.
  state_base* adopt(future_parts<U> inner) noexcept {
    check(inner.state != nullptr, "sluice::future", "a valid future from the function");
    // If the continuation only passes the result on, let it wait for `inner` directly: a loop of
    // futures, each returned by the function of the previous one, then does not grow.
    if (continuation* const next = this->attached(); next != nullptr) {
      if (void* const target = next->passes_on_to(); target != nullptr) {
        // The target's upstream link refers to this state until the target replaces it.
        state_base* const done =
            static_cast<forwarding_state*>(target)->wait_for_result(std::move(inner));
        this->leave();
        return done;
      }
    }
    passing_ = true;
    return wait_for_result(std::move(inner));
  }

  state_base* pass(state_base& from) noexcept {
    auto& source = static_cast<future_state<U>&>(from);
    move_result(source.result, this->result);
    source.consumed();
    return this;
  }

 private:
  state_base* wait_for_result(future_parts<U> inner) noexcept {
    if (inner.state->is_ready()) return pass(inner.take_state());
    cancel_node* const up = inner.way_back.get();
    // Link first, then search: if several threads close a cycle at once, the last one detects it.
    this->wait_for(std::move(inner.way_back));
    if (up != nullptr && up->reaches(*this)) {
      this->wait_for({});
      inner.drop();
      this->result.fail(std::make_exception_ptr(future_error(future_error::cycle)));
      return this;
    }
    auto& source = inner.take_state();
    if (source.attach(*this)) return nullptr;  // after this, the state may be destroyed
    return pass(source);
  }

  bool passing_ = false;  // set before the state is attached to its source
};

template <class T, class U, class Action>
class flat_stage final : public forwarding_state<U> {
 public:
  flat_stage(executor* on, Action&& action, cancel_ref up)
      : forwarding_state<U>(sizeof(flat_stage)), action_(std::move(action)), place_(on) {
    this->wait_for(std::move(up));
  }

  state_base* arrived(state_base& from) noexcept override {
    if (this->is_passing()) return this->pass(from);
    source_ = static_cast<future_state<T>*>(&from);
    if (may_run_here(place_.on())) return step();
    post_or_run_here(*this, place_.on());
    return nullptr;
  }
  void run() noexcept override {
    finish_with([this] { return step(); });
  }

 private:
  state_base* step() noexcept {
    future_state<T>& from = *source_;
    future_parts<U> inner = action_(from.result, this->result);
    from.consumed();
    place_.leave(this->result);
    if (this->result.is_set()) return this;
    return this->adopt(std::move(inner));
  }

  future_state<T>* source_;  // set when it has arrived
  once<Action> action_;
  const stage_place place_;  // last member, as in stage
};

// Attaches a stage to a future and returns the future of the stage.
template <class U, class T, class Action>
future<U> add_stage(future_parts<T>& from, Action action) {
  static_assert(!is_future_v<U>, "a future of a future: use and_then");
  auto* const next = make_state<stage<T, U, Action>>(from.on, std::move(action));
  auto result =
      future_access::make(future_parts<U>(next, std::move(from.way_back), from.on));
  attach_or_run(from.take_state(), *next);
  return result;
}

template <class U, class T, class Action>
future<U> add_flat_stage(future_parts<T>& from, Action action) {
  auto* const next =
      make_state<flat_stage<T, U, Action>>(from.on, std::move(action), from.way_back.copy());
  auto result = future_access::make(future_parts<U>(next, cancel_ref::adopt(next), from.on));
  from.way_back.reset();
  attach_or_run(from.take_state(), *next);
  return result;
}

}  // namespace sluice::detail
