#pragma once

// Sending and asking, for all that an actor can be addressed by.

#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "sluice/actor/actor_error.hpp"
#include "sluice/actor/detail/dispatch.hpp"
#include "sluice/actor/detail/room_wait.hpp"
#include "sluice/actor/detail/told_wait.hpp"
#include "sluice/actor/message.hpp"
#include "sluice/base/outcome.hpp"
#include "sluice/future/future.hpp"
#include "sluice/future/promise.hpp"

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

// One wait for room that owns its letter: for coroutines.
template <class M>
class send_op {
 public:
  send_op(cell_ptr to, const envelope_ops& ops, M m)
      : to_(std::move(to)), letter_(make_envelope<letter<M>>(ops, std::move(m))) {
    wait_.emplace(*to_, *letter_);
  }
  send_op(const send_op&) = delete;
  send_op& operator=(const send_op&) = delete;
  ~send_op() {
    if (letter_ != nullptr) free_envelope(*letter_);
  }

  bool ready() const noexcept { return wait_->ready(); }
  bool attempt() {
    how_ = to_->send(*letter_, nullptr);
    if (!to_->lets_wait(how_)) return true;
    // If this one has rested, it is the next one that has no room, and that is waited for.
    if (cell_ptr next = to_->successor_if_closed()) {
      to_ = std::move(next);
      wait_.emplace(*to_, *letter_);
    }
    return false;
  }
  enlisted enlist(waiter& who) noexcept {
    waited_ = true;
    told_.begin(*to_, actor_wait::room);
    return wait_->enlist(who);
  }
  bool woken() const noexcept { return true; }
  void retract() noexcept { wait_->retract(); }
  spin_budget& spin() noexcept { return wait_->spin(); }
  status result(status ended) noexcept {
    told_.end();
    const status how = !waited_ && ended ? how_ : status(wait_->result(ended));
    if (waited_ && how == status::closed) {
      if (to_->pass_on(*letter_)) {
        letter_ = nullptr;
        return status::ok;
      }
      to_->note_lost(*letter_);
    }
    if (how == status::ok || how == status::dropped) letter_ = nullptr;
    return how;
  }

 private:
  cell_ptr to_;
  letter<M>* letter_;
  std::optional<room_wait> wait_;  // always there
  status how_ = status::ok;
  bool waited_ = false;
  told_wait told_;
};

// The future, but not for longer than that. A deadline without a clock is on the real one, whatever
// the clock of the system is.
template <class T>
future<T> until(const deadline& when, future<T> f) {
  if (when.is_never()) return f;
  clock& on = when.on() != nullptr ? *when.on() : real_clock();
  const time_point now = on.now();
  // One that has passed may stand at the beginning of time, which is too far off to subtract from.
  return std::move(f).with_timeout(when.when() > now ? when.when() - now : now - now, on);
}

// The same for one that an actor waits for, as the observer hears.
template <class T>
future<T> told_until(told_wait told, const deadline& when, future<T> f) {
  f = until(when, std::move(f));
  if (!told.has_begun()) [[likely]]
    return f;
  return f.finally([told]() mutable { told.end(); });
}

// A request on its way to whomever `hand_in` (an envelope& -> status) gives it. `named` is who has
// not answered, in the words of an error.
template <class M, class HandIn>
future<reply_of<M>> request_through(const envelope_ops& ops, M m, const cell& named,
                                    const HandIn& hand_in) {
  using reply = reply_of<M>;
  promise<reply> answer;
  future<reply> f = answer.get_future();
  auto* const l =
      make_envelope<request_letter<M>>(ops, std::move(m), responder<reply>(std::move(answer)));
  const status how = hand_in(*l);
  if (!how && how != status::dropped) refuse(*l, named, how);
  return f;
}

// The same with a deadline, and the observer hears of the wait for `named`.
template <class M, class HandIn>
future<reply_of<M>> ask_through(const envelope_ops& ops, M m, const cell& named,
                                const deadline& when, const HandIn& hand_in) {
  told_wait told;
  told.begin(named, actor_wait::answer);
  return told_until(told, when, request_through(ops, std::move(m), named, hand_in));
}

template <class M>
future<reply_of<M>> ask_of(cell& to, const envelope_ops& ops, M m, const wait_limits& limits) {
  return ask_through(ops, std::move(m), to, limits.deadline,
                     [&](envelope& e) { return to.send(e, &limits); });
}

}  // namespace sluice::detail
