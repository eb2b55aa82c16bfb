#pragma once

// An actor that knows its key, and can save its state before it replies.
//
// Any actor with `save` and `load` can be keyed (keyed_actors.hpp). Derive from keyed_actor in
// place of `actor` if a reply must not be undone by a crash.
//
// Guarantees: those of actor.hpp. `save_now` saves the state as it is at the call; its future is
// ready when the state is durable, and fails if the save fails. Several saves may be in progress;
// the last one wins. To create one other than by keyed_actors is a broken contract.
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
