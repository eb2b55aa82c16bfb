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
// full hears `full` when it sends to itself, and so does one whose constructor sends to its parent.
// `ask` sends a request and gives a future of the reply; its deadline covers the wait for room and
// for the reply. It fails with what the handler threw, with actor_error, or with
// future_error::timed_out; it is awaited, chained and cancelled as any future.
// `stop` ends the actor after the message it is on, `close` after what is in its mailbox and what
// it has begun; both end its children first. `ended` is complete when the actor is no more.
//
// A ref does not keep the actor alive, only some memory; an empty one may only be assigned to,
// compared, and asked whether it is empty. A ref may be kept, copied and destroyed after the system
// is gone, but not sent to.
// Limits: g++ 12 destroys an aggregate temporary twice when it stands in a co_await expression:
// name the message first, then co_await async_send(std::move(it)); the same with ask.
// Cost: a pointer with a count in the cell. A send is one block of memory that was used just
// before, and a short lock; ./bench actor.
//
//     if (!counter.try_send(add{2})) slow_down();
//     int n = counter.ask(total{}, deadline::after(1s)).get();

#include <chrono>
#include <compare>
#include <cstddef>
#include <functional>
#include <stop_token>
#include <string>
#include <utility>

#include "sluice/actor/actor_end.hpp"
#include "sluice/actor/detail/sending.hpp"

namespace sluice {

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

  void stop() const noexcept { cell_of().request_stop(stop_how::now); }
  void close() const noexcept { cell_of().request_stop(stop_how::drain); }
  // What it was asked last is not waited for: ask, then await.
  future<actor_end> ended() const;

  friend bool operator==(const address& a, const address& b) noexcept { return a.to_ == b.to_; }
  std::size_t hash() const noexcept { return std::hash<const void*>()(to_.get()); }

  // For the library.
  cell& cell_of() const noexcept {
    check(static_cast<bool>(to_), "sluice::ref", "an actor to refer to");
    return *to_;
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
class ref : public detail::address {
 public:
  using actor_type = A;

  ref() noexcept = default;
  explicit ref(detail::cell_ptr to) noexcept : address(std::move(to)) {}

  template <message M>
  status send(M m) const {
    const wait_limits none;
    return send_within(m, none);
  }
  template <message M>
  status send(M m, std::stop_token stop) const {
    return send_within(m, wait_limits(std::move(stop)));
  }
  template <message M>
  status try_send(M m) const {
    return try_send_ref(m);
  }
  template <message M, class Rep, class Period>
  status try_send_for(M m, std::chrono::duration<Rep, Period> wait,
                      std::stop_token stop = {}) const {
    return send_within(m, {deadline::after(wait), std::move(stop)});
  }
  template <message M, class Clock, class Duration>
  status try_send_until(M m, std::chrono::time_point<Clock, Duration> when,
                        std::stop_token stop = {}) const {
    return send_within(m, {deadline::at(when), std::move(stop)});
  }
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
    return awaitable<detail::send_op<M>>(std::move(limits), to_, *ops<M>().sent, std::move(m));
  }

  template <request M>
  future<reply_of<M>> ask(M m, wait_limits limits = {}) const {
    return detail::ask_of(cell_of(), *ops<M>().asked, std::move(m), limits);
  }

 private:
  template <class M>
  static constexpr const detail::message_ops& ops() noexcept {
    static_assert(A::takes::template contains<M>, "this actor does not take such a message");
    static_assert(detail::handles<A, M>, "this actor has no public on() for one of its messages");
    return detail::ops_for<A, M>;
  }
  template <class M>
  friend class recipient;
};

// Any actor that takes M.
template <class M>
class recipient : public detail::address {
 public:
  recipient() noexcept = default;
  template <class A>
  recipient(const ref<A>& r) noexcept : address(r.to_), ops_(&ref<A>::template ops<M>()) {}

  status send(M m) const {
    const wait_limits none;
    return send_within(m, none);
  }
  status send(M m, std::stop_token stop) const {
    return send_within(m, wait_limits(std::move(stop)));
  }
  status try_send(M m) const { return try_send_ref(m); }
  template <class Rep, class Period>
  status try_send_for(M m, std::chrono::duration<Rep, Period> wait,
                      std::stop_token stop = {}) const {
    return send_within(m, {deadline::after(wait), std::move(stop)});
  }
  status send_within(M& m, const wait_limits& limits) const {
    return detail::send_to(cell_of(), *ops_->sent, m, &limits);
  }
  status try_send_ref(M& m) const { return detail::send_to(cell_of(), *ops_->sent, m, nullptr); }
  auto async_send(M m, wait_limits limits = {}) const {
    return awaitable<detail::send_op<M>>(std::move(limits), to_, *ops_->sent, std::move(m));
  }
  future<reply_of<M>> ask(M m, wait_limits limits = {}) const requires request<M> {
    return detail::ask_of(cell_of(), *ops_->asked, std::move(m), limits);
  }

 private:
  const detail::message_ops* ops_ = nullptr;
};

}  // namespace sluice

template <class A>
struct std::hash<sluice::ref<A>> {
  std::size_t operator()(const sluice::ref<A>& r) const noexcept { return r.hash(); }
};
