#include "sluice/inspect/inspect.hpp"

#include <algorithm>
#include <cstdio>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "sluice/base/callback.hpp"
#include "sluice/base/check.hpp"
#include "sluice/base/code_address.hpp"
#include "sluice/base/thread_id.hpp"
#include "sluice/inspect/detail/address_text.hpp"
#include "sluice/inspect/detail/by_object.hpp"
#include "sluice/inspect/detail/registry.hpp"
#include "sluice/sync/named.hpp"

namespace sluice::inspect {
namespace {

using detail::address_text;
using detail::registry;
using watch::held_as;
using watch::served_by;

std::string short_type(std::string_view type) {
  if (type.empty()) return "something";
  constexpr std::string_view ours = "sluice::";
  if (type.starts_with(ours)) type.remove_prefix(ours.size());
  return std::string(type);
}

std::string object_text(std::string_view type, const void* object) {
  const auto name = watch::name_of(object);
  return short_type(type) + ' ' + (name.empty() ? address_text(object) : name);
}

// Names of threads, each asked for once.
class party_names {
 public:
  party_info of(watch::party id) {
    party_info info{id, {}};
    if (id.what() == watch::party::kind::thread) info.name = thread(id);
    if (id.what() == watch::party::kind::actor) info.name = watch::name_of(id);
    return info;
  }
  // A thread that has ended can serve nobody; nor can an actor, which runs nowhere then.
  bool is_alive(watch::party id) {
    if (id.what() == watch::party::kind::thread) return !thread(id).empty();
    return id.what() != watch::party::kind::actor || watch::executor_of(id) != nullptr;
  }

 private:
  const std::string& thread(watch::party id) {
    const auto [place, is_new] = known_.try_emplace(id.kernel_thread());
    if (is_new) place->second = seam::thread_name(id.kernel_thread());
    return place->second;
  }
  std::map<std::uint32_t, std::string> known_;
};

std::string held_text(const detail::seen_hold& h) {
  switch (h.how) {
    case held_as::alone:
      return "holds";
    case held_as::shared:
      return "reads";
    case held_as::running:
      return "runs";
    case held_as::crew:
      return "could run it";
    case held_as::permits:
      return "has " + std::to_string(h.count) + (h.count == 1 ? " permit" : " permits");
  }
  return "holds";
}

// The state of everything, from which waits are described.
class view {
 public:
  view()
      : waits_(registry::get().waits()),
        holds_(registry::get().holds()),
        runners_(registry::get().runners()),
        crews_(registry::get().crews()),
        uses_(registry::get().uses()),
        now_(registry::get().now()) {
    for (const auto& w : waits_) {
      for (const auto& s : w.on) {
        if (w.is_served) handed_over_.insert(s.object);
      }
    }
  }

  std::vector<wait_info> describe() {
    std::vector<wait_info> all;
    for (const auto& w : waits_) {
      if (w.is_served) continue;
      auto& info = all.emplace_back();
      info.number = w.number;
      info.who = names_.of(w.by);
      info.time = std::max(now_ - w.since, time_point::duration(0));
      info.has_deadline = w.has_deadline;
      info.can_be_stopped = w.can_be_stopped;
      info.at = w.at;
      for (const auto& s : w.on) {
        info.on.push_back(describe(s));
        info.ends_by_itself = info.ends_by_itself || s.ends_in_time;
      }
      for (const auto& p : w.holds_up) info.holds_up.push_back(names_.of(p));
    }
    return all;
  }

 private:
  object_info describe(const watch::subject& s) {
    object_info info{.address = s.object,
                     .type = short_type(s.type),
                     .name = watch::name_of(s.object),
                     .wants = *s.wants != '\0' ? s.wants : "wait for",
                     .by = s.by};
    if (s.capacity != watch::subject::no_capacity) info.capacity = s.capacity;
    if (s.by == served_by::holders) add_holders(info, s.whom);
    if (s.by == served_by::takers) add_users(info, watch::side::takes);
    if (s.by == served_by::givers) add_users(info, watch::side::gives);
    if (s.by == served_by::one) add_the_one(info, s);
    return info;
  }

