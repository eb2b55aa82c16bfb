#pragma once

// Sending and asking, for everything that addresses an actor.

#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "sluice/actor/actor_error.hpp"
#include "sluice/actor/detail/capacity_wait.hpp"
#include "sluice/actor/detail/dispatch.hpp"
#include "sluice/actor/detail/place_queue.hpp"
#include "sluice/actor/detail/reported_wait.hpp"
#include "sluice/actor/message.hpp"
#include "sluice/base/outcome.hpp"
#include "sluice/future/future.hpp"
#include "sluice/future/future_error.hpp"
#include "sluice/future/promise.hpp"
#include "sluice/future/task.hpp"

namespace sluice::detail {

// Sends a message by `submit` (an envelope& -> status).
template <class M, class Submit>
status send_through(const envelope_ops& ops, M& m, const Submit& submit) {
  auto* const l = make_envelope<letter<M>>(ops, std::move(m));
  const status result = submit(*l);
  if (result == status::ok || result == status::dropped) [[likely]]
    return result;
  // The caller keeps the message.
  if constexpr (std::is_move_assignable_v<M>) {
    m = std::move(l->message);
  } else {
    std::destroy_at(&m);
    std::construct_at(&m, std::move(l->message));
  }
  free_envelope(*l);
  return result;
}

template <class M>
status send_to(cell& receiver, const envelope_ops& ops, M& m, const wait_limits* limits) {
  return send_through(ops, m, [&](envelope& e) { return receiver.send(e, limits); });
}

// The wait of a coroutine to send: for capacity in the mailbox, or, for an actor that can be
// passivated, for its place in memory. The caller owns the letter until the result is ok or
// dropped.
class submit_op {
 public:
  submit_op(cell_ptr receiver, envelope& letter) : receiver_(std::move(receiver)), letter_(letter) {
    wait_.emplace(*receiver_, letter_);
  }

  bool ready() const noexcept { return wait_->ready(); }
  bool attempt() {
    result_ = receiver_->send(letter_, nullptr);
    if (result_ != status::full) return true;
    // A passivated actor: waits for its successor instead.
    status reason = status::ok;
    if (cell_ptr next = receiver_->successor_if_closed(reason)) {
      receiver_ = std::move(next);
      wait_.emplace(*receiver_, letter_);
    } else if (reason == status::full) {
      if (receiver_->places()->may_wait()) line_ = receiver_->places();
      return line_ == nullptr;
    }
    return !receiver_->may_wait(result_);
  }
  enlisted enlist(waiter& waiting) noexcept {
    has_waited_ = true;
    return line_ != nullptr ? line_->enlist(place_, waiting) : wait_->enlist(waiting);
  }
  bool woken() const noexcept { return true; }
  void retract() noexcept { line_ != nullptr ? line_->retract(place_) : wait_->retract(); }
  spin_budget& spin() noexcept { return wait_->spin(); }
  wait_report::subject wait_subject() const noexcept {
    if (line_ == nullptr) return wait_->wait_subject();
    return {line_->owner(), "sluice::keyed_actors", "have a place in"};
  }
  status result(status ended) noexcept {
    if (line_ != nullptr) return ended ? send_in_place() : ended;
    const status result = !has_waited_ && ended ? result_ : status(wait_->result(ended));
    if (!has_waited_ || result != status::closed) return result;
    if (receiver_->pass_to_successor(letter_)) return status::ok;
    receiver_->report_lost(letter_);
    return result;
  }

 private:
  // It has waited once: if others have filled the mailbox meanwhile, the letter is accepted beyond
  // the bound.
  status send_in_place() noexcept {
    cell_ptr next;
    status result = status::closed;
    do {
      next = line_->take();
      if (next) result = next->send(letter_, nullptr);
    } while (next && result == status::full && next->is_terminated());
    if (!next) receiver_->report_lost(letter_);
    if (next && next->may_wait(result)) {
      (void)next->send_uncounted(letter_);
      result = status::ok;
    }
    line_->done();
    return result;
  }

