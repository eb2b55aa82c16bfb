#pragma once

// Tells whoever wants to know: publishers name a topic, subscribers a pattern, and neither knows
// the other.
//
// Use it for events with any number of listeners that come and go. Prefer a ref where one actor is
// meant, `actor_router` where one of several is, `broadcast` for all members of a group.
//
// A topic is parts with dots between: `orders.eu.placed`. A pattern is a topic, and then matches
// only that; or ends in a part that is a star, `orders.*`, and then matches every topic that begins
// with what is before it (`orders.eu`, `orders.eu.placed`, not `orders`); or is `*`, and matches
// all. A star anywhere else is a broken contract: ask `is_pattern` about input from outside.
// An event is typed: a subscription is for one type of message and gets only what is published as
// that very type.
//
// Guarantees: any thread may call anything. `publish` never waits. It gives a copy to each actor
// that has a matching subscription, once, however many match (the most specific is the one that
// counts it), and returns how many accepted it. What one thread publishes is begun by a subscriber
// in its order, within a lane. A subscriber whose mailbox is full does not slow the others down:
// what its own policy drops, or refuses where it would block, it misses. That is counted for its
// subscription, and reported to `on_drop` on the publishing thread. `on_drop` must not wait; an
// exception that leaves it is written to standard error.
// (With drop_oldest and latest it is the system that counts what was dropped for the new one.)
// A subscriber that has ended is forgotten. The same subscription again is the one that exists.
// After `unsubscribe` a publication that had begun may still arrive. The bus may go before its
// subscribers.
// Cost: publishing takes a lock for one lookup a part of the topic, then a try_send for each
// subscriber; subscribing copies the list of those with the same pattern.
//
//     event_bus bus;
//     auto mine = bus.subscribe<order_placed>("orders.*", self());
//     std::size_t told = bus.publish("orders.eu", order_placed{17});
//     bus.unsubscribe(mine);

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sluice/actor/detail/topic_table.hpp"
#include "sluice/actor/detail/type_mark.hpp"
#include "sluice/actor/detail/type_name.hpp"
#include "sluice/actor/ref.hpp"

namespace sluice {

class event_bus {
 public:
  using options = event_bus_options;

  explicit event_bus(options o = {})
      : topics_(std::make_shared<detail::topic_table>(std::move(o))) {}
  event_bus(const event_bus&) = delete;
  event_bus& operator=(const event_bus&) = delete;

  static bool is_pattern(std::string_view text) noexcept {
    return detail::topic_table::is_pattern(text);
  }

  // Of an actor that has ended: a subscription that is over already.
  template <message M>
  requires std::copy_constructible<M> subscription subscribe(std::string pattern, recipient<M> to) {
    return topics_->add(std::make_shared<typed_subscriber<M>>(std::move(pattern), std::move(to)));
  }
  // False: there is no such subscription any more.
  bool unsubscribe(subscription which) { return topics_->remove(which); }

  template <message M>
  std::size_t publish(std::string_view topic, const M& event) {
    return topics_->publish(detail::mark_of<M>(), topic, &event);
  }

  // Of all subscriptions, in the order in which they were made.
  std::vector<subscription_stats> subscriptions() const { return topics_->subscriptions(); }
  event_bus_stats stats() const { return topics_->stats(); }

 private:
  template <class M>
  class typed_subscriber final : public detail::subscriber {
   public:
    typed_subscriber(std::string text, recipient<M> to)
        : subscriber(std::move(text), detail::mark_of<M>(), detail::type_name<M>(),
                     detail::cell_ptr(&to.cell_of())),
          to_(std::move(to)) {}
    status deliver(const void* event) override {
      return to_.try_send(M(*static_cast<const M*>(event)));
    }

   private:
    const recipient<M> to_;
  };

  const std::shared_ptr<detail::topic_table> topics_;
};

}  // namespace sluice
