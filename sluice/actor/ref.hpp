#pragma once

// The address of an actor: cheap to copy, safe to keep, safe to send to whatever became of it.
//
// `ref<A>` is for an actor of type A, and takes the messages that A takes: another one does not
// compile. `recipient<M>` is for any actor that takes M, and is made from a ref.
//
// Guarantees: any thread may call anything. Messages from one sender to one receiver are begun in
// the order in which they were sent, within a lane (message.hpp). The sender hears what happened:
//   ok          it is in the mailbox, and will be handled or become a dead letter
//   full        there was no room (overflow::reject, or a call that does not wait)
//   dropped     the mailbox dropped this very message
//   closed      the actor has ended, or is about to: a dead letter was counted
//   timed_out, stopped   while it waited for room
// A message that was not accepted is still with the caller, when it was handed in as an lvalue.
//
// `send` waits for room where the mailbox blocks. In a handler that is a plain function it holds
// up a thread; in one that is a coroutine use `co_await async_send`. An actor whose own mailbox is
// full hears `full` when it sends to itself, and so does one whose constructor sends to its parent;
// and a `send` that waits on a thread, if that thread is in the turn of the receiver, further out:
// a handler that joins a fork runs other work meanwhile. `async_send` waits there as well.
// `ask` sends a request and gives a future of the reply; its deadline and its stop_token cover the
// wait for room and for the reply. It fails with what the handler threw, with actor_error, or with
// future_error::timed_out or cancelled; it is awaited, chained and cancelled as any future. The
// wait for room holds up a thread: `co_await async_ask` does not. A handler that waits for its own
// actor, self().ask(x).get() or ended().get(), waits for ever: an actor_watch names the first as a
// cycle, the other as a handler that is stuck. `stop` ends the actor after the message it is on,
// `close` after what is in its mailbox and what it has begun; both end its children first; if it
// is permanent, it comes back (supervision.hpp). `ended` is complete when the actor is no more.
//
// A ref does not keep the actor alive, only some memory; an empty one may only be assigned to,
// compared, and asked whether it is empty. After its system is gone it is still safe: it hears
// closed, and nobody is told of a dead letter. (A send that overlaps with the end of the system may
// still be told to its observer and on_dead_letter; and a keyed_ref must not outlive the clock that
// the system was given.)
// Limits: g++ 12 destroys an aggregate temporary twice when it stands in a co_await expression:
// name the message first, then co_await async_send(std::move(it)); the same with ask.
// Cost: a pointer with a count in the cell. A send is one block of memory that was used just
// before, and a short lock; ./bench actor.
//
//     if (!counter.try_send(add{2})) slow_down();
//     int n = counter.ask(total{}, deadline::after(1s)).get();

#include <cstddef>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "sluice/actor/actor_end.hpp"
#include "sluice/actor/actor_state.hpp"
#include "sluice/actor/detail/send_calls.hpp"
#include "sluice/actor/detail/sending.hpp"

namespace sluice {

struct actor_child;

namespace detail {

// Whatever can be addressed: what needs no message.
class address {
 public:
  explicit operator bool() const noexcept { return static_cast<bool>(to_); }
  actor_id id() const noexcept { return cell_of().id(); }
  std::string name() const { return cell_of().name(); }
  // True: it takes nothing any more, and never will.
  bool is_over() const noexcept { return cell_of().is_over(); }
  // Messages that wait, and count against the bound.
  std::size_t queued() const noexcept { return cell_of().queued(); }
  // Senders that wait for room.
  std::size_t waiting() const noexcept { return cell_of().waiting(); }

  actor_state state() const noexcept { return cell_of().state(); }
  // The actors that it has spawned and that live, the eldest first, no more than `limit`
  // (actor_child.hpp).
  std::vector<actor_child> children(std::size_t limit = 1000) const;
  std::size_t child_count() const noexcept { return cell_of().child_count(); }

  void stop() const noexcept { cell_of().request_stop(stop_how::now); }
  void close() const noexcept { cell_of().request_stop(stop_how::drain); }
  // What it was asked last is not waited for: ask, then await. Somebody who asks again and again
  // cancels those that he does not want any more: they are kept until then, or until its end.
  future<actor_end> ended() const;
  // Closes it, and waits until it and all below it have ended. ok: they have. timed_out, stopped:
  // then it was told to stop, and is not waited for. Not for its own handlers.
  status shutdown_within(const wait_limits& limits) const;
  task<status> async_shutdown(wait_limits limits = {}) const;

  friend bool operator==(const address& a, const address& b) noexcept { return a.to_ == b.to_; }
  std::size_t hash() const noexcept { return std::hash<const void*>()(to_.get()); }

