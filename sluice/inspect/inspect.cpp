#include "sluice/inspect/inspect.hpp"

#include <algorithm>
#include <cstdio>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "sluice/base/check.hpp"
#include "sluice/base/detail/callback.hpp"
#include "sluice/base/detail/code_address.hpp"
#include "sluice/base/detail/thread_id.hpp"
#include "sluice/base/detail/user_code.hpp"
#include "sluice/inspect/detail/address_text.hpp"
#include "sluice/inspect/detail/by_object.hpp"
#include "sluice/inspect/detail/registry.hpp"
#include "sluice/sync/named.hpp"

namespace sluice::inspect {
namespace {

using detail::address_text;
using detail::registry;
using wait_report::held_as;
using wait_report::served_by;

std::string short_type(std::string_view type) {
  if (type.empty()) return "something";
  constexpr std::string_view ours = "sluice::";
  if (type.starts_with(ours)) type.remove_prefix(ours.size());
  return std::string(type);
}

std::string object_text(std::string_view type, const void* object) {
  const auto name = wait_report::name_of(object);
  return short_type(type) + ' ' + (name.empty() ? address_text(object) : name);
}

// Caches the names of threads: reads each name once.
class party_names {
 public:
  party_info of(wait_report::party id) {
    party_info info{id, {}};
    if (id.type() == wait_report::party::kind::thread) info.name = thread(id);
    if (id.type() == wait_report::party::kind::actor) info.name = wait_report::name_of(id);
    return info;
  }
  // Returns false for a thread that has ended, and for an actor that has: it has no executor.
  bool is_alive(wait_report::party id) {
    if (id.type() == wait_report::party::kind::thread) return !thread(id).empty();
    return id.type() != wait_report::party::kind::actor || wait_report::executor_of(id) != nullptr;
  }

 private:
  const std::string& thread(wait_report::party id) {
    const auto [place, is_new] = known_.try_emplace(id.kernel_thread());
    if (is_new) place->second = seam::thread_name(id.kernel_thread());
    return place->second;
  }
  std::map<std::uint32_t, std::string> known_;
};

std::string held_text(const detail::seen_hold& h) {
  switch (h.mode) {
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

// A snapshot of all records, from which waits are described.
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
      info.party = names_.of(w.by);
      info.time = std::max(now_ - w.since, time_point::duration(0));
      info.has_deadline = w.has_deadline;
      info.can_be_stopped = w.can_be_stopped;
      info.at = w.at;
      for (const auto& s : w.on) {
        info.on.push_back(describe(s));
        info.ends_by_itself = info.ends_by_itself || s.ends_by_itself;
      }
      for (const auto& p : w.also_blocked) info.also_blocked.push_back(names_.of(p));
    }
    return all;
  }

 private:
  object_info describe(const wait_report::subject& s) {
    object_info info{.address = s.object,
                     .type = short_type(s.type),
                     .name = wait_report::name_of(s.object),
                     .wants = *s.wants != '\0' ? s.wants : "wait for",
                     .by = s.by};
    if (s.capacity != wait_report::subject::no_capacity) info.capacity = s.capacity;
    if (s.by == served_by::holders) add_holders(info, s.target);
    if (s.by == served_by::consumers) add_users(info, wait_report::side::consumer);
    if (s.by == served_by::producers) add_users(info, wait_report::side::producer);
    if (s.by == served_by::one) add_the_one(info, s);
    return info;
  }

  void add_the_one(object_info& info, const wait_report::subject& s) {
    info.others_can_end = s.others_can_end;
    if (s.target.type() == wait_report::party::kind::executor)
      return add_crew(info, s.target.address());
    auto& one =
        info.servers.emplace_back(server_info{.party = names_.of(s.target), .role = s.activity});
    if (s.target.type() != wait_report::party::kind::actor) return;
    info.name = one.party.name;
    one.runs_on = crew_of(wait_report::executor_of(s.target));
  }

  // Adds the threads of the executor, if they are known.
  void add_crew(object_info& info, const void* executor) {
    for (auto& party : crew_of(executor)) {
      info.servers.push_back({.party = std::move(party), .role = "could run it"});
    }
    if (info.servers.empty()) info.by = served_by::unknown;
  }

  // Returns all threads of the executor, or nothing if some of them are unknown.
  std::vector<party_info> crew_of(const void* executor) {
    std::vector<party_info> crew;
    std::int64_t total = 0;
    for (const auto& c : crews_.of(executor)) {
      total = c.count;
      crew.push_back(names_.of(c.by));
    }
    if (std::cmp_not_equal(crew.size(), total)) crew.clear();
    return crew;
  }

