#pragma once

// State that only one actor touches, and messages that are handled one at a time: no locks, no data
// races, and thousands of actors share a few threads.
//
// Use it for many long-lived entities: sessions, rooms, devices, order books. Prefer `guarded` for
// state that others only read, a `strand` for functions without messages of their own, `task` for
// one piece of work with a beginning and an end.
//
// A class derives from `actor<Self, messages...>` and has a public `on` for each message:
//   void on(add m)                          handles the message
//   int on(total)                           ... and replies (`total` declares `using reply = int`)
//   void on(total, responder<int> to)       replies later, or passes the responder on
//   future<int> on(total)                   replies when the future is ready; the actor continues
//   task<> on(add m), task<int> on(total)   a coroutine, which may also take a responder. It has
//                                           the exclusive turn: no other message is begun until it
//                                           ends, except during a `reentrant` wait
// Optional: `void stopping()`, called before the state is destroyed.
//
// Guarantees: handlers, constructor and destructor never run concurrently, and each sees the
// effects of the previous ones. They run on the system's executor, or on the actor's own
// (actor_options); the first construction runs in `spawn`, which throws the constructor's
// exception. If a handler throws, the actor fails, and its parent decides what happens
// (supervision.hpp).
// Only `spawn` creates actors. An actor belongs to the actor or system that spawned it, its parent,
// and ends before its parent does. Children end youngest first.
// The calls below are for the actor's own handlers: not for other threads, and not for a coroutine
// that has moved to another executor.
// Cost: about 270 bytes and the state; no work while idle.
//
//     struct add { int n; };
//     struct total { using reply = int; };
//     class counter : public actor<counter, add, total> {
//      public:
//       void on(add m) { sum_ += m.n; }
//       int on(total) { return sum_; }
//      private:
//       int sum_ = 0;
//     };

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "sluice/actor/actor_child.hpp"
#include "sluice/actor/actor_options.hpp"
#include "sluice/actor/detail/become.hpp"
#include "sluice/actor/detail/sending.hpp"
#include "sluice/actor/detail/typed_cell.hpp"
#include "sluice/actor/message.hpp"
#include "sluice/actor/ref.hpp"
#include "sluice/actor/responder.hpp"
#include "sluice/future/future.hpp"

namespace sluice {

using actor_timer = std::uint64_t;

template <class Self, message... Ms>
class actor {
 public:
  using takes = messages<Ms...>;

  actor(const actor&) = delete;
  actor& operator=(const actor&) = delete;

 protected:
  actor() noexcept : cell_(detail::cell_under_construction()) {}
  ~actor() = default;

  // ---- itself

  ref<Self> self() const noexcept { return ref<Self>(detail::cell_ptr(&cell_)); }
  actor_id id() const noexcept { return cell_.id(); }
  // Ends after the current message.
  void stop_self() noexcept { cell_.request_stop(detail::stop_mode::now); }
  // Ends after the messages in the mailbox.
  void close_self() noexcept { cell_.request_stop(detail::stop_mode::drain); }
  // For long-running handlers: returns true if an urgent message, a stop or a resumed coroutine
  // waits for the end of this message.
  bool has_urgent() const noexcept { return cell_.has_urgent(); }

  // ---- children

  template <class A, class... Args>
  ref<A> spawn(Args&&... args) {
    return ref<A>(detail::spawn_cell<A>(cell_, detail::from_arguments<A, std::decay_t<Args>...>(
                                                   std::in_place, std::forward<Args>(args)...)));
  }
  template <class A, class... Args>
  ref<A> spawn_with(const actor_options& o, Args&&... args) {
    return ref<A>(detail::spawn_cell<A>(cell_, o,
                                        detail::from_arguments<A, std::decay_t<Args>...>(
                                            std::in_place, std::forward<Args>(args)...)));
  }

  // Returns the live children, the eldest first, at most `limit` (actor_child.hpp).
  std::vector<actor_child> children(std::size_t limit = 1000) const {
    return detail::children_of(cell_, limit);
  }
  std::size_t child_count() const noexcept { return cell_.child_count(); }

  // ---- death watch

