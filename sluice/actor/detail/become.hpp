#pragma once

// What an actor does with its messages beside handling them: becoming something else, putting them
// aside, making them from timers, futures and the ends of others.

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

// Who wants to hear of an end, and for how long.
struct watch_terms {
  std::stop_token life{};
  cell* by = nullptr;  // what is told holds it
  watcher::kind what = watcher::kind::other;
};
void watch_end(cell& other, unique_function<void(const actor_end&)> tell, watch_terms terms = {});
// In the turn of the first.
void link_cells(cell& mine, cell& other);
bool unlink_cells(cell& mine, cell& other);
void drop_links(cell& mine);  // that it has made in this life
std::uint64_t begin_watch(cell& mine, cell& other);
bool end_watch(cell& mine, std::uint64_t number);  // false: it was given up
bool unwatch_cell(cell& mine, cell& other);
status put_aside(cell& c, envelope& e);
bool has_stash_room(cell& c);
void unstash_all_of(cell& c);
void become_in(cell& c, std::unique_ptr<behaviour> how);
void become_stacked_in(cell& c, std::unique_ptr<behaviour> how);
void unbecome_in(cell& c);

// ---- messages that do not count

template <class A, class M>
void send_free(cell& to, M m) {
  (void)to.send_uncounted(*make_envelope<letter<M>>(*ops_of<A, M>().sent, std::move(m)));
}

template <class A, class M>
status stash_in(cell& c, M m) {
  if (!has_stash_room(c)) return status::full;
  return put_aside(c, *make_envelope<letter<M>>(*ops_of<A, M>().sent, std::move(m)));
}
template <class A, class M>
status stash_in(cell& c, M m, responder<reply_of<M>> to) {
  if (!has_stash_room(c)) return status::full;
  return put_aside(
      c, *make_envelope<request_letter<M>>(*ops_of<A, M>().asked, std::move(m), std::move(to)));
}

// ---- later

clock& clock_of(const cell& c) noexcept;

// A message whose time has come. Its number stands for it until it is handled, so that it can be
// cancelled although it is in the mailbox.
template <class A, class M>
class due final : public envelope {
 public:
  due(std::uint64_t number, M m) : envelope(ops_of_due), number_(number), message_(std::move(m)) {}

 private:
  static void handle(cell& c, envelope& e) {
    due& self = static_cast<due&>(e);
    const used_up after(self);
    if (!c.cancel_call(self.number_)) return;
    dispatch<A, M>::handle(
        c, *make_envelope<letter<M>>(*ops_of<A, M>().sent, std::move(self.message_)));
  }
  static void drop(envelope& e, const cell&, loss) noexcept { free_envelope(static_cast<due&>(e)); }
  static void refuse(envelope& e, const std::exception_ptr&) noexcept {
    free_envelope(static_cast<due&>(e));
  }
  static constexpr envelope_ops ops_of_due{&handle, &drop, type_name<M>(), lane_of<M>(), &refuse};

  template <class E>
  friend void free_envelope(E& e) noexcept;

  const std::uint64_t number_;
  M message_;
};

template <class A, class M>
std::uint64_t send_later(cell& c, std::chrono::nanoseconds wait, M m) {
  return c.call_after(wait, [&c, m = std::move(m)](std::uint64_t number) mutable {
    (void)c.send_uncounted(*make_envelope<due<A, M>>(number, std::move(m)));
  });
}

// A message that comes again and again. Only one waits in the mailbox at a time: it is made from
// the ticker when it is handled.
template <class A, class M>
class ticker {
 public:
  ticker(cell& of, std::chrono::nanoseconds period, M m)
      : cell_(of), period_(period), next_(clock_of(of).now() + period), message_(std::move(m)) {}

  static void fire(const std::shared_ptr<ticker>& self) {
    if (!std::exchange(self->waits_, true)) {
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
    explicit tick(std::shared_ptr<ticker> t) noexcept : envelope(ops_of_ticks), of(std::move(t)) {}
    std::shared_ptr<ticker> of;
  };
  static void handle(cell& c, envelope& e) {
    const std::shared_ptr<ticker> from = std::move(static_cast<tick&>(e).of);
    free_envelope(static_cast<tick&>(e));
    from->waits_ = false;
    if (!c.is_timed(from->number)) return;  // cancelled while it waited
    dispatch<A, M>::handle(c, *make_envelope<letter<M>>(*ops_of<A, M>().sent, M(from->message_)));
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
  bool waits_ = false;  // in the mailbox
};

template <class A, class M>
std::uint64_t start_ticks(cell& c, std::chrono::nanoseconds period, M m) {
  check(period.count() > 0, "sluice::actor", "a period that is longer than nothing");
  auto made = std::make_shared<ticker<A, M>>(c, period, std::move(m));
  made->number = c.call_after(period, [made](std::uint64_t) { ticker<A, M>::fire(made); });
  return made->number;
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

// Makes a message from something that has happened, in the actor's turn: what makes it may use the
// actor's state. If it throws, the actor fails. Not for an actor that was made anew since, nor if
// it `is_wanted` no more.
template <class A, class Wanted, class Make, class... From>
requires std::is_invocable_r_v<bool, Wanted&>
void make_in_turn(cell& to, const std::stop_token& life, Wanted is_wanted, Make make,
                  From... from) {
  (void)to.call([held = cell_ptr(&to), life, is_wanted, make = std::move(make),
                 ... from = std::move(from)]() mutable {
    if (life.stop_requested() || !is_wanted()) return;
    try {
      auto m = make(std::move(from)...);
      send_free<A, decltype(m)>(*held, std::move(m));
    } catch (...) {
      held->fail(std::current_exception());
    }
  });
}

inline bool always() noexcept {
  return true;
}

template <class A, class T, class Make, class Fails>
detached pipe_to(cell_ptr to, std::stop_token life, future<T> f, Make make, Fails fails) {
  std::exception_ptr error;
  try {
    if constexpr (std::is_void_v<T>) {
      co_await std::move(f);
      make_in_turn<A>(*to, life, always, std::move(make));
    } else {
      make_in_turn<A>(*to, life, always, std::move(make), co_await std::move(f));
    }
  } catch (...) {
    error = std::current_exception();
  }
  if (error == nullptr) co_return;
  if constexpr (std::is_null_pointer_v<Fails>) {
    cell& c = *to;
    (void)c.call([to, life, error] {
      if (!life.stop_requested()) to->fail(error);
    });
  } else {
    make_in_turn<A>(*to, life, always, std::move(fails), error);
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
  auto on(M&& m, R&& to) -> decltype((*this)(std::forward<M>(m), std::forward<R>(to))) {
    return (*this)(std::forward<M>(m), std::forward<R>(to));
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
                  "none of these functions takes a message of this actor");
  }
  handler find(std::size_t message) const noexcept override { return table[message]; }

 private:
  template <class M>
  static void handle(behaviour& self, cell& c, envelope& e) {
    const behaviour_use in_use(self);
    auto& hs = static_cast<behaviour_of&>(self).handlers_;
    if (e.is_request) {
      auto& l = static_cast<request_letter<M>&>(e);
      const used_up after(l);
      call_handler(c, hs, l.message, l.to, in_use);
    } else {
      auto& l = static_cast<letter<M>&>(e);
      const used_up after(l);
      responder<reply_of<M>> nobody;
      call_handler(c, hs, l.message, nobody, in_use);
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
