#pragma once

// The parts of an actor besides its handlers: death watches and links, stash, timers, messages
// made from futures, and `become`.

#include <array>
#include <chrono>
#include <concepts>
#include <memory>
#include <stop_token>
#include <type_traits>
#include <utility>

#include "sluice/actor/detail/cell_extra.hpp"
#include "sluice/actor/detail/dispatch.hpp"
#include "sluice/base/check.hpp"

namespace sluice::detail {

// How long a watch lasts, and whose it is.
struct watch_terms {
  std::stop_token stop{};
  cell* owner = nullptr;  // the watching actor; kept alive by the callback
  watcher::kind relation = watcher::kind::other;
};
void watch_end(cell& other, unique_function<void(const actor_end&)> notify, watch_terms terms = {});
// In the turn of `self`.
void link_cells(cell& self, cell& other);
bool unlink_cells(cell& self, cell& other);
void drop_links(cell& self);  // the links made since its last restart
std::uint64_t begin_watch(cell& self, cell& other);
bool end_watch(cell& self, std::uint64_t number);  // Returns false if the watch was cancelled.
bool unwatch_cell(cell& self, cell& other);
status stash_envelope(cell& c, envelope& e);
bool has_stash_capacity(cell& c);
void unstash_all_of(cell& c);
void become_in(cell& c, std::unique_ptr<behaviour> next);
void become_stacked_in(cell& c, std::unique_ptr<behaviour> next);
void unbecome_in(cell& c);

// ---- messages beyond the bound

template <class A, class M>
void send_uncounted(cell& receiver, M m) {
  (void)receiver.send_uncounted(*make_envelope<letter<M>>(*ops_of<A, M>().sent, std::move(m)));
}

template <class A, class M>
status stash_in(cell& c, M m) {
  if (!has_stash_capacity(c)) return status::full;
  return stash_envelope(c, *make_envelope<letter<M>>(*ops_of<A, M>().sent, std::move(m)));
}
template <class A, class M>
status stash_in(cell& c, M m, responder<reply_of<M>> asker) {
  if (!has_stash_capacity(c)) return status::full;
  return stash_envelope(
      c, *make_envelope<request_letter<M>>(*ops_of<A, M>().asked, std::move(m), std::move(asker)));
}

// ---- timers

clock& clock_of(const cell& c) noexcept;

// A delayed message whose timer has fired. Its timer number stays valid until the message is
// handled, so that it can be cancelled while it is in the mailbox.
template <class A, class M>
class due_message final : public envelope {
 public:
  due_message(std::uint64_t number, M m)
      : envelope(ops_of_due_messages), number_(number), message_(std::move(m)) {}

 private:
  static void handle(cell& c, envelope& e) {
    due_message& self = static_cast<due_message&>(e);
    const envelope_guard guard(self);
    if (!c.cancel_call(self.number_)) return;
    dispatch<A, M>::handle(
        c, *make_envelope<letter<M>>(*ops_of<A, M>().sent, std::move(self.message_)));
  }
  static void drop(envelope& e, const cell&, loss) noexcept {
    free_envelope(static_cast<due_message&>(e));
  }
  static void refuse(envelope& e, const std::exception_ptr&) noexcept {
    free_envelope(static_cast<due_message&>(e));
  }
  static constexpr envelope_ops ops_of_due_messages{&handle, &drop, type_name<M>(), lane_of<M>(),
                                                    &refuse};

  template <class E>
  friend void free_envelope(E& e) noexcept;

  const std::uint64_t number_;
  M message_;
};

template <class A, class M>
std::uint64_t send_later(cell& c, std::chrono::nanoseconds wait, M m) {
  return c.call_after(wait, [&c, m = std::move(m)](std::uint64_t number) mutable {
    (void)c.send_uncounted(*make_envelope<due_message<A, M>>(number, std::move(m)));
  });
}

// A periodic message. At most one tick is in the mailbox at a time; the message is copied from the
// ticker when the tick is handled.
template <class A, class M>
class ticker {
 public:
  ticker(cell& owner, std::chrono::nanoseconds period, M m)
      : cell_(owner),
        period_(period),
        next_(clock_of(owner).now() + period),
        message_(std::move(m)) {}

  static void fire(const std::shared_ptr<ticker>& self) {
    if (!std::exchange(self->is_tick_queued_, true)) {
      (void)self->cell_.send_uncounted(*make_envelope<tick>(self));
    }
    const time_point now = clock_of(self->cell_).now();
    const auto missed = (now - self->next_) / self->period_;
    self->next_ += (missed + 1) * self->period_;
    self->cell_.call_again(self->number, self->next_ - now, [self](std::uint64_t) { fire(self); });
  }

  std::uint64_t number = 0;

 private:
  class tick final : public envelope {
   public:
    explicit tick(std::shared_ptr<ticker> t) noexcept
        : envelope(ops_of_ticks), source(std::move(t)) {}
    std::shared_ptr<ticker> source;
  };
  static void handle(cell& c, envelope& e) {
    const std::shared_ptr<ticker> source = std::move(static_cast<tick&>(e).source);
    free_envelope(static_cast<tick&>(e));
    source->is_tick_queued_ = false;
    if (!c.has_timer(source->number)) return;  // cancelled while it was in the mailbox
    dispatch<A, M>::handle(c, *make_envelope<letter<M>>(*ops_of<A, M>().sent, M(source->message_)));
  }
  static void drop(envelope& e, const cell&, loss) noexcept {
    free_envelope(static_cast<tick&>(e));
  }
  static void refuse(envelope& e, const std::exception_ptr&) noexcept {
    free_envelope(static_cast<tick&>(e));
  }
  static constexpr envelope_ops ops_of_ticks{&handle, &drop, type_name<M>(), lane_of<M>(), &refuse};