  void add_the_one(object_info& info, const watch::subject& s) {
    info.others_could = s.others_could;
    if (s.whom.what() == watch::party::kind::executor) return add_crew(info, s.whom.address());
    auto& one = info.servers.emplace_back(server_info{.who = names_.of(s.whom), .how = s.how});
    if (s.whom.what() != watch::party::kind::actor) return;
    info.name = one.who.name;
    one.runs_on = crew_of(watch::executor_of(s.whom));
  }

  // Any thread of the executor, if they are known.
  void add_crew(object_info& info, const void* executor) {
    for (auto& who : crew_of(executor)) {
      info.servers.push_back({.who = std::move(who), .how = "could run it"});
    }
    if (info.servers.empty()) info.by = served_by::unknown;
  }

  // All threads of the executor. None: some of them, or none, are known.
  std::vector<party_info> crew_of(const void* executor) {
    std::vector<party_info> crew;
    std::int64_t there_are = 0;
    for (const auto& c : crews_.of(executor)) {
      there_are = c.count;
      crew.push_back(names_.of(c.by));
    }
    if (std::cmp_not_equal(crew.size(), there_are)) crew.clear();
    return crew;
  }

  void add_holders(object_info& info, watch::party else_by) {
    bool permits = false;
    bool guesses = false;
    for (const auto& h : holds_.of(info.address)) {
      permits = permits || h.how == held_as::permits;
      guesses = guesses || h.is_guess;
      // What a handler has awaited goes with it, also to where the actor is not held up; permits
      // that were awaited may be given back by anybody, under the name of a thread.
      const bool goes_on = h.by.what() == watch::party::kind::actor || h.how == held_as::permits;
      if (h.awaited && goes_on) info.others_could = true;
      add_holder(info, h);
    }
    for (const auto& r : runners_.of(info.address)) add_holder(info, r);
    // One that was handed some, and has not run yet, is not among those who have some.
    if (permits && handed_over_.contains(info.address)) info.others_could = true;
    if (guesses || (permits && registry::get().is_signal(info.address))) {
      info.by = served_by::unknown;
    }
    if (info.servers.empty() && else_by) {
      info.others_could = true;  // somebody may have begun with it this very moment
      add_crew(info, else_by.address());
    }
  }

  void add_holder(object_info& info, const detail::seen_hold& h) {
    info.servers.push_back({.who = names_.of(h.by),
                            .how = held_text(h),
                            .enough = h.how == held_as::permits || h.how == held_as::alone,
                            .held = std::max(now_ - h.since, time_point::duration(0)),
                            .at = {}});
    // One that was told to run it has taken nothing.
    if (h.at.line() != 0) info.servers.back().at = h.at;
  }

  void add_users(object_info& info, watch::side which) {
    const auto side = static_cast<std::size_t>(which);
    for (const auto& u : uses_.of(info.address)) {
      if (u.more[side]) info.by = served_by::unknown;  // there are others that are not known
      for (const auto& by : u.parties[side]) {
        if (!by) break;
        if (!names_.is_alive(by)) {
          // Of a thread it is known by a look into the system, which may fail.
          if (by.what() == watch::party::kind::actor) {
            registry::get().forget_user(info.address, which, by);
          }
          continue;
        }
        info.servers.push_back(
            {.who = names_.of(by), .how = which == watch::side::takes ? "pops" : "pushes"});
      }
    }
  }

