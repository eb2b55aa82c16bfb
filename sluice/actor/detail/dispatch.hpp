#pragma once

// Calls the handler for an envelope: selects the `on` that takes the message, and turns its result
// into the reply.

#include <cstddef>
#include <string>
#include <type_traits>
#include <utility>

#include "sluice/actor/actor_error.hpp"
#include "sluice/actor/detail/cell_extra.hpp"
#include "sluice/actor/detail/envelope.hpp"
#include "sluice/actor/detail/handler_run.hpp"
#include "sluice/actor/detail/type_name.hpp"
#include "sluice/actor/detail/typed_cell.hpp"
#include "sluice/actor/responder.hpp"
#include "sluice/base/outcome.hpp"
#include "sluice/future/future.hpp"
#include "sluice/future/task.hpp"

namespace sluice::detail {

template <class M>
class letter : public envelope {
 public:
  letter(const envelope_ops& operations, M&& m) : envelope(operations), message(std::move(m)) {}
  M message;
};

template <class M>
class request_letter final : public letter<M> {
 public:
  request_letter(const envelope_ops& operations, M&& m, responder<reply_of<M>> reply)
      : letter<M>(operations, std::move(m)), asker(std::move(reply)) {
    this->is_request = true;
  }
  responder<reply_of<M>> asker;
};

actor_error::reason reason_of(status result) noexcept;

// Fails a request that was not accepted with the reason, and frees it.
template <class M>
void refuse(request_letter<M>& l, const std::string& receiver, status result) noexcept {
  l.asker.fail(std::make_exception_ptr(actor_error(reason_of(result), receiver, type_name<M>())));
  free_envelope(l);
}

// Frees the envelope when the handler has returned or thrown.
template <class E>
class envelope_guard {
 public:
  explicit envelope_guard(E& e) noexcept : e_(e) {}
  envelope_guard(const envelope_guard&) = delete;
  envelope_guard& operator=(const envelope_guard&) = delete;
  ~envelope_guard() { free_envelope(e_); }

 private:
  E& e_;
};

template <class T>
inline constexpr bool returns_task = false;
template <class T>
inline constexpr bool returns_task<task<T>> = true;
template <class T>
inline constexpr bool returns_future = false;
template <class T>
inline constexpr bool returns_future<future<T>> = true;

// A handler type H is the actor, or a behaviour set by `become`.
template <class H, class M>
concept takes_responder = requires(H& h, M m, responder<reply_of<M>> asker) {
  h.on(std::move(m), std::move(asker));
};
template <class H, class M>
concept takes_alone = requires(H& h, M m) {
  h.on(std::move(m));
};
template <class H, class M>
concept handles = takes_responder<H, M> || takes_alone<H, M>;

template <class Reply, class Value>
void reply_with(responder<Reply>& asker, Value&& make) {
  try {
    if constexpr (std::is_void_v<Reply>) {
      make();
      asker.reply();
    } else {
      asker.reply(make());
    }
  } catch (...) {
    asker.fail(std::current_exception());
    throw;
  }
}

// Returns the handler's result; if it throws, the asker gets the exception too.
template <class R, class F>
auto result_or_fail(responder<R>& asker, const F& handler) {
  try {
    return handler();
  } catch (...) {
    asker.fail(std::current_exception());
    throw;
  }
}

// The keep-alive of the actor's own handlers: none is needed, they end before the actor does.
struct no_keep_alive {};

// Calls the handler. `asker` is empty if the message was only sent. `keeps` keeps the handler's
// object alive while it runs.
template <class H, class M, class Keeps = no_keep_alive>
void call_handler(cell& c, H& h, M& m, responder<reply_of<M>>& asker, const Keeps& keeps = {}) {
  using reply = reply_of<M>;
  if constexpr (takes_responder<H, M>) {
    using result = decltype(h.on(std::move(m), std::move(asker)));
    if constexpr (returns_task<result>) {
      static_assert(
          std::is_void_v<typename result::value_type>,
          "a handler that takes a responder replies through it: it must return void or task<>");
      run_task(c, h, std::move(m), std::move(asker), keeps);
    } else {
      h.on(std::move(m), std::move(asker));
    }
  } else {
    using result = decltype(h.on(std::move(m)));
    if constexpr (returns_task<result>) {
      static_assert(
          std::is_void_v<reply> || std::is_convertible_v<typename result::value_type, reply>,
          "the handler of a request must return its reply");
      run_task(c, h, std::move(m), std::move(asker), keeps);
    } else if constexpr (returns_future<result>) {
      auto later = result_or_fail(asker, [&] { return h.on(std::move(m)); });
      reply_later(c, std::move(later), std::move(asker));
    } else {
      static_assert(std::is_void_v<reply> || std::is_convertible_v<result, reply>,
                    "the handler of a request must return its reply, or take a responder");
      reply_with(asker, [&]() -> decltype(auto) { return h.on(std::move(m)); });
    }
  }
}

template <class A, class M>
struct dispatch {
  static constexpr std::size_t index = A::takes::template index_of<M>();

