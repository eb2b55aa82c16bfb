#pragma once

// A handler that is a coroutine, while it runs. It is resumed in its actor's turn, whatever it
// awaits, and as long as it has the floor no other message of that actor is begun.

#include <coroutine>
#include <cstdint>
#include <exception>
#include <optional>
#include <stop_token>
#include <utility>

#include "sluice/actor/detail/cell.hpp"
#include "sluice/actor/responder.hpp"
#include "sluice/base/atomic.hpp"
#include "sluice/base/check.hpp"
#include "sluice/future/task.hpp"

namespace sluice::detail {

// Where such a coroutine is resumed, and whether it has the floor.
class handler_sink final : public work_sink, public watch::party_sink {
 public:
  explicit handler_sink(cell& c) noexcept : of(c), on(cell::current_mark()) {}
  void post(work& item) noexcept override {
    const bool taken = of.resume(item);
    check(taken, "sluice::actor", "not to end before its coroutines");
  }
  void take_floor() noexcept {
    of.take_floor();
    has_floor.store(true, relaxed);
  }
  void give_floor() noexcept {
    if (!has_floor.load(relaxed)) return;
    has_floor.store(false, relaxed);
    of.give_floor(on);
  }
  // Who has the floor holds up the actor.
  watch::party acts_for() const noexcept override {
    // relaxed: whoever looks sees it as it was at one moment.
    return has_floor.load(relaxed) ? of.acting_party() : watch::party();
  }
  // Others are let in until as many have been done with it as have begun: a handler may let them in
  // from inside, or from several places at once.
  void begin_letting_in() noexcept {
    ++letting_in_;
    give_floor();
  }
  // True: that was the last, and the handler wants the floor again.
  bool end_letting_in() noexcept { return --letting_in_ == 0; }
  // The cell has taken it for this one, which had let others in.
  void go_on() noexcept {
    has_floor.store(true, relaxed);
    of.tell_resumed(on);
  }

  cell& of;
  const message_mark on;
  atomic<bool> has_floor{false};  // changed in the actor's turn alone

 private:
  std::uint32_t letting_in_ = 0;
};

struct handler_run {
  class promise_type {
   public:
    template <class... Rest>
    explicit promise_type(cell& c, Rest&&...) : sink_(c), stop_(c.task_token()) {}
    handler_run get_return_object() noexcept { return {}; }
    std::suspend_never initial_suspend() const noexcept { return {}; }
    std::suspend_never final_suspend() const noexcept { return {}; }
    void return_void() const noexcept {}
    void unhandled_exception() const noexcept { std::terminate(); }

    work_sink* resume_sink() noexcept { return &sink_; }
    const std::stop_token& stop_token() const noexcept { return stop_; }
    handler_sink& sink() noexcept { return sink_; }

   private:
    handler_sink sink_;
    const std::stop_token stop_;
  };
};

// co_await gives the coroutine's own sink, and does not suspend.
class own_sink_query {
 public:
  bool await_ready() const noexcept { return false; }
  template <class Promise>
  bool await_suspend(std::coroutine_handle<Promise> asking) noexcept {
    found_ = dynamic_cast<handler_sink*>(asking.promise().resume_sink());
    return false;
  }
  handler_sink* await_resume() const noexcept { return found_; }

 private:
  handler_sink* found_ = nullptr;
};

// co_await has the floor again, unless others are still let in from elsewhere in the handler.
// While it waits for that, whoever watches knows of it.
class floor_wait final : private work, private waiter {
 public:
  floor_wait(handler_sink& s, call_site at) noexcept
      : waiter(&is_run_instead, false), sink_(s), limits_(at) {}
  bool await_ready() noexcept {
    if (!sink_.end_letting_in()) return true;
    if (sink_.of.is_held()) return false;
    sink_.of.take_floor();
    sink_.go_on();
    return true;
  }
  template <class Promise>
  void await_suspend(std::coroutine_handle<Promise> waiting) {
    waiting_ = waiting;
    if (watch::is_on()) [[unlikely]]
      tell(watch::party_of(waiting));
    sink_.of.wait_for_floor(*this);
  }
  void await_resume() const noexcept {}

  // Who has the floor may let others in from another part of it.
  watch::subject about() const noexcept {
    return {.object = &sink_.of,
            .type = "sluice::actor",
            .wants = "go on in",
            .by = watch::served_by::one,
            .others_could = true,
            .whom = sink_.of.as_party(),
            .how = "is on another message"};
  }

 private:
  void tell(watch::party who) noexcept {
    const bool waits = commit();
    check(waits, "sluice::actor", "a wait for the floor without limits");
    told_.begin(*this, *this, limits_, who, &sink_);
  }
  void run() noexcept override {
    told_.end();
    sink_.go_on();
    waiting_.resume();
  }
  static void is_run_instead(waiter&) noexcept {}

  handler_sink& sink_;
  std::coroutine_handle<> waiting_;
  const wait_limits limits_;
  watch::wait_record told_;
};

// What has been thrown is the actor's failure, unless it is only that it was asked to stop.
void task_failed(cell& c, const std::exception_ptr& error) noexcept;

// A: the actor. It, by what `keeps` it, and the message, in this frame, outlive the handler's own
// coroutine.
template <class A, class M, class Reply, class Keeps>
handler_run run_task(cell& c, A& a, M m, responder<Reply> to, [[maybe_unused]] Keeps keeps) {
  c.task_began();
  handler_sink& sink = *co_await own_sink_query();
  sink.take_floor();
  std::exception_ptr error;
  try {
    if constexpr (requires { a.on(std::move(m), std::move(to)); }) {
      co_await a.on(std::move(m), std::move(to));
    } else if constexpr (std::is_void_v<Reply>) {
      co_await a.on(std::move(m));
      to.reply();
    } else {
      to.reply(co_await a.on(std::move(m)));
    }
  } catch (...) {
    error = std::current_exception();
  }
  if (error != nullptr) {
    to.fail(error);
    task_failed(c, error);
  }
  sink.give_floor();
  c.task_ended();
}

// A future that answers when it is ready. Does not keep messages out.
template <class Reply>
handler_run answer_later(cell& c, future<Reply> f, responder<Reply> to) {
  c.task_began();
  std::exception_ptr error;
  try {
    if constexpr (std::is_void_v<Reply>) {
      co_await std::move(f);
      to.reply();
    } else {
      to.reply(co_await std::move(f));
    }
  } catch (...) {
    error = std::current_exception();
  }
  if (error != nullptr) to.fail(error);
  c.task_ended();
}

}  // namespace sluice::detail
