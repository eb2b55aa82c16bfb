#pragma once

// The subscriptions of an event_bus, without the types of the messages.
//
// The list of subscribers of a pattern is never changed, only replaced: a publisher copies the
// pointer under the lock, and sends without it.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sluice/actor/actor_options.hpp"
#include "sluice/actor/detail/cell.hpp"
#include "sluice/actor/detail/type_mark.hpp"
#include "sluice/base/atomic.hpp"
#include "sluice/base/outcome.hpp"
#include "sluice/sync/counter.hpp"
#include "sluice/sync/mutex.hpp"

namespace sluice {

enum class subscription : std::uint64_t {};

// An event that a subscriber missed.
struct missed_event {
  std::string_view topic{};
  std::string_view message{};  // its type
  subscription which{};
  actor_id subscriber = 0;
  status::code why = status::full;  // or dropped
};

struct event_bus_options {
  std::function<void(const missed_event&)> on_drop{};
};

struct subscription_stats {
  subscription which{};
  std::string pattern{};
  std::string subscriber{};     // its name
  std::uint64_t delivered = 0;  // accepted by its mailbox
  std::uint64_t missed = 0;     // its mailbox was full
};

struct event_bus_stats {
  std::size_t subscriptions = 0;
  std::uint64_t published = 0;
  std::uint64_t delivered = 0;
  std::uint64_t missed = 0;
};

namespace detail {

class subscriber {
 public:
  subscriber(std::string pattern_text, type_mark t, std::string_view type_text, cell_ptr receiver)
      : pattern(std::move(pattern_text)),
        type(t),
        type_name(type_text),
        target(std::move(receiver)) {}
  subscriber(const subscriber&) = delete;
  subscriber& operator=(const subscriber&) = delete;
  virtual ~subscriber() = default;

  // Sends a copy of the event, which has the type subscribed to.
  virtual status deliver(const void* event) = 0;

  const std::string pattern;
  const type_mark type;
  const std::string_view type_name;
  const cell_ptr target;
  subscription number{};  // written once, under the table's lock
  // relaxed: statistics.
  atomic<std::uint64_t> delivered{0};
  atomic<std::uint64_t> missed{0};
};

class topic_table : public std::enable_shared_from_this<topic_table> {
 public:
  explicit topic_table(event_bus_options o) : options_(std::move(o)) {}

  static bool is_pattern(std::string_view text) noexcept;

  subscription add(std::shared_ptr<subscriber> s);
  bool remove(subscription number);
  std::size_t publish(type_mark type, std::string_view topic, const void* event);
  std::vector<subscription_stats> subscriptions() const;
  event_bus_stats stats() const;

 private:
  using list = std::shared_ptr<const std::vector<std::shared_ptr<subscriber>>>;
  // By pattern: a whole topic, or the text before the final star.
  using by_text = std::map<std::string, list, std::less<>>;
  struct of_type {
    by_text whole;
    by_text beginnings;
  };

  std::vector<list> matching(type_mark type, std::string_view topic) const;
  by_text& place_of(const subscriber& s);
  static std::string_view text_of(std::string_view pattern) noexcept;
  void take_out(const subscriber& s);
  void forget(const cell* ended);
  bool deliver_to(subscriber& receiver, std::string_view topic, const void* event);

  const event_bus_options options_;
  counter published_;
  counter delivered_;
  counter missed_;

  mutable mutex guard_;
  // Protected by guard_.
  std::unordered_map<type_mark, of_type> types_;
  std::map<subscription, std::shared_ptr<subscriber>> all_;
  // The subscriptions of each watched actor. An actor without any stays here, so that it is watched
  // only once.
  std::unordered_map<const cell*, std::vector<subscription>> of_actor_;
  std::uint64_t last_ = 0;
};

}  // namespace detail
}  // namespace sluice
