#pragma once

// Every form of `send`, written once for all types that take messages. `Usual` is the message type
// of a receiver of only one type, so that `send({...})` needs no type name.
//
// Self befriends this class and has
//
//   status deliver(M& m, const wait_limits* limits) const
//
// which moves from `m` only on ok and dropped, and never waits if `limits` is null.

#include <type_traits>
#include <utility>

#include "sluice/actor/message.hpp"
#include "sluice/base/outcome.hpp"
#include "sluice/sync/waiter.hpp"

namespace sluice::detail {

template <class Self, class Usual = void>
class send_calls {
 public:
  // Sends the message; under `block`, waits for capacity within the limits. Moves from `m` only on
  // ok and dropped.
  template <message M = Usual>
  status send(M&& m, const wait_limits& limits = {}) const
      requires(!std::is_reference_v<M> && !std::is_const_v<M>) {
    return self().deliver(m, &limits);
  }
  template <message M = Usual>
  status send(const M& m, const wait_limits& limits = {}) const {
    return send(M(m), limits);
  }
  // Never waits: returns `full` also under `block`.
  template <message M = Usual>
  status try_send(M&& m) const requires(!std::is_reference_v<M> && !std::is_const_v<M>) {
    return self().deliver(m, nullptr);
  }
  template <message M = Usual>
  status try_send(const M& m) const {
    return try_send(M(m));
  }

 protected:
  send_calls() noexcept = default;
  ~send_calls() = default;
  send_calls(const send_calls&) noexcept = default;
  send_calls(send_calls&&) noexcept = default;
  send_calls& operator=(const send_calls&) noexcept = default;
  send_calls& operator=(send_calls&&) noexcept = default;

 private:
  const Self& self() const noexcept { return static_cast<const Self&>(*this); }
};

}  // namespace sluice::detail
