#pragma once

// From an envelope to the handler: which of an actor's `on` takes a message, and what is done with
// what it returns.

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
  letter(const envelope_ops& how, M&& m) : envelope(how), message(std::move(m)) {}
  M message;
};

template <class M>
class request_letter final : public letter<M> {
 public:
  request_letter(const envelope_ops& how, M&& m, responder<reply_of<M>> who)
      : letter<M>(how, std::move(m)), to(std::move(who)) {
    this->is_request = true;
  }
  responder<reply_of<M>> to;
};

actor_error::reason reason_of(status how) noexcept;

// One that did not get into the mailbox: the asker hears why.
template <class M>
void refuse(request_letter<M>& l, const std::string& by, status how) noexcept {
  l.to.fail(std::make_exception_ptr(actor_error(reason_of(how), by, type_name<M>())));
  free_envelope(l);
}

// Frees it when the handler has returned or thrown.
template <class E>
class used_up {
 public:
  explicit used_up(E& e) noexcept : e_(e) {}
  used_up(const used_up&) = delete;
  used_up& operator=(const used_up&) = delete;
  ~used_up() { free_envelope(e_); }

 private:
  E& e_;
};

template <class T>
inline constexpr bool gives_task = false;
template <class T>
inline constexpr bool gives_task<task<T>> = true;
template <class T>
inline constexpr bool gives_future = false;
template <class T>
inline constexpr bool gives_future<future<T>> = true;

// What handles the messages of an actor: the actor itself, or what it has become.
template <class H, class M>
concept takes_responder = requires(H& h, M m, responder<reply_of<M>> to) {
  h.on(std::move(m), std::move(to));
};
template <class H, class M>
concept takes_alone = requires(H& h, M m) {
  h.on(std::move(m));
};
template <class H, class M>
concept handles = takes_responder<H, M> || takes_alone<H, M>;

template <class Reply, class Value>
void answer_with(responder<Reply>& to, Value&& make) {
  try {
    if constexpr (std::is_void_v<Reply>) {
      make();
      to.reply();
    } else {
      to.reply(make());
    }
  } catch (...) {
    to.fail(std::current_exception());
    throw;
  }
}

// What the handler gives; who asked hears what it throws instead.
template <class R, class F>
auto asked_for(responder<R>& to, const F& handler) {
  try {
    return handler();
  } catch (...) {
    to.fail(std::current_exception());
    throw;
  }
}

// What a handler of the actor itself needs to be kept: it ends before the actor does.
struct always_there {};

// Calls the handler. `to` answers nobody when the message was only sent. `keeps` what it is in, for
// as long as it runs.
template <class H, class M, class Keeps = always_there>
void call_handler(cell& c, H& h, M& m, responder<reply_of<M>>& to, const Keeps& keeps = {}) {
  using reply = reply_of<M>;
  if constexpr (takes_responder<H, M>) {
    using given = decltype(h.on(std::move(m), std::move(to)));
    if constexpr (gives_task<given>) {
      static_assert(std::is_void_v<typename given::value_type>,
                    "a handler that takes a responder answers through that");
      run_task(c, h, std::move(m), std::move(to), keeps);
    } else {
      h.on(std::move(m), std::move(to));
    }
  } else {
    using given = decltype(h.on(std::move(m)));
    if constexpr (gives_task<given>) {
      static_assert(
          std::is_void_v<reply> || std::is_convertible_v<typename given::value_type, reply>,
          "the handler of a request must give its reply");
      run_task(c, h, std::move(m), std::move(to), keeps);
    } else if constexpr (gives_future<given>) {
      auto later = asked_for(to, [&] { return h.on(std::move(m)); });
      answer_later(c, std::move(later), std::move(to));
    } else {
      static_assert(std::is_void_v<reply> || std::is_convertible_v<given, reply>,
                    "the handler of a request must give its reply, or take a responder");
      answer_with(to, [&]() -> decltype(auto) { return h.on(std::move(m)); });
    }
  }
}

template <class A, class M>
struct dispatch {
  static constexpr std::size_t index = A::takes::template index_of<M>();

  static bool by_behaviour(cell& c, envelope& e) {
    if (!c.is_behaving()) [[likely]]
      return false;
    behaviour& now = *c.extra().behaviours.back();
    const behaviour::handler instead = now.find(index);
    if (instead == nullptr) return false;
    instead(now, c, e);
    return true;
  }

  static void handle(cell& c, envelope& e) {
    if (by_behaviour(c, e)) return;
    auto& l = static_cast<letter<M>&>(e);
    const used_up after(l);
    A& a = static_cast<typed_cell<A>&>(c).state();
    if constexpr (!takes_responder<A, M> && std::is_void_v<reply_of<M>> &&
                  !gives_task<decltype(on_of(a, l.message))> &&
                  !gives_future<decltype(on_of(a, l.message))>) {
      a.on(std::move(l.message));
    } else {
      responder<reply_of<M>> nobody;
      call_handler(c, a, l.message, nobody);
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
    const used_up after(l);
    call_handler(c, static_cast<typed_cell<A>&>(c).state(), l.message, l.to);
  }
  static void drop_asked(envelope& e, const cell& to, loss why) noexcept {
    auto& l = static_cast<request_letter<M>&>(e);
    l.to.fail(std::make_exception_ptr(
        actor_error(why == loss::dropped ? actor_error::dropped : actor_error::gone, to.name(),
                    type_name<M>())));
    free_envelope(l);
  }
  static void refuse_asked(envelope& e, const std::exception_ptr& why) noexcept {
    auto& l = static_cast<request_letter<M>&>(e);
    l.to.fail(why);
    free_envelope(l);
  }
  static constexpr envelope_ops asked{&handle_asked, &drop_asked, type_name<M>(), lane_of<M>(),
                                      &refuse_asked};

 private:
  // Never called: so that its result can be named also where `on` wants a responder.
  static auto on_of(A& a, M& m) {
    if constexpr (takes_alone<A, M>) {
      if constexpr (!std::is_void_v<decltype(a.on(std::move(m)))>) {
        return a.on(std::move(m));
      }
    }
  }
};

// The two ways into one actor for one message, without its type.
struct message_ops {
  const envelope_ops* sent;
  const envelope_ops* asked;
};
template <class A, class M>
inline constexpr message_ops ops_for{&dispatch<A, M>::sent, &dispatch<A, M>::asked};

// Named in what the compiler says about a message that an actor does not take.
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