  // In this order: what is held is looked at while those who wait are known to have waited.
  const std::vector<detail::seen_wait> waits_;
  const detail::by_object<detail::seen_hold> holds_;
  const detail::by_object<detail::seen_hold> runners_;
  const detail::by_object<detail::seen_crew> crews_;
  const detail::by_object<detail::seen_uses> uses_;
  const time_point now_;
  std::set<const void*> handed_over_;  // of which some were given to one who has not run yet
  party_names names_;
};

lock_inversion describe(const std::vector<detail::lock_step>& steps) {
  lock_inversion found;
  party_names names;
  for (const auto& s : steps) {
    found.steps.push_back({.first = object_text(s.first_type, s.first),
                           .second = object_text(s.second_type, s.second),
                           .first_at = s.first_at,
                           .second_at = s.second_at,
                           .by = names.of(s.by).text()});
  }
  return found;
}

detail::inversion_report reporter(std::function<void(const lock_inversion&)> to) {
  if (to) {
    return [to = std::move(to)](const auto& steps) {
      call_back("on_inversion of inspect", {}, to, describe(steps));
    };
  }
  return [](const auto& steps) { std::fputs(describe(steps).text().c_str(), stderr); };
}

}  // namespace

enabled::enabled(options o) {
  check(!registry::get().is_on(), "sluice::inspect", "to be turned on once at a time");
  registry::get().turn_on(o.time != nullptr ? *o.time : real_clock(), o.lock_order,
                          reporter(std::move(o.on_inversion)));
}

enabled::~enabled() {
  registry::get().turn_off();
}

bool is_on() noexcept {
  return watch::is_on();
}

std::uint64_t left_out() noexcept {
  return registry::get().left_out();
}

std::vector<wait_info> waits() {
  auto all = view().describe();
  std::ranges::stable_sort(all, std::greater<>(), &wait_info::time);
  return all;
}

std::vector<contention_info> contention() {
  std::vector<contention_info> all;
  for (const auto& c : registry::get().contention()) {
    all.push_back({.address = c.actor ? nullptr : c.object,
                   .type = short_type(c.type),
                   .name = c.actor ? watch::name_of(c.actor) : watch::name_of(c.object),
                   .waits = c.waits,
                   .woken_in_vain = c.in_vain,
                   .waited = c.waited,
                   .longest = c.longest,
                   .waiting = c.waiting,
                   .waiting_most = c.waiting_most});
  }
  return all;
}

std::vector<hold_info> holds() {
  std::vector<hold_info> all;
  party_names names;
  const auto seen = registry::get().holds();
  const auto now = registry::get().now();
  for (const auto& h : seen) {
    all.push_back({.number = h.number,
                   .what = {.address = h.object,
                            .type = short_type(h.type),
                            .name = watch::name_of(h.object),
                            .wants = held_text(h)},
                   .who = names.of(h.by),
                   .time = std::max(now - h.since, time_point::duration(0)),
                   .at = h.at});
  }
  return all;
}

std::string party_info::text() const {
  std::string what;
  switch (id.what()) {
    case watch::party::kind::nobody:
      return "nobody";
    case watch::party::kind::thread:
      what = "thread " + std::to_string(id.thread_number());
      break;
    case watch::party::kind::coroutine:
      what = "coroutine " + address_text(id.address());
      break;
    case watch::party::kind::actor:
      what = "actor " + std::to_string(id.actor_number());
      break;
    case watch::party::kind::executor:
      what = "executor " + address_text(id.address());
      break;
    case watch::party::kind::callback:
      what = "callback " + std::to_string(id.id());
      break;
  }
  return name.empty() ? what : what + " (" + name + ")";
}

std::string object_info::text() const {
  if (!name.empty()) return type + ' ' + name;
  return address == nullptr ? type : type + ' ' + address_text(address);
}

std::string to_string(const call_site& at) {
  const std::string_view file(at.file());
  // A header of the standard library, or one of ours that has no room for a place.
  const bool tells_little =
      file.find("/c++/") != std::string_view::npos || file.ends_with("sluice/channel/select.hpp");
  if (tells_little && at.address() != nullptr) return seam::code_address_text(at.address());
  std::string_view shown = file;
  // As the compiler was given it, from a folder of the build.
  while (shown.starts_with("./") || shown.starts_with("../")) {
    shown.remove_prefix(shown.find('/') + 1);
  }
  return std::string(shown) + ':' + std::to_string(at.line());
}

std::string lock_inversion::text() const {
  std::string all = "sluice: locks are taken in two orders, which can deadlock:\n";
  for (const auto& s : steps) {
    all += "  " + s.by + " took " + s.second + " at " + to_string(s.second_at) + " while it held " +
           s.first + ", taken at " + to_string(s.first_at) + "\n";
  }
  return all;
}

}  // namespace sluice::inspect
