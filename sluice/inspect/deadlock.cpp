#include "sluice/inspect/deadlock.hpp"

#include <algorithm>
#include <deque>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "sluice/inspect/format.hpp"

namespace sluice::inspect {
namespace {

using wait_report::party;
using wait_report::served_by;

// Returns true if a limit can end the wait, even if all other parties are deadlocked.
bool has_an_end(const wait_info& w) {
  return w.has_deadline || w.can_be_stopped || w.ends_by_itself;
}

// Returns true if only recorded parties can end the wait. The users of a queue or channel are a
// sample, and an actor that was asked may delegate the reply.
bool is_fully_known(const wait_info& w) {
  return !has_an_end(w) && std::ranges::all_of(w.on, [](const auto& o) {
    return (o.by == served_by::holders || o.by == served_by::one) && !o.others_can_end;
  });
}

// A party does not serve its own wait at a queue or channel.
bool is_meeting(const object_info& o) {
  return o.by == served_by::consumers || o.by == served_by::producers;
}

// Returns the wait of a party that `w` also blocks: until the waiting party ends its turn.
wait_info blocked_by(const wait_info& w, const party_info& other) {
  object_info turn{.type = "turn of", .name = w.party.text(), .wants = "end", .by = served_by::one};
  turn.servers.push_back({.party = w.party, .role = "is in"});
  return {.number = w.number, .party = other, .on = {std::move(turn)}, .time = w.time};
}

// Returns the wait of an actor that does not wait itself: outside its turn it needs a thread.
wait_info out_of_turn(const wait_info& w, const server_info& actor) {
  object_info thread{.type = "thread to run on",
                     .wants = "have a",
                     .by = served_by::holders,
                     .others_can_end = true};
  for (const auto& t : actor.runs_on) thread.servers.push_back({.party = t, .role = "could be"});
  return {.number = w.number, .party = actor.party, .on = {std::move(thread)}, .time = w.time};
}

// Finds the deadlocked parties in one snapshot of all waits.
class search {
 public:
  search(const std::vector<wait_info>& all, std::chrono::nanoseconds min_wait) {
    for (const auto& w : all) {
      by_party_[w.party.id].push_back(&w);
      for (const auto& other : w.also_blocked) {
        by_party_[other.id].push_back(&derived_.emplace_back(blocked_by(w, other)));
      }
    }
    for (const auto& w : all) add_idle(w);
    for (const auto& [id, waits] : by_party_) {
      for (const auto* w : waits) add_waiters(*w);
    }
    for (const auto& [id, waits] : by_party_) {
      const bool old = std::ranges::all_of(waits, [&](auto* w) { return w->time >= min_wait; });
      if (old) stuck_.insert(id);
    }
    release_from(stuck_);
    // The fixpoint over the fully known waits: deadlocked regardless of the unknown parties.
    certain_ = stuck_;
    std::erase_if(certain_, [&](party id) {
      return !std::ranges::all_of(by_party_.at(id), [](auto* w) { return is_fully_known(*w); });
    });
    release_from(certain_);
  }

  std::vector<deadlock> cycles() const {
    std::vector<deadlock> found;
    std::set<party> done;
    for (const auto& start : stuck_) {
      std::vector<deadlock::step> path;
      party at = start;
      while (!done.contains(at)) {
        const auto on_the_path =
            std::ranges::find_if(path, [&](const auto& s) { return s.wait.party.id == at; });
        if (on_the_path != path.end()) {
          path.erase(path.begin(), on_the_path);
          found.push_back({std::move(path)});
          break;
        }
        path.push_back(step_of(at));
        at = path.back().holder.party.id;
      }
      mark_reached(start, done);
    }
    return found;
  }

 private:
  void add_idle(const wait_info& w) {
    for (const auto& o : w.on) {
      for (const auto& s : o.servers) {
        if (s.runs_on.empty() || by_party_.contains(s.party.id)) continue;
        by_party_[s.party.id].push_back(&derived_.emplace_back(out_of_turn(w, s)));
      }
    }
  }

  void add_waiters(const wait_info& w) {
    for (const auto& o : w.on) {
      for (const auto& s : o.servers) waiters_of_[s.party.id].push_back(w.party.id);
    }
  }

  // Greatest fixpoint: assumes that every party in `stuck` is deadlocked, removes any that a party
  // outside the set could release, and re-checks the waiters of a removed party.
  void release_from(std::set<party>& stuck) const {
    const auto is_free = [&](party id) {
      return stuck.contains(id) &&
             !std::ranges::all_of(by_party_.at(id), [&](auto* w) { return is_stuck(*w, stuck); });
    };
    std::vector<party> free;
    std::ranges::copy_if(stuck, std::back_inserter(free), is_free);
    while (!free.empty()) {
      const party id = free.back();
      free.pop_back();
      if (stuck.erase(id) == 0) continue;
      const auto others = waiters_of_.find(id);
      if (others == waiters_of_.end()) continue;
      std::ranges::copy_if(others->second, std::back_inserter(free), is_free);
    }
  }