  // Sends this actor a message when `other` ends, for any reason; at once if it has ended. `make`
  // makes the message, in this actor's turn. It does not count against the bound. A restart of this
  // actor removes the watch.
  template <class Make>
  void watch(const detail::address& other, Make make) {
    using M = std::decay_t<std::invoke_result_t<Make&, const actor_end&>>;
    static_assert(takes::template contains<M>, "this actor does not take such a message");
    const std::stop_token life = cell_.task_token();
    const std::uint64_t number = detail::begin_watch(cell_, other.cell_of());
    detail::watch_end(other.cell_of(),
                      [self = detail::cell_ptr(&cell_), life, number,
                       make = std::move(make)](const actor_end& e) mutable {
                        detail::make_in_turn<Self>(
                            *self, life,
                            [self, number] { return detail::end_watch(*self, number); },
                            std::move(make), e);
                      },
                      {.stop = life, .owner = &cell_, .relation = detail::watcher::kind::watch});
  }
  // Removes all watches of `other`. Returns false without a watch: if `other` has ended, the
  // message is in the mailbox or was handled.
  bool unwatch(const detail::address& other) {
    return detail::unwatch_cell(cell_, other.cell_of());
  }
  // If one of the two actors fails for good, the other one fails too; if that one is just being
  // restarted, after the restart. A restart of this actor removes the link.
  void link(const detail::address& other) { detail::link_cells(cell_, other.cell_of()); }
  // Removes the link; either of the two may. Returns false if they are not linked, or `other` has
  // ended.
  bool unlink(const detail::address& other) { return detail::unlink_cells(cell_, other.cell_of()); }

  // ---- timers and futures

  // Sends this actor a message after `wait`. It does not count against the bound. A restart removes
  // the timer. A cancelled message is not handled, even if it was due already.
  template <message M>
  actor_timer send_after(std::chrono::nanoseconds wait, M m) {
    return detail::send_later<Self>(cell_, wait, std::move(m));
  }
  // Sends this actor a copy of `m` every `period`. A copy that is due while the previous one is
  // still in the mailbox is skipped.
  template <message M>
  actor_timer send_every(std::chrono::nanoseconds period, M m) {
    return detail::start_ticks<Self>(cell_, period, std::move(m));
  }
  // Returns false if the timer has fired or was removed.
  bool cancel(actor_timer timer) noexcept { return cell_.cancel_call(timer); }

  // Sends this actor the result of `f`, made into a message by `make`, in this actor's turn. If the
  // future fails, `fails` makes the message; without `fails` the actor fails. The message does not
  // count against the bound. A restart drops the result.
  template <class T, class Make>
  void pipe(future<T> f, Make make) {
    detail::pipe_to<Self>(detail::cell_ptr(&cell_), cell_.task_token(), std::move(f),
                          std::move(make), nullptr);
  }
  template <class T, class Make, class Fails>
  void pipe(future<T> f, Make make, Fails fails) {
    detail::pipe_to<Self>(detail::cell_ptr(&cell_), cell_.task_token(), std::move(f),
                          std::move(make), std::move(fails));
  }

  // ---- requests

  // Passes a request on: `other` (a ref, recipient, keyed_ref, router or pool) replies in place of
  // this actor. Waits for capacity there, as a send does. If the request is not accepted, the asker
  // gets the reason.
  template <class To, request M>
  status forward(const To& other, M m, responder<reply_of<M>> asker,
                 const wait_limits& limits = {}) {
    return other.forward(std::move(m), std::move(asker), limits);
  }
  // For coroutines; co_await gives a status.
  template <class To, request M>
  task<status> async_forward(const To& other, M m, responder<reply_of<M>> asker,
                             wait_limits limits = {}) {
    return other.async_forward(std::move(m), std::move(asker), std::move(limits));
  }
  // Like `forward`, without a result.
  template <class To, request M>
  void delegate(const To& other, M m, responder<reply_of<M>> asker,
                const wait_limits& limits = {}) {
    (void)other.forward(std::move(m), std::move(asker), limits);
  }

  // ---- stash

  // Puts a message aside until `unstash_all`, which moves the stashed messages to the front of the
  // mailbox, in their order. Returns full if mailbox_options::stash_capacity messages are stashed.
  template <message M>
  [[nodiscard]] status stash(M m) {
    return detail::stash_in<Self>(cell_, std::move(m));
  }
  template <request M>
  [[nodiscard]] status stash(M m, responder<reply_of<M>> asker) {
    return detail::stash_in<Self>(cell_, std::move(m), std::move(asker));
  }
  void unstash_all() { detail::unstash_all_of(cell_); }

  // ---- behaviour

  // From the next message on, these functions handle the message types they take, in place of `on`
  // and of the previous behaviour; other messages go to `on`. A restart removes the behaviour.
  template <class... Handlers>
  void become(Handlers... handlers) {
    detail::become_in(
        cell_, std::make_unique<detail::behaviour_of<takes, Handlers...>>(std::move(handlers)...));
  }
  // Like `become`, but `unbecome` restores the previous behaviour. A stack of more than 64 is a
  // broken contract.
  template <class... Handlers>
  void become_stacked(Handlers... handlers) {
    detail::become_stacked_in(
        cell_, std::make_unique<detail::behaviour_of<takes, Handlers...>>(std::move(handlers)...));
  }
  // Removes the latest behaviour.
  void unbecome() { detail::unbecome_in(cell_); }

 private:
  detail::cell& cell_;
};

}  // namespace sluice
