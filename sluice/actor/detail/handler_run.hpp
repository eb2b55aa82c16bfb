#pragma once

// Runs a handler that is a coroutine: every resumption is in its actor's turn, and while it has the
// exclusive turn the actor begins no other message.

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

// Resumes the coroutine in its actor's turn, and records whether it has the exclusive turn.
class handler_sink final : public work_sink, public wait_report::party_sink {
 public:
  explicit handler_sink(cell& c) noexcept : owner(c), message(cell::current_mark()) {}
  void post(work& item) noexcept override {
    const bool is_accepted = owner.resume(item);
    check(is_accepted, "sluice::actor", "an actor to end after its coroutines");
  }
  void acquire_exclusive() noexcept {
    owner.acquire_exclusive();
    is_exclusive_.store(true, relaxed);
  }
  void release_exclusive() noexcept {
    if (!is_exclusive_.load(relaxed)) return;
    is_exclusive_.store(false, relaxed);
    owner.release_exclusive(message);
  }
  // The holder of the exclusive turn acts for the actor.
  wait_report::party acts_for() const noexcept override {
    // relaxed: a wait report is a snapshot.
    return is_exclusive_.load(relaxed) ? owner.acting_party() : wait_report::party();
  }
  // Begins a reentrant scope: other messages are handled until every scope has ended. Scopes may
  // nest, or overlap as in a when_all.
  void begin_reentrant() noexcept {
    ++reentrant_scopes_;
    release_exclusive();
  }
  // Returns true if that was the last scope: the handler then needs the exclusive turn again.
  bool end_reentrant() noexcept { return --reentrant_scopes_ == 0; }
  // Called when the cell has acquired the exclusive turn for this handler again.
  void reacquired() noexcept {
    is_exclusive_.store(true, relaxed);
    owner.report_resumed(message);
  }

  cell& owner;
  const message_mark message;

 private:
  atomic<bool> is_exclusive_{false};  // changed only in the actor's turn
  std::uint32_t reentrant_scopes_ = 0;
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

// co_await returns the sink of the awaiting coroutine, without suspending.
class current_sink_query {
 public:
  bool await_ready() const noexcept { return false; }
  template <class Promise>
  bool await_suspend(std::coroutine_handle<Promise> awaiting) noexcept {
    found_ = dynamic_cast<handler_sink*>(awaiting.promise().resume_sink());
    return false;
  }
  handler_sink* await_resume() const noexcept { return found_; }

 private:
  handler_sink* found_ = nullptr;
};

// co_await ends a reentrant scope and returns with the exclusive turn, unless another scope of the
// handler is open. The wait appears in wait reports.
class exclusive_wait final : private work, private waiter {
 public:
  exclusive_wait(handler_sink& s, call_site at) noexcept
      : waiter(&ignore_wake, false), sink_(s), limits_(at) {}
  bool await_ready() noexcept {
    if (!sink_.end_reentrant()) return true;
    if (sink_.owner.is_exclusive()) return false;
    sink_.owner.acquire_exclusive();
    sink_.reacquired();
    return true;
  }
  template <class Promise>
  void await_suspend(std::coroutine_handle<Promise> waiting) {
    waiting_ = waiting;
    if (wait_report::is_on()) [[unlikely]]
      begin_report(wait_report::party_of(waiting));
    sink_.owner.wait_for_exclusive(*this);
  }
  void await_resume() const noexcept {}

  // others_can_end: the holder may begin a reentrant scope from another part of its handler.
  wait_report::subject wait_subject() const noexcept {
    return {.object = &sink_.owner,
            .type = "sluice::actor",
            .wants = "resume in",
            .by = wait_report::served_by::one,
            .others_can_end = true,
            .target = sink_.owner.as_party(),
            .activity = "is on another message"};
  }

 private:
  void begin_report(wait_report::party waiting) noexcept {
    const bool is_committed = commit();
    check(is_committed, "sluice::actor", "a wait without limits to be committed (internal error)");
    report_.begin(*this, *this, limits_, waiting, &sink_);
  }
  void run() noexcept override {
    report_.end();
    sink_.reacquired();
    waiting_.resume();
  }
  static void ignore_wake(waiter&) noexcept {}

  handler_sink& sink_;
  std::coroutine_handle<> waiting_;
  const wait_limits limits_;
  wait_report::wait_record report_;
};

// Fails the actor with `error`, unless it is only the result of a requested stop.
void task_failed(cell& c, const std::exception_ptr& error) noexcept;

// A is the type with the handler. `a`, by way of `keeps`, and the message in this frame outlive the
// coroutine of the handler.
template <class A, class M, class Reply, class Keeps>
handler_run run_task(cell& c, A& a, M m, responder<Reply> asker, [[maybe_unused]] Keeps keeps) {
  c.task_began();
  handler_sink& sink = *co_await current_sink_query();
  sink.acquire_exclusive();
  std::exception_ptr error;
  try {
    if constexpr (requires { a.on(std::move(m), std::move(asker)); }) {
      co_await a.on(std::move(m), std::move(asker));
    } else if constexpr (std::is_void_v<Reply>) {
      co_await a.on(std::move(m));
      asker.reply();
    } else {
      asker.reply(co_await a.on(std::move(m)));
    }
  } catch (...) {
    error = std::current_exception();
  }
  if (error != nullptr) {
    asker.fail(error);
    task_failed(c, error);
  }
  sink.release_exclusive();
  c.task_ended();
}

// Replies when the future is ready. Other messages are handled meanwhile.
template <class Reply>
handler_run reply_later(cell& c, future<Reply> f, responder<Reply> asker) {
  c.task_began();
  std::exception_ptr error;
  try {
    if constexpr (std::is_void_v<Reply>) {
      co_await std::move(f);
      asker.reply();
    } else {
      asker.reply(co_await std::move(f));
    }
  } catch (...) {
    error = std::current_exception();
  }
  if (error != nullptr) asker.fail(error);
  c.task_ended();
}

}  // namespace sluice::detail