  static bool is_stuck(const wait_info& w, const std::set<party>& stuck) {
    return !w.on.empty() &&
           std::ranges::all_of(w.on, [&](const auto& o) { return is_stuck(o, w.party.id, stuck); });
  }

  // Returns true if no party outside `stuck` could release the object to this party.
  static bool is_stuck(const object_info& o, party id, const std::set<party>& stuck) {
    if (o.by == served_by::unknown) return false;
    bool anybody = false;
    bool all = true;
    for (const auto& s : o.servers) {
      if (is_meeting(o) && s.party.id == id) continue;
      anybody = true;
      const bool is_in = stuck.contains(s.party.id);
      if (!s.is_sufficient && is_in) return true;  // it has to release, regardless of the others
      all = all && is_in;
    }
    return anybody && all;
  }

  // Returns one object that a deadlocked party waits for, with one deadlocked party that could
  // release it. Prefers a certain one: so the path from a certain party ends in a certain cycle.
  deadlock::step step_of(party id) const {
    const wait_info& w = *by_party_.at(id).front();
    const object_info& o = w.on.front();
    const auto in = [&](const std::set<party>& some) {
      return std::ranges::find_if(o.servers, [&](const auto& s) {
        return some.contains(s.party.id) && !(is_meeting(o) && s.party.id == id);
      });
    };
    const auto sure = in(certain_);
    return {w, o, sure != o.servers.end() ? *sure : *in(stuck_), certain_.contains(id)};
  }

  // All parties reached from here lead into the same cycle.
  void mark_reached(party from, std::set<party>& done) const {
    while (done.insert(from).second) from = step_of(from).holder.party.id;
  }

  std::deque<wait_info> derived_;
  std::map<party, std::vector<const wait_info*>> by_party_;
  std::map<party, std::vector<party>> waiters_of_;  // the parties whose waits this party could end
  std::set<party> stuck_;
  std::set<party> certain_;
};

// Removes the parties that have resumed since. The remaining ones were in the same waits the whole
// time, and so released nothing meanwhile.
std::vector<wait_info> still_waiting(std::vector<wait_info> before,
                                     const std::vector<wait_info>& now) {
  std::set<std::uint64_t> numbers;
  for (const auto& w : now) numbers.insert(w.number);
  std::set<party> resumed;
  for (const auto& w : before) {
    if (!numbers.contains(w.number)) resumed.insert(w.party.id);
  }
  std::erase_if(before, [&](const wait_info& w) { return resumed.contains(w.party.id); });
  return before;
}

}  // namespace

bool deadlock::ends_by_itself() const noexcept {
  return std::ranges::any_of(steps, [](const step& s) { return has_an_end(s.wait); });
}

bool deadlock::is_certain() const noexcept {
  return std::ranges::all_of(steps, &step::is_certain);
}

std::vector<std::uint64_t> deadlock::waits() const {
  std::vector<std::uint64_t> numbers;
  for (const auto& s : steps) numbers.push_back(s.wait.number);
  std::ranges::sort(numbers);
  return numbers;
}

std::string deadlock::text() const {
  std::string all = "sluice: deadlock of " + std::to_string(steps.size()) +
                    (steps.size() == 1 ? " party" : " parties");
  if (ends_by_itself()) {
    all += ", until a deadline or a stop ends it";
  } else if (!is_certain()) {
    all += ", as far as is known";
  }
  all += ":\n";
  for (const auto& s : steps) {
    all += "  " + s.wait.party.text() + " waits to " + s.object.wants + " " + s.object.text();
    if (s.object.capacity) all += " (capacity " + std::to_string(*s.object.capacity) + ")";
    all += " for " + to_text(s.wait.time);
    if (s.wait.at) all += " at " + to_string(*s.wait.at);
    all += ",\n    which " + s.holder.party.text() + " " + s.holder.role;
    if (s.holder.held) all += " for " + to_text(*s.holder.held);
    if (s.holder.at) all += ", taken at " + to_string(*s.holder.at);
    all += "\n";
  }
  return all;
}

std::vector<deadlock> find_deadlocks(std::chrono::nanoseconds min_wait) {
  auto first = waits();
  if (search(first, min_wait).cycles().empty()) return {};
  // The snapshot was not atomic: only parties that are in the same waits afterwards count.
  const auto second = waits();
  first = still_waiting(std::move(first), second);
  auto found = search(first, min_wait).cycles();
  const auto again = search(second, min_wait).cycles();
  std::erase_if(found, [&](deadlock& d) {
    const auto same =
        std::ranges::find_if(again, [&](const deadlock& a) { return a.waits() == d.waits(); });
    if (same == again.end()) return true;
    for (auto& s : d.steps) s.is_certain = s.is_certain && same->is_certain();
    return false;
  });
  return found;
}

}  // namespace sluice::inspect
