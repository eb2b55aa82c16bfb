#pragma once

// The address of an actor by its key: a message to it activates the actor.
//
// Like `ref` (ref.hpp describes each call), but independent of the actor's life. `keyed_actors::of`
// and `actor_system::of` return it; a send finds or activates the actor.
// Guarantees: those of ref; order between one sender and one key is kept also across a passivation.
// closed: the system, or the keyed_actors, has ended.
// Cost: a lookup in a hash map behind a lock, for each message. A frequent sender may keep `now()`,
// a plain ref: its messages activate the actor too, at the price of the lookup, but only messages
// through a keyed_ref count at once as use of the key (keyed_actors.hpp).
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
  keyed_ref(std::shared_ptr<detail::keyed_core> core, std::string key) noexcept
      : core_(std::move(core)), key_(std::move(key)) {}

  explicit operator bool() const noexcept { return core_ != nullptr; }
  const std::string& key() const noexcept { return key_; }

  // Activates the actor if needed, and returns its ref.
  ref<A> now() const {
    const wait_limits none;
    status result = status::ok;
    return ref<A>(found(&none, result));
  }

  // For coroutines; co_await gives a status, or the reply.
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
    status result = status::ok;
    detail::cell_ptr cell = found(&limits, result);
    if (cell) return ref<A>(std::move(cell)).ask(std::move(m), std::move(limits));
    return make_failed_future<reply_of<M>>(refused<M>(key_, result));
  }
  template <request M>
  status forward(M m, responder<reply_of<M>> asker, const wait_limits& limits = {}) const {
    status result = status::ok;
    detail::cell_ptr cell = found(&limits, result);
    if (cell) return ref<A>(std::move(cell)).forward(std::move(m), std::move(asker), limits);
    asker.fail(std::make_exception_ptr(refused<M>(key_, result)));
    return result;
  }
  template <request M>
  task<status> async_forward(M m, responder<reply_of<M>> asker, wait_limits limits = {}) const {
    return forward_later(held(), key_, std::move(m), std::move(asker), std::move(limits));
  }

  // Ends the actor as a ref does, if it is in memory: it is saved, and the next message activates
  // it again. keyed_actors::forget removes the state.
  void stop() const noexcept {
    if (const detail::cell_ptr cell = core().live(key_)) cell->request_stop(detail::stop_mode::now);
  }
  void close() const noexcept {
    if (const detail::cell_ptr cell = core().live(key_))
      cell->request_stop(detail::stop_mode::drain);
  }

  friend bool operator==(const keyed_ref& a, const keyed_ref& b) noexcept {
    return a.core_ == b.core_ && a.key_ == b.key_;
  }

 private:
  friend class detail::send_calls<keyed_ref<A>>;
  template <message M>
  status deliver(M& m, const wait_limits* limits) const {
    status result = status::ok;
    detail::cell_ptr cell = found(limits, result);
    if (!cell) return result;
    const ref<A> target(std::move(cell));
    return limits != nullptr ? target.send(std::move(m), *limits) : target.try_send(std::move(m));
  }
  using core_ptr = std::shared_ptr<detail::keyed_core>;

  template <class M>
  static actor_error refused(const std::string& key, status result) {
    return actor_error(detail::reason_of(result), key, detail::type_name<M>());
  }

  template <class M>
  static task<status> send_later(core_ptr core, std::string key, M m, wait_limits limits) {
    status result = status::ok;
    auto finding = core->find_async(key, limits, result);
    const ref<A> to(co_await std::move(finding));
    if (!to) co_return result;
    auto sending = to.async_send(std::move(m), std::move(limits));
    co_return co_await sending;
  }
  template <class M>
  static task<reply_of<M>> ask_later(core_ptr core, std::string key, M m, wait_limits limits) {
    status result = status::ok;
    auto finding = core->find_async(key, limits, result);
    const ref<A> to(co_await std::move(finding));
    if (!to) throw refused<M>(key, result);
    auto asking = to.async_ask(std::move(m), std::move(limits));
    co_return co_await std::move(asking);
  }
  template <class M>
  static task<status> forward_later(core_ptr core, std::string key, M m,
                                    responder<reply_of<M>> asker, wait_limits limits) {
    status result = status::ok;
    auto finding = core->find_async(key, limits, result);
    const ref<A> to(co_await std::move(finding));
    if (!to) {
      asker.fail(std::make_exception_ptr(refused<M>(key, result)));
      co_return result;
    }
    auto handing = to.async_forward(std::move(m), std::move(asker), std::move(limits));
    co_return co_await std::move(handing);
  }

  const core_ptr& held() const noexcept {
    check(core_ != nullptr, "sluice::keyed_ref", "a non-empty ref");
    return core_;
  }
  detail::keyed_core& core() const noexcept { return *held(); }
  detail::cell_ptr found(const wait_limits* limits, status& result) const {
    return core().find(key_, limits, result);
  }

  std::shared_ptr<detail::keyed_core> core_;
  std::string key_;
};

}  // namespace sluice