  void add_holders(object_info& info, wait_report::party executor) {
    bool permits = false;
    bool guesses = false;
    for (const auto& h : holds_.of(info.address)) {
      permits = permits || h.mode == held_as::permits;
      guesses = guesses || h.is_guess;
      // A lock that a handler has awaited stays with the handler during its reentrant waits, in
      // which the actor is not blocked. Awaited permits may be released under the name of any
      // thread.
      const bool may_move =
          h.by.type() == wait_report::party::kind::actor || h.mode == held_as::permits;
      if (h.awaited && may_move) info.others_can_end = true;
      add_holder(info, h);
    }
    for (const auto& r : runners_.of(info.address)) add_holder(info, r);
    // A party that was granted permits, and has not run yet, is not among the recorded holders.
    if (permits && handed_over_.contains(info.address)) info.others_can_end = true;
    if (guesses || (permits && registry::get().is_signal(info.address))) {
      info.by = served_by::unknown;
    }
    if (info.servers.empty() && executor) {
      info.others_can_end = true;  // a thread may be starting it
      add_crew(info, executor.address());
    }
  }

  void add_holder(object_info& info, const detail::seen_hold& h) {
    info.servers.push_back({.party = names_.of(h.by),
                            .role = held_text(h),
                            .is_sufficient = h.mode == held_as::permits || h.mode == held_as::alone,
                            .held = std::max(now_ - h.since, time_point::duration(0)),
                            .at = {}});
    // A runner has no place: it acquired nothing.
    if (h.at.line() != 0) info.servers.back().at = h.at;
  }

  void add_users(object_info& info, wait_report::side which) {
    const auto side = static_cast<std::size_t>(which);
    for (const auto& u : uses_.of(info.address)) {
      if (u.more[side]) info.by = served_by::unknown;  // unrecorded parties
      for (const auto& by : u.parties[side]) {
        if (!by) break;
        if (!names_.is_alive(by)) {
          // Threads are kept: reading the name from the system can fail for a thread that is alive.
          if (by.type() == wait_report::party::kind::actor) {
            registry::get().forget_user(info.address, which, by);
          }
          continue;
        }
        info.servers.push_back({.party = names_.of(by),
                                .role = which == wait_report::side::consumer ? "pops" : "pushes"});
      }
    }
  }

  // In this order: the holders are read after the waits, while the listed parties already wait.
  const std::vector<detail::seen_wait> waits_;
  const detail::by_object<detail::seen_hold> holds_;
  const detail::by_object<detail::seen_hold> runners_;
  const detail::by_object<detail::seen_crew> crews_;
  const detail::by_object<detail::seen_uses> uses_;
  const time_point now_;
  std::set<const void*> handed_over_;  // granted to a party that has not run yet
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

detail::inversion_report reporter(std::function<void(const lock_inversion&)> callback) {
  if (callback) {
    return [callback = std::move(callback)](const auto& steps) {
      sluice::detail::call_back("on_inversion of inspect", {}, callback, describe(steps));
    };
  }
  return [](const auto& steps) { std::fputs(describe(steps).text().c_str(), stderr); };
}

}  // namespace

enabled::enabled(options o) {
  check(!registry::get().is_on(), "sluice::inspect", "to be turned on at most once at a time");
  registry::get().turn_on(o.time != nullptr ? *o.time : real_clock(), o.lock_order,
                          reporter(std::move(o.on_inversion)));
}

enabled::~enabled() {
  registry::get().turn_off();
}

bool is_on() noexcept {
  return wait_report::is_on();
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
                   .name = c.actor ? wait_report::name_of(c.actor) : wait_report::name_of(c.object),
                   .waits = c.waits,
                   .futile_wakes = c.futile_wakes,
                   .waited = c.waited,
                   .longest = c.longest,
                   .waiting = c.waiting,
                   .waiting_max = c.waiting_max});
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
                   .object = {.address = h.object,
                              .type = short_type(h.type),
                              .name = wait_report::name_of(h.object),
                              .wants = held_text(h)},
                   .party = names.of(h.by),
                   .time = std::max(now - h.since, time_point::duration(0)),
                   .at = h.at});
  }
  return all;
}

std::string party_info::text() const {
  std::string text;
  switch (id.type()) {
    case wait_report::party::kind::none:
      return "nobody";
    case wait_report::party::kind::thread:
      text = "thread " + std::to_string(id.thread_number());
      break;
    case wait_report::party::kind::coroutine:
      text = "coroutine " + address_text(id.address());
      break;
    case wait_report::party::kind::actor:
      text = "actor " + std::to_string(id.actor_number());
      break;
    case wait_report::party::kind::executor:
      text = "executor " + address_text(id.address());
      break;
    case wait_report::party::kind::callback:
      text = "callback " + std::to_string(id.id());
      break;
  }
  return name.empty() ? text : text + " (" + name + ")";
}

std::string object_info::text() const {
  if (!name.empty()) return type + ' ' + name;
  return address == nullptr ? type : type + ' ' + address_text(address);
}

std::string to_string(const call_site& at) {
  if (at.address() != nullptr && seam::is_library_file(at.file())) {
    return seam::code_address_text(at.address());
  }
  std::string_view shown(at.file());
  // Removes the relative prefix that the build folder gives the compiler.
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
