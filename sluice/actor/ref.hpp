#pragma once

// The address of an actor: cheap to copy and to keep, and valid even after its end.
//
// `ref<A>` is for an actor of type A, and takes the messages that A takes: others do not compile.
// `recipient<M>` is for any actor that takes M, and is made from a ref.
//
// Guarantees: any thread may call anything. Messages from one sender to one receiver are begun in
// the order in which they were sent, within a lane (message.hpp). The sender gets a status:
//   ok          the message is in the mailbox, and will be handled or become a dead letter
//   full        no capacity (overflow::reject, or a call that does not wait)
//   dropped     the mailbox dropped this very message
//   closed      the actor has ended, or is about to: a dead letter was counted
//   timed_out, stopped   while waiting for capacity
// A message that was not accepted stays with the caller, also after send(std::move(m)).
//
// `send` waits for capacity if the mailbox blocks. In a plain handler that blocks a thread; in a
// coroutine use `co_await async_send`. To avoid a deadlock `send` returns `full` if the calling
// thread is in the receiver's turn: an actor sends to itself, a constructor to its parent, or a
// handler that joins a fork runs other work, which sends to the handler's actor. `async_send` waits
// in the last case. `ask` sends a request and returns a future of the reply; deadline and
// stop_token cover the waits for capacity and for the reply. The future fails with the handler's
// exception, actor_error, future_error::timed_out or cancelled. Its wait for capacity blocks a
// thread; `co_await async_ask` does not. A handler that waits for its own actor,
// self().ask(x).get() or ended().get(), waits for ever; a stall_detector reports the first as a
// cycle, the other as a slow handler. `stop` ends the actor after its current message, `close`
// after its queued and begun messages; both end its children first; a permanent actor is restarted
// (supervision.hpp). `ended` is ready when the actor has ended. A ref keeps some memory, not the
// actor. An empty one may only be assigned, compared, and checked for emptiness. After the end of
// its system a send returns closed, and no dead letter is reported (except for a send that overlaps
// with the end). A keyed_ref must not outlive the system's clock.
// Limits: g++ 12 destroys an aggregate temporary in a co_await expression twice: name the message
// first, then co_await async_send(std::move(m)); the same with ask.
// Cost: a pointer with a count in the cell. A send is one recently used block of memory and a short
// lock; ./bench actor.
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

// The part of an address that is independent of message types.
class address {
 public:
  explicit operator bool() const noexcept { return static_cast<bool>(cell_); }
  actor_id id() const noexcept { return cell_of().id(); }
  std::string name() const { return cell_of().name(); }
  // Returns true if the actor has ended.
  bool is_terminated() const noexcept { return cell_of().is_terminated(); }
  // Returns the number of waiting messages that count against the bound.
  std::size_t queued() const noexcept { return cell_of().queued(); }
  // Returns the number of senders that wait for capacity.
  std::size_t waiting() const noexcept { return cell_of().waiting(); }

  actor_state state() const noexcept { return cell_of().state(); }
  // Returns the live children, the eldest first, at most `limit` (actor_child.hpp).
  std::vector<actor_child> children(std::size_t limit = 1000) const;
  std::size_t child_count() const noexcept { return cell_of().child_count(); }

  void stop() const noexcept { cell_of().request_stop(stop_mode::now); }
  void close() const noexcept { cell_of().request_stop(stop_mode::drain); }
  // Returns a future that is ready when the actor has ended. Each call registers a new future,
  // which is kept until the actor ends or the future is cancelled: cancel the futures you drop.
  future<actor_end> ended() const;
  // Closes the actor, and waits until it and all actors below it have ended. Returns ok if they
  // have. Otherwise requests a stop and returns timed_out or stopped without waiting for the end.
  // Not for the actor's own handlers.
  status shutdown(const wait_limits& limits) const;
  task<status> async_shutdown(wait_limits limits = {}) const;

  friend bool operator==(const address& a, const address& b) noexcept { return a.cell_ == b.cell_; }
  std::size_t hash() const noexcept { return std::hash<const void*>()(cell_.get()); }

  // For the library.
  cell& cell_of() const noexcept { return *held(); }
  const cell_ptr& held() const noexcept {
    check(static_cast<bool>(cell_), "sluice::ref", "a non-empty ref");
    return cell_;
  }

 protected:
  address() noexcept = default;
  explicit address(cell_ptr cell) noexcept : cell_(std::move(cell)) {}
  ~address() = default;
  address(const address&) = default;
  address(address&&) = default;
  address& operator=(const address&) = default;
  address& operator=(address&&) = default;

  cell_ptr cell_;
};

}  // namespace detail

template <class M>
class recipient;

template <class A>
class ref : public detail::address, public detail::send_calls<ref<A>> {
 public:
  using actor_type = A;

  ref() noexcept = default;
  explicit ref(detail::cell_ptr cell) noexcept : address(std::move(cell)) {}

  // For coroutines; co_await gives a status.
  template <message M>
  auto async_send(M m, wait_limits limits = {}) const {
    return awaitable<detail::send_op<M>>(std::move(limits), held(), *ops<M>().sent, std::move(m));
  }

  template <request M>
  future<reply_of<M>> ask(M m, wait_limits limits = {}) const {
    return detail::ask_of(cell_of(), *ops<M>().asked, std::move(m), limits);
  }
  // For coroutines; co_await gives the reply or throws the exception of `ask`. Its wait for
  // capacity blocks no thread either. A stop throws actor_error or future_error::cancelled.
  template <request M>
  task<reply_of<M>> async_ask(M m, wait_limits limits = {}) const {
    return detail::ask_async(held(), *ops<M>().asked, std::move(m), std::move(limits));
  }
  // Sends a request on behalf of `asker` (actor::forward). If the request is not accepted, the
  // asker gets the reason.
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
  friend class detail::send_calls<ref<A>>;
  template <message M>
  status deliver(M& m, const wait_limits* limits) const {
    return detail::send_to(cell_of(), *ops<M>().sent, m, limits);
  }
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
  recipient(const ref<A>& r) noexcept : address(r.cell_), ops_(&ref<A>::template ops<M>()) {}

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
  friend class detail::send_calls<recipient<M>, M>;
  status deliver(M& m, const wait_limits* limits) const {
    return detail::send_to(cell_of(), *ops().sent, m, limits);
  }
  const detail::message_ops& ops() const noexcept {
    (void)held();  // checks that the recipient is not empty
    return *ops_;
  }

  const detail::message_ops* ops_ = nullptr;
};

}  // namespace sluice

template <class A>
struct std::hash<sluice::ref<A>> {
  std::size_t operator()(const sluice::ref<A>& r) const noexcept { return r.hash(); }
};