  // For the library.
  cell& cell_of() const noexcept { return *held(); }
  const cell_ptr& held() const noexcept {
    check(static_cast<bool>(to_), "sluice::ref", "an actor to refer to");
    return to_;
  }

 protected:
  address() noexcept = default;
  explicit address(cell_ptr to) noexcept : to_(std::move(to)) {}
  ~address() = default;
  address(const address&) = default;
  address(address&&) = default;
  address& operator=(const address&) = default;
  address& operator=(address&&) = default;

  cell_ptr to_;
};

}  // namespace detail

template <class M>
class recipient;

template <class A>
class ref : public detail::address, public detail::send_calls<ref<A>> {
 public:
  using actor_type = A;

  ref() noexcept = default;
  explicit ref(detail::cell_ptr to) noexcept : address(std::move(to)) {}

  // The general forms. They move from `m` only when the answer is ok or dropped.
  template <message M>
  status send_within(M& m, const wait_limits& limits) const {
    return detail::send_to(cell_of(), *ops<M>().sent, m, &limits);
  }
  template <message M>
  status try_send_ref(M& m) const {
    return detail::send_to(cell_of(), *ops<M>().sent, m, nullptr);
  }
  // co_await gives a status.
  template <message M>
  auto async_send(M m, wait_limits limits = {}) const {
    return awaitable<detail::send_op<M>>(std::move(limits), held(), *ops<M>().sent, std::move(m));
  }

  template <request M>
  future<reply_of<M>> ask(M m, wait_limits limits = {}) const {
    return detail::ask_of(cell_of(), *ops<M>().asked, std::move(m), limits);
  }
  // co_await gives the reply or throws what `ask` fails with. Also while there is no room it holds
  // up no thread; stopped, it throws actor_error or future_error::cancelled.
  template <request M>
  task<reply_of<M>> async_ask(M m, wait_limits limits = {}) const {
    return detail::ask_async(held(), *ops<M>().asked, std::move(m), std::move(limits));
  }
  // A request in the name of the one who waits for the answer (actor::forward). If it is not taken,
  // that one hears why.
  template <request M>
  status forward(M m, responder<reply_of<M>> asker, const wait_limits& limits = {}) const {
    return detail::forward_to(cell_of(), *ops<M>().asked, std::move(m), std::move(asker), limits);
  }
  template <request M>
  task<status> async_forward(M m, responder<reply_of<M>> asker, wait_limits limits = {}) const {
    return detail::forward_async(held(), *ops<M>().asked, std::move(m), std::move(asker),
                                 std::move(limits));
  }

 private:
  template <class M>
  static constexpr const detail::message_ops& ops() noexcept {
    return detail::ops_of<A, M>();
  }
  template <class M>
  friend class recipient;
};

// Any actor that takes M.
template <class M>
class recipient : public detail::address, public detail::send_calls<recipient<M>, M> {
 public:
  recipient() noexcept = default;
  template <class A>
  recipient(const ref<A>& r) noexcept : address(r.to_), ops_(&ref<A>::template ops<M>()) {}

  status send_within(M& m, const wait_limits& limits) const {
    return detail::send_to(cell_of(), *ops().sent, m, &limits);
  }
  status try_send_ref(M& m) const { return detail::send_to(cell_of(), *ops().sent, m, nullptr); }
  auto async_send(M m, wait_limits limits = {}) const {
    return awaitable<detail::send_op<M>>(std::move(limits), held(), *ops().sent, std::move(m));
  }
  future<reply_of<M>> ask(M m, wait_limits limits = {}) const requires request<M> {
    return detail::ask_of(cell_of(), *ops().asked, std::move(m), limits);
  }
  task<reply_of<M>> async_ask(M m, wait_limits limits = {}) const requires request<M> {
    return detail::ask_async(held(), *ops().asked, std::move(m), std::move(limits));
  }
  status forward(M m, responder<reply_of<M>> asker,
                 const wait_limits& limits = {}) const requires request<M> {
    return detail::forward_to(cell_of(), *ops().asked, std::move(m), std::move(asker), limits);
  }
  task<status> async_forward(M m, responder<reply_of<M>> asker,
                             wait_limits limits = {}) const requires request<M> {
    return detail::forward_async(held(), *ops().asked, std::move(m), std::move(asker),
                                 std::move(limits));
  }

 private:
  const detail::message_ops& ops() const noexcept {
    (void)held();  // there is none without an actor
    return *ops_;
  }

  const detail::message_ops* ops_ = nullptr;
};

}  // namespace sluice

template <class A>
struct std::hash<sluice::ref<A>> {
  std::size_t operator()(const sluice::ref<A>& r) const noexcept { return r.hash(); }
};
