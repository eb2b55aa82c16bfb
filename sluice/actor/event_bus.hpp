#pragma once

// Publish and subscribe: publishers name a topic, subscribers a pattern, and neither knows the
// other.
//
// Use it for events with any number of listeners, added and removed at any time. Prefer a ref if
// one actor is meant, `actor_router` if one of several is, `broadcast` for all members of a group.
//
// A topic consists of parts separated by dots: `orders.eu.placed`. A pattern is a topic, and
// matches only that; or ends in a part that is a star, `orders.*`, and matches every topic that
// begins with the parts before it (`orders.eu`, `orders.eu.placed`, not `orders`); or is `*`, and
// matches all topics. A star at another place is a broken contract: check external input with
// `is_pattern`. A subscription is for one message type, and gets only events published as exactly
// that type.
//
// Guarantees: any thread may call anything. `publish` never waits. It gives one copy to each actor
// with a matching subscription, however many match (the most specific one counts it), and returns
// how many accepted it. A subscriber begins the events of one publishing thread in their order,
// within a lane. A subscriber whose mailbox is full does not slow down the others: it misses the
// event, as its policy drops it, or rejects it where senders would wait. That is counted for its
// subscription, and reported to `on_drop` on the publishing thread. `on_drop` must not wait; an
// exception that leaves it is written to standard error. (With drop_oldest and latest the system
// counts the older message that was dropped.) A subscriber that has ended is removed. A repeated
// subscription is the existing one. After `unsubscribe` a publication that had begun may still
// arrive. The bus may be destroyed before its subscribers.
// Cost: publishing takes a lock for one lookup a part of the topic, then a try_send for each
// subscriber; subscribing copies the list of subscriptions with the same pattern.
//
//     event_bus bus;
//     auto subscription = bus.subscribe<order_placed>("orders.*", self());
//     std::size_t accepted = bus.publish("orders.eu", order_placed{17});
//     bus.unsubscribe(subscription);

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

  // For an actor that has ended, the subscription has ended too.
  template <message M>
  requires std::copy_constructible<M> subscription subscribe(std::string pattern,
                                                             recipient<M> receiver) {
    return topics_->add(
        std::make_shared<typed_subscriber<M>>(std::move(pattern), std::move(receiver)));
  }
  // Returns false if the subscription has ended.
  bool unsubscribe(subscription which) { return topics_->remove(which); }

  template <message M>
  std::size_t publish(std::string_view topic, const M& event) {
    return topics_->publish(detail::mark_of<M>(), topic, &event);
  }

  // Returns the counters of all subscriptions, in the order of subscribing.
  std::vector<subscription_stats> subscriptions() const { return topics_->subscriptions(); }
  event_bus_stats stats() const { return topics_->stats(); }

 private:
  template <class M>
  class typed_subscriber final : public detail::subscriber {
   public:
    typed_subscriber(std::string text, recipient<M> receiver)
        : subscriber(std::move(text), detail::mark_of<M>(), detail::type_name<M>(),
                     detail::cell_ptr(&receiver.cell_of())),
          receiver_(std::move(receiver)) {}
    status deliver(const void* event) override {
      return receiver_.try_send(M(*static_cast<const M*>(event)));
    }

   private:
    const recipient<M> receiver_;
  };

  const std::shared_ptr<detail::topic_table> topics_;
};

}  // namespace sluice
