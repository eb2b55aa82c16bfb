#pragma once

// Sending and asking, for all that an actor can be addressed by.

#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "sluice/actor/actor_error.hpp"
#include "sluice/actor/detail/dispatch.hpp"
#include "sluice/actor/detail/place_line.hpp"
#include "sluice/actor/detail/room_wait.hpp"
#include "sluice/actor/detail/told_wait.hpp"
#include "sluice/actor/message.hpp"
#include "sluice/base/outcome.hpp"
#include "sluice/future/future.hpp"
#include "sluice/future/future_error.hpp"
#include "sluice/future/promise.hpp"
#include "sluice/future/task.hpp"

namespace sluice::detail {

// A message on its way to whomever `hand_in` (an envelope& -> status) gives it.
template <class M, class HandIn>
status send_through(const envelope_ops& ops, M& m, const HandIn& hand_in) {
  auto* const l = make_envelope<letter<M>>(ops, std::move(m));
  const status how = hand_in(*l);
  if (how == status::ok || how == status::dropped) [[likely]]
    return how;
  // It stays with the caller.
  if constexpr (std::is_move_assignable_v<M>) {
    m = std::move(l->message);
  } else {
    std::destroy_at(&m);
    std::construct_at(&m, std::move(l->message));
  }
  free_envelope(*l);
  return how;
}

template <class M>
status send_to(cell& to, const envelope_ops& ops, M& m, const wait_limits* limits) {
  return send_through(ops, m, [&](envelope& e) { return to.send(e, limits); });
}

// One wait for coroutines: for room in a mailbox, or, where the actor rests and comes back, for a
// place in memory for it. The letter is the caller's until it says ok or dropped.
class hand_in_op {
 public:
  hand_in_op(cell_ptr to, envelope& letter) : to_(std::move(to)), letter_(letter) {
    wait_.emplace(*to_, letter_);
  }

  bool ready() const noexcept { return wait_->ready(); }
  bool attempt() {
    how_ = to_->send(letter_, nullptr);
    if (how_ != status::full) return true;
    // If this one has rested, it is the next one that has no room, and that is waited for.
    status found = status::ok;
    if (cell_ptr next = to_->successor_if_closed(found)) {
      to_ = std::move(next);
      wait_.emplace(*to_, letter_);
    } else if (found == status::full) {
      if (to_->places()->lets_wait()) line_ = to_->places();
      return line_ == nullptr;
    }
    return !to_->lets_wait(how_);
  }
  enlisted enlist(waiter& who) noexcept {
    waited_ = true;
    return line_ != nullptr ? line_->enlist(place_, who) : wait_->enlist(who);
  }
  bool woken() const noexcept { return true; }
  void retract() noexcept { line_ != nullptr ? line_->retract(place_) : wait_->retract(); }
  spin_budget& spin() noexcept { return wait_->spin(); }
  watch::subject about() const noexcept {
    if (line_ == nullptr) return wait_->about();
    return {line_->of(), "sluice::keyed_actors", "have a place in"};
  }
  status result(status ended) noexcept {
    if (line_ != nullptr) return ended ? sent_in_place() : ended;
    const status how = !waited_ && ended ? how_ : status(wait_->result(ended));
    if (!waited_ || how != status::closed) return how;
    if (to_->pass_on(letter_)) return status::ok;
    to_->note_lost(letter_);
    return how;
  }

 private:
  // It has waited once: if others have filled the mailbox meanwhile, it is taken beyond the bound.
  status sent_in_place() noexcept {
    cell_ptr next;
    status how = status::closed;
    do {
      next = line_->take();
      if (next) how = next->send(letter_, nullptr);
    } while (next && how == status::full && next->is_over());
    if (!next) to_->note_lost(letter_);
    if (next && next->lets_wait(how)) {
      (void)next->send_uncounted(letter_);
      how = status::ok;
    }
    line_->done();
    return how;
  }

  cell_ptr to_;
  envelope& letter_;
  std::optional<told_room_wait> wait_;  // always there
  place_line* line_ = nullptr;          // it waits for a place
  wait_node place_;
  status how_ = status::ok;
  bool waited_ = false;
};

// The same with a letter of its own.
template <class M>
class send_op : public hand_in_op {
 public:
  send_op(cell_ptr to, const envelope_ops& ops, M m)
      : send_op(std::move(to), make_envelope<letter<M>>(ops, std::move(m))) {}
  send_op(const send_op&) = delete;
  send_op& operator=(const send_op&) = delete;
  ~send_op() {
    if (letter_ != nullptr) free_envelope(*letter_);
  }
  status result(status ended) noexcept {
    const status how = hand_in_op::result(ended);
    if (how == status::ok || how == status::dropped) letter_ = nullptr;
    return how;
  }

 private:
  send_op(cell_ptr to, letter<M>* l) : hand_in_op(std::move(to), *l), letter_(l) {}

