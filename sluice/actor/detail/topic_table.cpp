#include "sluice/actor/detail/topic_table.hpp"

#include <algorithm>
#include <mutex>
#include <unordered_set>

#include "sluice/actor/detail/become.hpp"
#include "sluice/base/callback.hpp"
#include "sluice/base/check.hpp"

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
  of_type& those = types_[s.type];
  return has_star(s.pattern) ? those.beginnings : those.whole;
}

// ---- subscribing

subscription topic_table::add(std::shared_ptr<subscriber> s) {
  check(is_pattern(s->pattern), "sluice::event_bus",
        "a pattern with no star but as the whole of its last part");
  const cell_ptr who = s->who;
  bool is_first = false;
  subscription number{};
  {
    list before;  // destroyed without the lock
    const std::lock_guard hold(guard_);
    list& those = place_of(*s)[std::string(text_of(s->pattern))];
    auto next = std::make_shared<std::vector<std::shared_ptr<subscriber>>>();
    if (those != nullptr) {
      const auto same = std::ranges::find(*those, who, [](const auto& each) { return each->who; });
      if (same != those->end()) return (*same)->number;
      next->reserve(those->size() + 1);
      *next = *those;
    }
    number = s->number = subscription(++last_);
    const auto [mine, is_unwatched] = of_actor_.try_emplace(who.get());
    is_first = is_unwatched;
    mine->second.push_back(number);
    all_.emplace(number, s);
    next->push_back(std::move(s));
    before = std::exchange(those, std::move(next));
  }
  // Without the lock: it may call back at once.
  if (is_first) {
    watch_end(*who, [table = weak_from_this(), which = who.get()](const actor_end&) {
      if (const auto still_there = table.lock()) still_there->forget(which);
    });
  }
  return number;
}

bool topic_table::remove(subscription which) {
  std::shared_ptr<subscriber> gone;
  const std::lock_guard hold(guard_);
  const auto at = all_.find(which);
  if (at == all_.end()) return false;
  gone = std::move(at->second);
  all_.erase(at);
  std::erase(of_actor_[gone->who.get()], which);
  take_out(*gone);
  return true;
}

void topic_table::forget(const cell* who) {
  std::vector<std::shared_ptr<subscriber>> gone;
  const std::lock_guard hold(guard_);
  const auto found = of_actor_.find(who);
  if (found == of_actor_.end()) return;
  for (const subscription which : found->second) {
    const auto at = all_.find(which);
    gone.push_back(std::move(at->second));
    all_.erase(at);
    take_out(*gone.back());
  }
  of_actor_.erase(found);
}

// What its list was is destroyed under the lock, but that destroys no subscriber: `s` is held, and
// so are the others.
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

// The most specific first.
std::vector<topic_table::list> topic_table::matching(type_mark type, std::string_view topic) const {
  std::vector<list> found;
  const auto add = [&](const by_text& in, std::string_view text) {
    if (const auto at = in.find(text); at != in.end()) found.push_back(at->second);
  };
  const std::lock_guard hold(guard_);
  const auto of = types_.find(type);
  if (of == types_.end()) return found;
  add(of->second.whole, topic);
  const by_text& beginnings = of->second.beginnings;
  if (beginnings.empty()) return found;
  // The part before a dot and the dot, for each of them: a star stands for one character at least.
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
  std::unordered_set<const cell*> told;  // where one may stand in two lists
  for (const list& those : lists) {
    for (const std::shared_ptr<subscriber>& each : *those) {
      if (lists.size() > 1 && !told.insert(each->who.get()).second) continue;
      if (hand_over(*each, topic, event)) ++accepted;
    }
  }
  delivered_.add(static_cast<counter::value_type>(accepted));
  return accepted;
}

bool topic_table::hand_over(subscriber& to, std::string_view topic, const void* event) {
  const status how = to.deliver(event);
  if (how) {
    to.delivered.fetch_add(1, relaxed);
    return true;
  }
  if (how == status::closed) {
    (void)remove(to.number);  // it ends: there is nothing to wait for
    return false;
  }
  to.missed.fetch_add(1, relaxed);
  missed_.increment();
  if (options_.on_drop) {
    const missed_event missed{.topic = topic,
                              .message = to.type_name,
                              .which = to.number,
                              .subscriber = to.who->id(),
                              .why = how};
    call_back("on_drop of event_bus", {}, options_.on_drop, missed);
  }
  return false;
}

// ---- looking

std::vector<subscription_stats> topic_table::subscriptions() const {
  std::vector<subscription_stats> stats;
  const std::lock_guard hold(guard_);
  for (const auto& [number, s] : all_) {
    stats.push_back({.which = number,
                     .pattern = s->pattern,
                     .subscriber = s->who->name(),
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
