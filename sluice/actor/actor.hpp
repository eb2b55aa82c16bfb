#pragma once

// State that nothing else touches, and messages that are handled one at a time: no lock, no race,
// and thousands of them share a few threads.
//
// Use it for things that live long and are many: sessions, rooms, devices, order books. Prefer
// `guarded` for state that others only look at, a `strand` for functions without messages of their
// own, `task` for one piece of work with a beginning and an end.
//
// A class derives from `actor<Self, messages...>` and has a public `on` for each message:
//   void on(add m)                          handles it
//   int on(total)                           ... and answers (`total` says `using reply = int`)
//   void on(total, responder<int> to)       answers later, or has another answer
//   future<int> on(total)                   answers when the future is ready; goes on meanwhile
//   task<> on(add m), task<int> on(total)   a coroutine: no other message is begun until it ends,
//                                           but for what it awaits with `letting_others_in`; also
//                                           with a responder, through which it then answers
// Optional: `void stopping()`, called before the state is destroyed.
//
// Guarantees: handlers, constructor and destructor never run at the same time, and each sees what
// those before it did. They run on the executor of the system, or the actor's own (actor_options);
// the constructor at first where `spawn` is called, which throws what it throws. A handler that
// throws makes the actor fail: its parent decides what then (supervision.hpp).
// An actor is made by `spawn` alone; it belongs to whoever spawned it, and does not outlive its
// parent. Its children end before it does, the youngest first.
// The calls below belong to its own handlers: not to other threads, and not to a coroutine that has
// moved to another executor.
// Cost: about 270 bytes and its state; nothing while it has nothing to do.
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
  // After this message; after those in the mailbox.
  void stop_self() noexcept { cell_.request_stop(detail::stop_how::now); }
  void close_self() noexcept { cell_.request_stop(detail::stop_how::drain); }
  // For a handler that runs long: something urgent waits, or the end.
  bool is_wanted_elsewhere() const noexcept { return cell_.is_poked(); }

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

  // Those that live, the eldest first, no more than `limit` (actor_child.hpp).
  std::vector<actor_child> children(std::size_t limit = 1000) const {
    return detail::children_of(cell_, limit);
  }
  std::size_t child_count() const noexcept { return cell_.child_count(); }

  // ---- others' ends

  // Makes a message for this actor from the end of another, however it comes about; at once if it
  // is over. It does not count against the bound. `make` is called in this actor's turn. Gone when
  // this actor is made anew.
  template <class Make>
  void watch(const detail::address& other, Make make) {
    using M = std::decay_t<std::invoke_result_t<Make&, const actor_end&>>;
    static_assert(takes::template contains<M>, "this actor does not take such a message");
    const std::stop_token life = cell_.task_token();
    const std::uint64_t number = detail::begin_watch(cell_, other.cell_of());
    detail::watch_end(other.cell_of(),
                      [to = detail::cell_ptr(&cell_), life, number,
                       make = std::move(make)](const actor_end& e) mutable {
                        detail::make_in_turn<Self>(
                            *to, life, [to, number] { return detail::end_watch(*to, number); },
                            std::move(make), e);
                      },
                      {.life = life, .by = &cell_, .what = detail::watcher::kind::watch});
  }
  // Takes back all watches of that one. False: there is none; what was made of its end is in the
  // mailbox, or was handled.
  bool unwatch(const detail::address& other) {
    return detail::unwatch_cell(cell_, other.cell_of());
  }
  // If one of the two fails for good, so does the other; one that is just being made anew, when it
  // is there again. Gone when this actor is made anew.
  void link(const detail::address& other) { detail::link_cells(cell_, other.cell_of()); }
  // Either of the two may take it back. False: they are not linked, or the other has ended.
  bool unlink(const detail::address& other) { return detail::unlink_cells(cell_, other.cell_of()); }

  // ---- later

  // A message to itself after so long. It does not count against the bound. Gone when the actor is
  // made anew; once cancelled, it is not handled, even if its time had come.
  template <message M>
  actor_timer send_after(std::chrono::nanoseconds wait, M m) {
    return detail::send_later<Self>(cell_, wait, std::move(m));
  }
  // Copies of a message to itself, again and again. Those whose time comes while one is still
  // waiting in the mailbox are skipped.
  template <message M>
  actor_timer send_every(std::chrono::nanoseconds period, M m) {
    return detail::start_ticks<Self>(cell_, period, std::move(m));
  }
  // False: it has fired, or is gone.
  bool cancel(actor_timer which) noexcept { return cell_.cancel_call(which); }

  // What a future gives, made into a message to itself, in this actor's turn. If the future fails
  // and `fails` is not given, the actor fails. Neither counts against the bound. Gone when this
  // actor is made anew.
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

  // Hands a request on: the other (a ref, recipient, keyed_ref, router or pool) answers in this
  // one's place. Waits for room there, as a send does; if it is not taken, who asked hears why.
  template <class To, request M>
  status forward(const To& other, M m, responder<reply_of<M>> to, const wait_limits& limits = {}) {
    return other.forward(std::move(m), std::move(to), limits);
  }
  // The same for a coroutine; co_await gives a status.
  template <class To, request M>
  task<status> async_forward(const To& other, M m, responder<reply_of<M>> to,
                             wait_limits limits = {}) {
    return other.async_forward(std::move(m), std::move(to), std::move(limits));
  }
  // The same as `forward`, for one that does not want to know whether it was taken.
  template <class To, request M>
  void delegate(const To& other, M m, responder<reply_of<M>> to, const wait_limits& limits = {}) {
    (void)other.forward(std::move(m), std::move(to), limits);
  }

  // ---- not now

  // Puts a message aside until `unstash_all`, which has those that were put aside handled first, in
  // their order. full: there are mailbox_options::stash_capacity of them already.
  template <message M>
  [[nodiscard]] status stash(M m) {
    return detail::stash_in<Self>(cell_, std::move(m));
  }
  template <request M>
  [[nodiscard]] status stash(M m, responder<reply_of<M>> to) {
    return detail::stash_in<Self>(cell_, std::move(m), std::move(to));
  }
  void unstash_all() { detail::unstash_all_of(cell_); }

  // ---- otherwise

  // From the next message on these functions handle what they take, in the place of `on` and of
  // what it became before; the rest goes to `on`. Gone when it is made anew.
  template <class... Handlers>
  void become(Handlers... handlers) {
    detail::become_in(
        cell_, std::make_unique<detail::behaviour_of<takes, Handlers...>>(std::move(handlers)...));
  }
  // The same, but `unbecome` brings back what it was before. No more than 64 stand on top of each
  // other: beyond that it is a broken contract.
  template <class... Handlers>
  void become_stacked(Handlers... handlers) {
    detail::become_stacked_in(
        cell_, std::make_unique<detail::behaviour_of<takes, Handlers...>>(std::move(handlers)...));
  }
  // Takes back what it became last.
  void unbecome() { detail::unbecome_in(cell_); }

 private:
  detail::cell& cell_;
};

}  // namespace sluice