  static bool by_behaviour(cell& c, envelope& e) {
    if (!c.has_behaviour()) [[likely]]
      return false;
    behaviour& current = *c.extra().behaviours.back();
    const behaviour::handler instead = current.find(index);
    if (instead == nullptr) return false;
    instead(current, c, e);
    return true;
  }

  static void handle(cell& c, envelope& e) {
    if (by_behaviour(c, e)) return;
    auto& l = static_cast<letter<M>&>(e);
    const envelope_guard guard(l);
    A& a = static_cast<typed_cell<A>&>(c).state();
    if constexpr (!takes_responder<A, M> && std::is_void_v<reply_of<M>> &&
                  !returns_task<decltype(on_of(a, l.message))> &&
                  !returns_future<decltype(on_of(a, l.message))>) {
      a.on(std::move(l.message));
    } else {
      responder<reply_of<M>> no_asker;
      call_handler(c, a, l.message, no_asker);
    }
  }
  static void drop(envelope& e, const cell&, loss) noexcept {
    free_envelope(static_cast<letter<M>&>(e));
  }
  static void refuse(envelope& e, const std::exception_ptr&) noexcept {
    free_envelope(static_cast<letter<M>&>(e));
  }
  static constexpr envelope_ops sent{&handle, &drop, type_name<M>(), lane_of<M>(), &refuse};

  static void handle_asked(cell& c, envelope& e) {
    if (by_behaviour(c, e)) return;
    auto& l = static_cast<request_letter<M>&>(e);
    const envelope_guard guard(l);
    call_handler(c, static_cast<typed_cell<A>&>(c).state(), l.message, l.asker);
  }
  static void drop_asked(envelope& e, const cell& receiver, loss why) noexcept {
    auto& l = static_cast<request_letter<M>&>(e);
    l.asker.fail(std::make_exception_ptr(
        actor_error(why == loss::dropped ? actor_error::dropped : actor_error::terminated,
                    receiver.name(), type_name<M>())));
    free_envelope(l);
  }
  static void refuse_asked(envelope& e, const std::exception_ptr& why) noexcept {
    auto& l = static_cast<request_letter<M>&>(e);
    l.asker.fail(why);
    free_envelope(l);
  }
  static constexpr envelope_ops asked{&handle_asked, &drop_asked, type_name<M>(), lane_of<M>(),
                                      &refuse_asked};

 private:
  // Never called: gives the result a name even if `on` takes a responder.
  static auto on_of(A& a, M& m) {
    if constexpr (takes_alone<A, M>) {
      if constexpr (!std::is_void_v<decltype(a.on(std::move(m)))>) {
        return a.on(std::move(m));
      }
    }
  }
};

// How one actor handles one message, sent or asked, without their types.
struct message_ops {
  const envelope_ops* sent;
  const envelope_ops* asked;
};
template <class A, class M>
inline constexpr message_ops ops_for{&dispatch<A, M>::sent, &dispatch<A, M>::asked};

// The names appear in the compiler's error if an actor does not take a message.
template <class Actor, class Message>
inline constexpr bool this_actor_takes_this_message = Actor::takes::template contains<Message>;
template <class Actor, class Message>
inline constexpr bool this_actor_has_a_public_on_for_it = handles<Actor, Message>;

template <class A, class M>
constexpr void check_handler() noexcept {
  static_assert(this_actor_has_a_public_on_for_it<A, M>,
                "this actor has no public on() for one of its messages");
}
template <class A, message... Ms>
constexpr void check_handlers_for(messages<Ms...>) noexcept {
  (check_handler<A, Ms>(), ...);
}
template <class A>
void check_handlers() noexcept {
  check_handlers_for<A>(typename A::takes());
}

template <class A, class M>
constexpr const message_ops& ops_of() noexcept {
  static_assert(this_actor_takes_this_message<A, M>,
                "this actor does not take such a message: it is not in the list of its class, "
                "actor<Self, messages...>");
  if constexpr (this_actor_takes_this_message<A, M>) {
    check_handler<A, M>();
    return ops_for<A, M>;
  }
}

}  // namespace sluice::detail