  cell& cell_;
  const std::chrono::nanoseconds period_;
  time_point next_;
  const M message_;
  bool is_tick_queued_ = false;  // a tick is in the mailbox
};

template <class A, class M>
std::uint64_t start_ticks(cell& c, std::chrono::nanoseconds period, M m) {
  check(period.count() > 0, "sluice::actor", "a period > 0");
  auto source = std::make_shared<ticker<A, M>>(c, period, std::move(m));
  source->number = c.call_after(period, [source](std::uint64_t) { ticker<A, M>::fire(source); });
  return source->number;
}

// ---- futures

struct detached {
  struct promise_type {
    detached get_return_object() const noexcept { return {}; }
    std::suspend_never initial_suspend() const noexcept { return {}; }
    std::suspend_never final_suspend() const noexcept { return {}; }
    void return_void() const noexcept {}
    void unhandled_exception() const noexcept { std::terminate(); }
  };
};

// Runs `make` in the actor's turn, where it may use the actor's state, and sends the message that
// it returns to the actor. The actor fails if `make` throws. Does nothing if the actor has
// restarted since, or if `is_wanted` returns false.
template <class A, class Wanted, class Make, class... From>
requires std::is_invocable_r_v<bool, Wanted&>
void make_in_turn(cell& receiver, const std::stop_token& stop, Wanted is_wanted, Make make,
                  From... from) {
  (void)receiver.call([held = cell_ptr(&receiver), stop, is_wanted, make = std::move(make),
                       ... from = std::move(from)]() mutable {
    if (stop.stop_requested() || !is_wanted()) return;
    try {
      auto m = make(std::move(from)...);
      send_uncounted<A, decltype(m)>(*held, std::move(m));
    } catch (...) {
      held->fail(std::current_exception());
    }
  });
}

inline bool always() noexcept {
  return true;
}

template <class A, class T, class Make, class Fails>
detached pipe_to(cell_ptr receiver, std::stop_token stop, future<T> f, Make make, Fails fails) {
  std::exception_ptr error;
  try {
    if constexpr (std::is_void_v<T>) {
      co_await std::move(f);
      make_in_turn<A>(*receiver, stop, always, std::move(make));
    } else {
      make_in_turn<A>(*receiver, stop, always, std::move(make), co_await std::move(f));
    }
  } catch (...) {
    error = std::current_exception();
  }
  if (error == nullptr) co_return;
  if constexpr (std::is_null_pointer_v<Fails>) {
    cell& c = *receiver;
    (void)c.call([receiver, stop, error] {
      if (!stop.stop_requested()) receiver->fail(error);
    });
  } else {
    make_in_turn<A>(*receiver, stop, always, std::move(fails), error);
  }
}

// ---- become

template <class... Handlers>
struct overloaded : Handlers... {
  explicit overloaded(Handlers... hs) : Handlers(std::move(hs))... {}
  template <class M>
  auto on(M&& m) -> decltype((*this)(std::forward<M>(m))) {
    return (*this)(std::forward<M>(m));
  }
  template <class M, class R>
  auto on(M&& m, R&& asker) -> decltype((*this)(std::forward<M>(m), std::forward<R>(asker))) {
    return (*this)(std::forward<M>(m), std::forward<R>(asker));
  }
  using Handlers::operator()...;
};

template <class Takes, class... Handlers>
class behaviour_of;

template <class... Ms, class... Handlers>
class behaviour_of<messages<Ms...>, Handlers...> final : public behaviour {
 public:
  explicit behaviour_of(Handlers... hs) : handlers_(std::move(hs)...) {
    static_assert((handles<overloaded<Handlers...>, Ms> || ...),
                  "these functions take no message of this actor");
  }
  handler find(std::size_t message) const noexcept override { return table[message]; }

 private:
  template <class M>
  static void handle(behaviour& self, cell& c, envelope& e) {
    const behaviour_use in_use(self);
    auto& hs = static_cast<behaviour_of&>(self).handlers_;
    if (e.is_request) {
      auto& l = static_cast<request_letter<M>&>(e);
      const envelope_guard guard(l);
      call_handler(c, hs, l.message, l.asker, in_use);
    } else {
      auto& l = static_cast<letter<M>&>(e);
      const envelope_guard guard(l);
      responder<reply_of<M>> no_asker;
      call_handler(c, hs, l.message, no_asker, in_use);
    }
  }
  template <class M>
  static constexpr handler of() noexcept {
    if constexpr (handles<overloaded<Handlers...>, M>) {
      return &handle<M>;
    } else {
      return nullptr;
    }
  }
  static constexpr std::array<handler, sizeof...(Ms)> table{of<Ms>()...};

  overloaded<Handlers...> handlers_;
};

}  // namespace sluice::detail
