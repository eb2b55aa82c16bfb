#pragma once

// An actor that knows its key, and can have its state saved before it answers.
//
// Not needed to be kept by key: any actor with `save` and `load` can be (keyed_actors.hpp). Derive
// from it, in the place of `actor`, where what was answered must not be lost in a crash.
//
// Guarantees: those of actor.hpp. `save_now` saves the state as it is at the call; its future is
// ready when that is durable, and fails when it is not. Several may be under way; what was saved
// last is what stays. Made otherwise than by keyed_actors: a broken contract.
//
//     class account : public keyed_actor<account, deposit> {
//      public:
//       task<long> on(deposit d) {          // struct deposit { using reply = long; long n; };
//         balance_ += d.n;
//         co_await save_now();
//         co_return balance_;
//       }

#include <string>

#include "sluice/actor/actor.hpp"
#include "sluice/actor/detail/keyed_life.hpp"

namespace sluice {

template <class Self, message... Ms>
class keyed_actor : public actor<Self, Ms...> {
 protected:
  keyed_actor() noexcept : life_(detail::life_under_construction()) {}
  ~keyed_actor() = default;

  const std::string& key() const noexcept { return life_.key(); }
  future<void> save_now() { return life_.save_now(); }

 private:
  detail::keyed_life& life_;
};

}  // namespace sluice
