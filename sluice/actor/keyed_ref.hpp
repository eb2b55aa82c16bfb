#pragma once

// The address of an actor by its key: it is brought into memory by what is sent to it.
//
// Like `ref` (ref.hpp says what each call does and gives), but it says nothing about a lifetime. It
// is got from `keyed_actors::of` or `actor_system::of`; finding the actor, or making it, happens
// when something is sent.
// Guarantees: those of ref; order between one sender and one key is kept also when the actor was
// out of memory in between. closed: the system, or the keyed_actors, has ended.
// Cost: a lookup in a hash map behind a lock, for each message. Who sends much may keep `now()`, a
// plain ref: what is sent to that brings the actor back as well, at the price of the lookup, but
// only every message of a keyed_ref counts at once as use of the key (keyed_actors.hpp).
//
//     keyed_ref<room> lobby = rooms.of("lobby");
//     (void)lobby.send(say{"hello"});
//     std::size_t n = co_await lobby.ask(members{});

#include <chrono>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>

#include "sluice/actor/detail/keyed_core.hpp"
#include "sluice/actor/ref.hpp"

namespace sluice {

template <class A>
class keyed_ref {
 public:
  using actor_type = A;

  keyed_ref() noexcept = default;
  keyed_ref(std::shared_ptr<detail::keyed_core> of, std::string key) noexcept
      : of_(std::move(of)), key_(std::move(key)) {}

  explicit operator bool() const noexcept { return of_ != nullptr; }
  const std::string& key() const noexcept { return key_; }

  // As it is in memory now; it is brought there.
  ref<A> now() const {
    const wait_limits none;
    status how = status::ok;
    return ref<A>(found(&none, how));
  }

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
  template <message M>
  status send_within(M& m, const wait_limits& limits) const {
    status how = status::ok;
    detail::cell_ptr to = found(&limits, how);
    return to ? ref<A>(std::move(to)).send_within(m, limits) : how;
  }
  template <message M>
  status try_send_ref(M& m) const {
    status how = status::ok;
    detail::cell_ptr to = found(nullptr, how);
    return to ? ref<A>(std::move(to)).try_send_ref(m) : how;
  }
  // For coroutines: never waits for room in memory, only in the mailbox.
  template <message M>
  auto async_send(M m, wait_limits limits = {}) const {
    return ref<A>(of().find(key_)).async_send(std::move(m), std::move(limits));
  }
  template <request M>
  future<reply_of<M>> ask(M m, wait_limits limits = {}) const {
    status how = status::ok;
    detail::cell_ptr to = found(&limits, how);
    if (to) return ref<A>(std::move(to)).ask(std::move(m), std::move(limits));
    return make_failed_future<reply_of<M>>(
        actor_error(detail::reason_of(how), key_, detail::type_name<M>()));
  }

  friend bool operator==(const keyed_ref&, const keyed_ref&) = default;

 private:
  detail::keyed_core& of() const noexcept {
    check(of_ != nullptr, "sluice::keyed_ref", "an actor to refer to");
    return *of_;
  }
  detail::cell_ptr found(const wait_limits* limits, status& how) const {
    return of().find(key_, limits, how);
  }

  std::shared_ptr<detail::keyed_core> of_;
  std::string key_;
};

}  // namespace sluice