  cell_ptr receiver_;
  envelope& letter_;
  std::optional<reported_capacity_wait> wait_;  // never empty
  place_queue* line_ = nullptr;                 // set if it waits for a place
  wait_node place_;
  status result_ = status::ok;
  bool has_waited_ = false;
};

// The same wait, owning its letter.
template <class M>
class send_op : public submit_op {
 public:
  send_op(cell_ptr receiver, const envelope_ops& ops, M m)
      : send_op(std::move(receiver), make_envelope<letter<M>>(ops, std::move(m))) {}
  send_op(const send_op&) = delete;
  send_op& operator=(const send_op&) = delete;
  ~send_op() {
    if (letter_ != nullptr) free_envelope(*letter_);
  }
  status result(status ended) noexcept {
    const status result = submit_op::result(ended);
    if (result == status::ok || result == status::dropped) letter_ = nullptr;
    return result;
  }

 private:
  send_op(cell_ptr receiver, letter<M>* l) : submit_op(std::move(receiver), *l), letter_(l) {}

  letter<M>* letter_;
};

template <class E>
struct envelope_deleter {
  void operator()(E* e) const noexcept { free_envelope(*e); }
};
template <class E>
using envelope_ptr = std::unique_ptr<E, envelope_deleter<E>>;

// ---- requests

// Returns the future, ended by `limits` at the latest. A deadline without a clock is on the real
// clock, even if the system has another one.
template <class T>
future<T> limited(const wait_limits& limits, future<T> f) {
  if (limits.stop.stop_possible()) f = std::move(f).with_stop(limits.stop);
  const deadline& when = limits.deadline;
  if (when.is_never()) return f;
  clock& on = when.on() != nullptr ? *when.on() : real_clock();
  const time_point now = on.now();
  // An expired deadline may be time_point::min(): subtracting from it would overflow.
  return std::move(f).with_timeout(when.when() > now ? when.when() - now : now - now, on);
}

// As `limited`, for an ask that is reported to the observer.
template <class T>
future<T> limited_reported(reported_ask_ptr report, const wait_limits& limits, future<T> f) {
  f = limited(limits, std::move(f));
  if (report == nullptr) [[likely]]
    return f;
  return std::move(f).finally([report = std::move(report)] { report->end(); });
}

// Releases an accepted request, and fails a rejected one. `name` (-> string) is the receiver.
template <class M, class Name>
status finish_request(envelope_ptr<request_letter<M>> l, status result, const Name& name) noexcept {
  if (!result && result != status::dropped) {
    refuse(*l.release(), name(), result);
  } else {
    (void)l.release();
  }
  return result;
}

// Forwards a request by `submit` (an envelope& -> status).
template <class M, class Submit, class Name>
status forward_through(const envelope_ops& ops, M m, responder<reply_of<M>> asker, const Name& name,
                       const Submit& submit) {
  envelope_ptr<request_letter<M>> l(
      make_envelope<request_letter<M>>(ops, std::move(m), std::move(asker)));
  const status result = submit(*l);
  return finish_request<M>(std::move(l), result, name);
}

template <class M, class Submit, class Name>
future<reply_of<M>> request_through(const cell& asked, const envelope_ops& ops, M m,
                                    reported_ask_ptr report, late_note_ptr late, const Name& name,
                                    const Submit& submit) {
  promise<reply_of<M>> answer;
  if (wait_report::is_on()) [[unlikely]]
    answer.made_by(asked.as_party());
  future<reply_of<M>> f = answer.get_future();
  responder<reply_of<M>> asker(std::move(answer), std::move(report), std::move(late));
  (void)forward_through(ops, std::move(m), std::move(asker), name, submit);
  return f;
}

template <class M>
future<reply_of<M>> ask_of(cell& receiver, const envelope_ops& ops, M m,
                           const wait_limits& limits) {
  reported_ask_ptr report = reported_ask::of(receiver);
  auto answer = request_through(
      receiver, ops, std::move(m), report, note_if_limited(receiver, ops, limits),
      [&] { return receiver.name(); }, [&](envelope& e) { return receiver.send(e, &limits); });
  return limited_reported(std::move(report), limits, std::move(answer));
}

// Reports the new receiver of a request to the observer and in wait reports.
template <class R>
void report_receiver(const responder<R>& asker, const cell& receiver) {
  if (asker.report() != nullptr) asker.report()->move_to(receiver);
  if (wait_report::is_on()) [[unlikely]]
    asker.asked_of(receiver.as_party());
}

template <class M>
status forward_to(cell& receiver, const envelope_ops& ops, M m, responder<reply_of<M>> asker,
                  const wait_limits& limits) {
  report_receiver(asker, receiver);
  return forward_through(
      ops, std::move(m), std::move(asker), [&] { return receiver.name(); },
      [&](envelope& e) { return receiver.send(e, &limits); });
}

// Awaits an answer within the limits. At the limits it cancels the future: the responder is then no
// longer wanted.
template <class T>
task<T> answer_within(future<T> f, reported_ask_ptr report, wait_limits limits) {
  class at_end {
   public:
    explicit at_end(reported_ask_ptr t) noexcept : report_(std::move(t)) {}
    at_end(const at_end&) = delete;
    at_end& operator=(const at_end&) = delete;
    ~at_end() {
      if (report_ != nullptr) report_->end();
    }

   private:
    const reported_ask_ptr report_;
  };
  const at_end guard(std::move(report));
  auto waiting = f.async_get(std::move(limits));
  auto answer = co_await waiting;
  if (!answer) {
    f.cancel();
    status reason = status::ok;
    if constexpr (std::is_void_v<T>) {
      reason = answer;
    } else {
      reason = answer.status();
    }
    throw future_error(reason == status::timed_out ? future_error::timed_out
                                                   : future_error::cancelled);
  }
  if constexpr (!std::is_void_v<T>) co_return *std::move(answer);
}

// ask_of and forward_to for coroutines: no thread is blocked.
template <class M>
task<status> forward_later(cell_ptr receiver, envelope_ptr<request_letter<M>> l,
                           wait_limits limits) {
  awaitable<submit_op> submission(std::move(limits), receiver, *l);
  const status result = co_await submission;
  co_return finish_request<M>(std::move(l), result, [&] { return receiver->name(); });
}

template <class M>
task<status> forward_async(cell_ptr receiver, const envelope_ops& ops, M m,
                           responder<reply_of<M>> asker, wait_limits limits) {
  report_receiver(asker, *receiver);
  envelope_ptr<request_letter<M>> l(
      make_envelope<request_letter<M>>(ops, std::move(m), std::move(asker)));
  return forward_later<M>(std::move(receiver), std::move(l), std::move(limits));
}

template <class T>
task<T> submit_and_await(task<status> submission, future<T> f, reported_ask_ptr report,
                         wait_limits limits) {
  const status result = co_await std::move(submission);
  if (!result) limits = {};  // the future has the reason already
  auto answer = answer_within(std::move(f), std::move(report), std::move(limits));
  co_return co_await std::move(answer);
}

template <class M>
task<reply_of<M>> ask_async(cell_ptr receiver, const envelope_ops& ops, M m, wait_limits limits) {
  promise<reply_of<M>> answer;
  future<reply_of<M>> f = answer.get_future();
  reported_ask_ptr report = reported_ask::of(*receiver);
  responder<reply_of<M>> asker(std::move(answer), report, note_if_limited(*receiver, ops, limits));
  auto submission = forward_async(std::move(receiver), ops, std::move(m), std::move(asker), limits);
  return submit_and_await(std::move(submission), std::move(f), std::move(report),
                          std::move(limits));
}

}  // namespace sluice::detail