  letter<M>* letter_;
};

template <class E>
struct envelope_deleter {
  void operator()(E* e) const noexcept { free_envelope(*e); }
};
template <class E>
using envelope_ptr = std::unique_ptr<E, envelope_deleter<E>>;

// ---- requests

// The future, but not for longer than that. A deadline without a clock is on the real one, whatever
// the clock of the system is.
template <class T>
future<T> until(const wait_limits& limits, future<T> f) {
  if (limits.stop.stop_possible()) f = std::move(f).with_stop(limits.stop);
  const deadline& when = limits.deadline;
  if (when.is_never()) return f;
  clock& on = when.on() != nullptr ? *when.on() : real_clock();
  const time_point now = on.now();
  // One that has passed may stand at the beginning of time, which is too far off to subtract from.
  return std::move(f).with_timeout(when.when() > now ? when.when() - now : now - now, on);
}

// The same for one that an actor waits for, as the observer hears.
template <class T>
future<T> told_until(told_ask_ptr told, const wait_limits& limits, future<T> f) {
  f = until(limits, std::move(f));
  if (told == nullptr) [[likely]]
    return f;
  return std::move(f).finally([told = std::move(told)] { told->end(); });
}

// A request that was handed in, or was not: then who asked hears why. `name` (-> string) is of who
// has not taken it.
template <class M, class Name>
status settle_request(envelope_ptr<request_letter<M>> l, status how, const Name& name) noexcept {
  if (!how && how != status::dropped) {
    refuse(*l.release(), name(), how);
  } else {
    (void)l.release();
  }
  return how;
}

// A request on its way to whomever `hand_in` (an envelope& -> status) gives it.
template <class M, class HandIn, class Name>
status forward_through(const envelope_ops& ops, M m, responder<reply_of<M>> to, const Name& name,
                       const HandIn& hand_in) {
  envelope_ptr<request_letter<M>> l(
      make_envelope<request_letter<M>>(ops, std::move(m), std::move(to)));
  const status how = hand_in(*l);
  return settle_request<M>(std::move(l), how, name);
}

template <class M, class HandIn, class Name>
future<reply_of<M>> request_through(const cell& asked, const envelope_ops& ops, M m,
                                    told_ask_ptr told, late_note_ptr late, const Name& name,
                                    const HandIn& hand_in) {
  promise<reply_of<M>> answer;
  if (watch::is_on()) [[unlikely]]
    answer.made_by(asked.as_party());
  future<reply_of<M>> f = answer.get_future();
  responder<reply_of<M>> to(std::move(answer), std::move(told), std::move(late));
  (void)forward_through(ops, std::move(m), std::move(to), name, hand_in);
  return f;
}

template <class M>
future<reply_of<M>> ask_of(cell& to, const envelope_ops& ops, M m, const wait_limits& limits) {
  told_ask_ptr told = told_ask::of(to);
  auto answer = request_through(
      to, ops, std::move(m), told, note_if_limited(to, ops, limits), [&] { return to.name(); },
      [&](envelope& e) { return to.send(e, &limits); });
  return told_until(std::move(told), limits, std::move(answer));
}

// A request is on its way to another, as the observer hears, and whoever watches.
template <class R>
void hand_on(const responder<R>& asker, const cell& to) {
  if (asker.told() != nullptr) asker.told()->move_to(to);
  if (watch::is_on()) [[unlikely]]
    asker.asked_of(to.as_party());
}

template <class M>
status forward_to(cell& to, const envelope_ops& ops, M m, responder<reply_of<M>> asker,
                  const wait_limits& limits) {
  hand_on(asker, to);
  return forward_through(
      ops, std::move(m), std::move(asker), [&] { return to.name(); },
      [&](envelope& e) { return to.send(e, &limits); });
}

// What an answer is awaited for: ended by its limits as well, and then whoever answers hears that
// it is not wanted any more.
template <class T>
task<T> answer_within(future<T> f, told_ask_ptr told, wait_limits limits) {
  class at_end {
   public:
    explicit at_end(told_ask_ptr t) noexcept : told_(std::move(t)) {}
    at_end(const at_end&) = delete;
    at_end& operator=(const at_end&) = delete;
    ~at_end() {
      if (told_ != nullptr) told_->end();
    }

   private:
    const told_ask_ptr told_;
  };
  const at_end tells(std::move(told));
  auto waiting = f.async_get(std::move(limits));
  auto got = co_await waiting;
  if (!got) {
    f.cancel();
    status why = status::ok;
    if constexpr (std::is_void_v<T>) {
      why = got;
    } else {
      why = got.status();
    }
    throw future_error(why == status::timed_out ? future_error::timed_out
                                                : future_error::cancelled);
  }
  if constexpr (!std::is_void_v<T>) co_return *std::move(got);
}

// The same as ask_of and forward_to for coroutines: nothing holds up a thread.
template <class M>
task<status> forward_later(cell_ptr to, envelope_ptr<request_letter<M>> l, wait_limits limits) {
  awaitable<hand_in_op> handing(std::move(limits), to, *l);
  const status how = co_await handing;
  co_return settle_request<M>(std::move(l), how, [&] { return to->name(); });
}

template <class M>
task<status> forward_async(cell_ptr to, const envelope_ops& ops, M m, responder<reply_of<M>> asker,
                           wait_limits limits) {
  hand_on(asker, *to);
  envelope_ptr<request_letter<M>> l(
      make_envelope<request_letter<M>>(ops, std::move(m), std::move(asker)));
  return forward_later<M>(std::move(to), std::move(l), std::move(limits));
}

template <class T>
task<T> handed_and_answered(task<status> handing, future<T> f, told_ask_ptr told,
                            wait_limits limits) {
  const status how = co_await std::move(handing);
  if (!how) limits = {};  // why it was not taken is the answer, and there already
  auto answer = answer_within(std::move(f), std::move(told), std::move(limits));
  co_return co_await std::move(answer);
}

template <class M>
task<reply_of<M>> ask_async(cell_ptr to, const envelope_ops& ops, M m, wait_limits limits) {
  promise<reply_of<M>> answer;
  future<reply_of<M>> f = answer.get_future();
  told_ask_ptr told = told_ask::of(*to);
  responder<reply_of<M>> asker(std::move(answer), told, note_if_limited(*to, ops, limits));
  auto handing = forward_async(std::move(to), ops, std::move(m), std::move(asker), limits);
  return handed_and_answered(std::move(handing), std::move(f), std::move(told), std::move(limits));
}

}  // namespace sluice::detail
