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

#include <memory>
#include <string>
#include <utility>

#include "sluice/actor/detail/keyed_core.hpp"
#include "sluice/actor/ref.hpp"

namespace sluice {

template <class A>
class keyed_ref : public detail::send_calls<keyed_ref<A>> {
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
  // For coroutines. co_await gives a status, and the reply.
  template <message M>
  task<status> async_send(M m, wait_limits limits = {}) const {
    return send_later(held(), key_, std::move(m), std::move(limits));
  }
  template <request M>
  task<reply_of<M>> async_ask(M m, wait_limits limits = {}) const {
    return ask_later(held(), key_, std::move(m), std::move(limits));
  }
  template <request M>
  future<reply_of<M>> ask(M m, wait_limits limits = {}) const {
    status how = status::ok;
    detail::cell_ptr to = found(&limits, how);
    if (to) return ref<A>(std::move(to)).ask(std::move(m), std::move(limits));
    return make_failed_future<reply_of<M>>(refused<M>(key_, how));
  }
  template <request M>
  status forward(M m, responder<reply_of<M>> asker, const wait_limits& limits = {}) const {
    status how = status::ok;
    detail::cell_ptr to = found(&limits, how);
    if (to) return ref<A>(std::move(to)).forward(std::move(m), std::move(asker), limits);
    asker.fail(std::make_exception_ptr(refused<M>(key_, how)));
    return how;
  }
  template <request M>
  task<status> async_forward(M m, responder<reply_of<M>> asker, wait_limits limits = {}) const {
    return forward_later(held(), key_, std::move(m), std::move(asker), std::move(limits));
  }

  // The actor ends as a ref says it, if it is in memory: it is saved, and the next message brings
  // it back. To have its state removed: keyed_actors::forget.
  void stop() const noexcept {
    if (const detail::cell_ptr to = of().live(key_)) to->request_stop(detail::stop_how::now);
  }
  void close() const noexcept {
    if (const detail::cell_ptr to = of().live(key_)) to->request_stop(detail::stop_how::drain);
  }

  friend bool operator==(const keyed_ref& a, const keyed_ref& b) noexcept {
    return a.of_ == b.of_ && a.key_ == b.key_;
  }

 private:
  using core_ptr = std::shared_ptr<detail::keyed_core>;

  template <class M>
  static actor_error refused(const std::string& key, status how) {
    return actor_error(detail::reason_of(how), key, detail::type_name<M>());
  }

  template <class M>
  static task<status> send_later(core_ptr of, std::string key, M m, wait_limits limits) {
    status how = status::ok;
    auto finding = of->find_async(key, limits, how);
    const ref<A> to(co_await std::move(finding));
    if (!to) co_return how;
    auto sending = to.async_send(std::move(m), std::move(limits));
    co_return co_await sending;
  }
  template <class M>
  static task<reply_of<M>> ask_later(core_ptr of, std::string key, M m, wait_limits limits) {
    status how = status::ok;
    auto finding = of->find_async(key, limits, how);
    const ref<A> to(co_await std::move(finding));
    if (!to) throw refused<M>(key, how);
    auto asking = to.async_ask(std::move(m), std::move(limits));
    co_return co_await std::move(asking);
  }
  template <class M>
  static task<status> forward_later(core_ptr of, std::string key, M m, responder<reply_of<M>> asker,
                                    wait_limits limits) {
    status how = status::ok;
    auto finding = of->find_async(key, limits, how);
    const ref<A> to(co_await std::move(finding));
    if (!to) {
      asker.fail(std::make_exception_ptr(refused<M>(key, how)));
      co_return how;
    }
    auto handing = to.async_forward(std::move(m), std::move(asker), std::move(limits));
    co_return co_await std::move(handing);
  }

  const core_ptr& held() const noexcept {
    check(of_ != nullptr, "sluice::keyed_ref", "an actor to refer to");
    return of_;
  }
  detail::keyed_core& of() const noexcept { return *held(); }
  detail::cell_ptr found(const wait_limits* limits, status& how) const {
    return of().find(key_, limits, how);
  }

  std::shared_ptr<detail::keyed_core> of_;
  std::string key_;
};

}  // namespace sluice
