#include "sluice/actor/detail/topic_table.hpp"

#include <algorithm>
#include <mutex>
#include <unordered_set>

#include "sluice/actor/detail/become.hpp"
#include "sluice/base/check.hpp"
#include "sluice/base/detail/callback.hpp"

namespace sluice::detail {
namespace {

bool has_star(std::string_view pattern) noexcept {
  return pattern == "*" || pattern.ends_with(".*");
}

}  // namespace

bool topic_table::is_pattern(std::string_view text) noexcept {
  return text_of(text).find('*') == std::string_view::npos;
}

std::string_view topic_table::text_of(std::string_view pattern) noexcept {
  if (has_star(pattern)) pattern.remove_suffix(1);
  return pattern;
}

topic_table::by_text& topic_table::place_of(const subscriber& s) {
  of_type& lists = types_[s.type];
  return has_star(s.pattern) ? lists.beginnings : lists.whole;
}

// ---- subscribing

subscription topic_table::add(std::shared_ptr<subscriber> s) {
  check(is_pattern(s->pattern), "sluice::event_bus",
        "a pattern with '*' only as its whole last part");
  const cell_ptr target = s->target;
  bool is_first = false;
  subscription number{};
  {
    list previous;  // destroyed after unlock
    const std::lock_guard hold(guard_);
    list& current = place_of(*s)[std::string(text_of(s->pattern))];
    auto next = std::make_shared<std::vector<std::shared_ptr<subscriber>>>();
    if (current != nullptr) {
      const auto same =
          std::ranges::find(*current, target, [](const auto& each) { return each->target; });
      if (same != current->end()) return (*same)->number;
      next->reserve(current->size() + 1);
      *next = *current;
    }
    number = s->number = subscription(++last_);
    const auto [numbers, is_unwatched] = of_actor_.try_emplace(target.get());
    is_first = is_unwatched;
    numbers->second.push_back(number);
    all_.emplace(number, s);
    next->push_back(std::move(s));
    previous = std::exchange(current, std::move(next));
  }
  // Without the lock: the callback may run at once.
  if (is_first) {
    watch_end(*target, [weak = weak_from_this(), ended = target.get()](const actor_end&) {
      if (const auto table = weak.lock()) table->forget(ended);
    });
  }
  return number;
}

bool topic_table::remove(subscription number) {
  std::shared_ptr<subscriber> removed;
  const std::lock_guard hold(guard_);
  const auto at = all_.find(number);
  if (at == all_.end()) return false;
  removed = std::move(at->second);
  all_.erase(at);
  std::erase(of_actor_[removed->target.get()], number);
  take_out(*removed);
  return true;
}

void topic_table::forget(const cell* ended) {
  std::vector<std::shared_ptr<subscriber>> removed;
  const std::lock_guard hold(guard_);
  const auto found = of_actor_.find(ended);
  if (found == of_actor_.end()) return;
  for (const subscription number : found->second) {
    const auto at = all_.find(number);
    removed.push_back(std::move(at->second));
    all_.erase(at);
    take_out(*removed.back());
  }
  of_actor_.erase(found);
}

// The old list is destroyed under the lock, but no subscriber is: the new list holds the others,
// and the caller holds `s`.
void topic_table::take_out(const subscriber& s) {
  by_text& place = place_of(s);
  const auto at = place.find(text_of(s.pattern));
  auto next = std::make_shared<std::vector<std::shared_ptr<subscriber>>>();
  next->reserve(at->second->size());
  for (const auto& each : *at->second) {
    if (each.get() != &s) next->push_back(each);
  }
  if (next->empty()) {
    place.erase(at);
  } else {
    at->second = std::move(next);
  }
}

// ---- publishing

// Returns the lists that match, the most specific first.
std::vector<topic_table::list> topic_table::matching(type_mark type, std::string_view topic) const {
  std::vector<list> found;
  const auto add = [&](const by_text& lists, std::string_view text) {
    if (const auto at = lists.find(text); at != lists.end()) found.push_back(at->second);
  };
  const std::lock_guard hold(guard_);
  const auto of_this_type = types_.find(type);
  if (of_this_type == types_.end()) return found;
  add(of_this_type->second.whole, topic);
  const by_text& beginnings = of_this_type->second.beginnings;
  if (beginnings.empty()) return found;
  // For each dot, the text up to and including it. A star stands for at least one character.
  std::string_view rest = topic.substr(0, topic.empty() ? 0 : topic.size() - 1);
  for (;;) {
    const std::size_t dot = rest.rfind('.');
    if (dot == std::string_view::npos) break;
    add(beginnings, topic.substr(0, dot + 1));
    rest = topic.substr(0, dot);
  }
  add(beginnings, "");
  return found;
}

std::size_t topic_table::publish(type_mark type, std::string_view topic, const void* event) {
  published_.increment();
  const std::vector<list> lists = matching(type, topic);
  std::size_t accepted = 0;
  std::unordered_set<const cell*> notified;  // used if an actor may be in two lists
  for (const list& subscribers : lists) {
    for (const std::shared_ptr<subscriber>& each : *subscribers) {
      if (lists.size() > 1 && !notified.insert(each->target.get()).second) continue;
      if (deliver_to(*each, topic, event)) ++accepted;
    }
  }
  delivered_.add(static_cast<counter::value_type>(accepted));
  return accepted;
}

bool topic_table::deliver_to(subscriber& receiver, std::string_view topic, const void* event) {
  const status result = receiver.deliver(event);
  if (result) {
    receiver.delivered.fetch_add(1, relaxed);
    return true;
  }
  if (result == status::closed) {
    (void)remove(receiver.number);  // it is ending: do not wait for its termination
    return false;
  }
  receiver.missed.fetch_add(1, relaxed);
  missed_.increment();
  if (options_.on_drop) {
    const missed_event missed{.topic = topic,
                              .message = receiver.type_name,
                              .which = receiver.number,
                              .subscriber = receiver.target->id(),
                              .why = result};
    call_back("on_drop of event_bus", {}, options_.on_drop, missed);
  }
  return false;
}

// ---- inspection

std::vector<subscription_stats> topic_table::subscriptions() const {
  std::vector<subscription_stats> stats;
  const std::lock_guard hold(guard_);
  for (const auto& [number, s] : all_) {
    stats.push_back({.which = number,
                     .pattern = s->pattern,
                     .subscriber = s->target->name(),
                     .delivered = s->delivered.load(relaxed),
                     .missed = s->missed.load(relaxed)});
  }
  return stats;
}

event_bus_stats topic_table::stats() const {
  event_bus_stats s;
  s.published = static_cast<std::uint64_t>(published_.sum());
  s.delivered = static_cast<std::uint64_t>(delivered_.sum());
  s.missed = static_cast<std::uint64_t>(missed_.sum());
  const std::lock_guard hold(guard_);
  s.subscriptions = all_.size();
  return s;
}

}  // namespace sluice::detail
