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

using watch::party;
using watch::served_by;

// Whether it can end whoever is stuck.
bool has_an_end(const wait_info& w) {
  return w.has_deadline || w.can_be_stopped || w.ends_by_itself;
}

// Whether its end depends on nothing but those who are known to have it. Who uses a queue or
// channel is a sample, and who is asked may leave the answer to another.
bool is_known_through(const wait_info& w) {
  return !has_an_end(w) && std::ranges::all_of(w.on, [](const auto& o) {
    return (o.by == served_by::holders || o.by == served_by::one) && !o.others_could;
  });
}

// At a queue or channel one does not serve oneself.
bool is_meeting(const object_info& o) {
  return o.by == served_by::takers || o.by == served_by::givers;
}

// The same as a wait of one whom it holds up: for the end of what the one who waits does there.
wait_info held_up_by(const wait_info& w, const party_info& who) {
  object_info turn{.type = "turn of", .name = w.who.text(), .wants = "end", .by = served_by::one};
  turn.servers.push_back({.who = w.who, .how = "is in"});
  return {.number = w.number, .who = who, .on = {std::move(turn)}, .time = w.time};
}

// An actor that is waited for, and does not wait: if it is not in its turn, it needs a thread.
wait_info out_of_turn(const wait_info& w, const server_info& actor) {
  object_info thread{.type = "thread to run on",
                     .wants = "have a",
                     .by = served_by::holders,
                     .others_could = true};
  for (const auto& t : actor.runs_on) thread.servers.push_back({.who = t, .how = "could be"});
  return {.number = w.number, .who = actor.who, .on = {std::move(thread)}, .time = w.time};
}

// Who is stuck in one picture of all waits.
class search {
 public:
  search(const std::vector<wait_info>& all, std::chrono::nanoseconds min_wait) {
    for (const auto& w : all) {
      by_party_[w.who.id].push_back(&w);
      for (const auto& who : w.holds_up) {
        by_party_[who.id].push_back(&derived_.emplace_back(held_up_by(w, who)));
      }
    }
    for (const auto& w : all) add_idle(w);
    for (const auto& [who, waits] : by_party_) {
      for (const auto* w : waits) add_wants(*w);
    }
    for (const auto& [who, waits] : by_party_) {
      const bool old = std::ranges::all_of(waits, [&](auto* w) { return w->time >= min_wait; });
      if (old) stuck_.insert(who);
    }
    release_from(stuck_);
    // The same among those of whom all is known: they are stuck whatever the others do.
    certain_ = stuck_;
    std::erase_if(certain_, [&](party who) {
      return !std::ranges::all_of(by_party_.at(who), [](auto* w) { return is_known_through(*w); });
    });
    release_from(certain_);
  }

  std::vector<deadlock> circles() const {
    std::vector<deadlock> found;
    std::set<party> done;
    for (const auto& start : stuck_) {
      std::vector<deadlock::step> way;
      party at = start;
      while (!done.contains(at)) {
        const auto on_the_way =
            std::ranges::find_if(way, [&](const auto& s) { return s.wait.who.id == at; });
        if (on_the_way != way.end()) {
          way.erase(way.begin(), on_the_way);
          found.push_back({std::move(way)});
          break;
        }
        way.push_back(step_of(at));
        at = way.back().holder.who.id;
      }
      mark(start, done);
    }
    return found;
  }

 private:
  void add_idle(const wait_info& w) {
    for (const auto& o : w.on) {
      for (const auto& s : o.servers) {
        if (s.runs_on.empty() || by_party_.contains(s.who.id)) continue;
        by_party_[s.who.id].push_back(&derived_.emplace_back(out_of_turn(w, s)));
      }
    }
  }

  void add_wants(const wait_info& w) {
    for (const auto& o : w.on) {
      for (const auto& s : o.servers) wanted_by_[s.who.id].push_back(w.who.id);
    }
  }

  // All in it are taken to be stuck, until one is found whom somebody could help. Of the others,
  // those may be free then who want something of that one.
  void release_from(std::set<party>& stuck) const {
    const auto is_free = [&](party who) {
      return stuck.contains(who) &&
             !std::ranges::all_of(by_party_.at(who), [&](auto* w) { return is_stuck(*w, stuck); });
    };
    std::vector<party> free;
    std::ranges::copy_if(stuck, std::back_inserter(free), is_free);
    while (!free.empty()) {
      const party who = free.back();
      free.pop_back();
      if (stuck.erase(who) == 0) continue;
      const auto others = wanted_by_.find(who);
      if (others == wanted_by_.end()) continue;
      std::ranges::copy_if(others->second, std::back_inserter(free), is_free);
    }
  }

  static bool is_stuck(const wait_info& w, const std::set<party>& stuck) {
    return !w.on.empty() &&
           std::ranges::all_of(w.on, [&](const auto& o) { return is_stuck(o, w.who.id, stuck); });
  }

  // Whether nobody who is free could give it.
  static bool is_stuck(const object_info& o, party who, const std::set<party>& stuck) {
    if (o.by == served_by::unknown) return false;
    bool anybody = false;
    bool all = true;
    for (const auto& s : o.servers) {
      if (is_meeting(o) && s.who.id == who) continue;
      anybody = true;
      const bool in_it = stuck.contains(s.who.id);
      if (!s.enough && in_it) return true;  // it is needed, whoever else may let go
      all = all && in_it;
    }
    return anybody && all;
  }

  // One thing that a stuck party waits for, and one stuck party that could give it: one that is
  // certainly stuck, if there is one, so that who is certainly stuck leads to such a circle.
  deadlock::step step_of(party who) const {
    const wait_info& w = *by_party_.at(who).front();
    const object_info& o = w.on.front();
    const auto in = [&](const std::set<party>& some) {
      return std::ranges::find_if(o.servers, [&](const auto& s) {
        return some.contains(s.who.id) && !(is_meeting(o) && s.who.id == who);
      });
    };
    const auto sure = in(certain_);
    return {w, o, sure != o.servers.end() ? *sure : *in(stuck_), certain_.contains(who)};
  }

  // All that are reached from here lead into the same circle.
  void mark(party from, std::set<party>& done) const {
    while (done.insert(from).second) from = step_of(from).holder.who.id;
  }

  std::deque<wait_info> derived_;
  std::map<party, std::vector<const wait_info*>> by_party_;
  std::map<party, std::vector<party>> wanted_by_;  // who waits for something that it could give
  std::set<party> stuck_;
  std::set<party> certain_;
};

// Without those that have gone on since: all that is left has been in the same waits all the time,
// and so could not let go of anything meanwhile.
std::vector<wait_info> still_in(std::vector<wait_info> before, const std::vector<wait_info>& now) {
  std::set<std::uint64_t> numbers;
  for (const auto& w : now) numbers.insert(w.number);
  std::set<party> gone_on;
  for (const auto& w : before) {
    if (!numbers.contains(w.number)) gone_on.insert(w.who.id);
  }
  std::erase_if(before, [&](const wait_info& w) { return gone_on.contains(w.who.id); });
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
    all += "  " + s.wait.who.text() + " waits to " + s.object.wants + " " + s.object.text();
    if (s.object.capacity) all += " (capacity " + std::to_string(*s.object.capacity) + ")";
    all += " for " + to_text(s.wait.time);
    if (s.wait.at) all += " at " + to_string(*s.wait.at);
    all += ",\n    which " + s.holder.who.text() + " " + s.holder.how;
    if (s.holder.held) all += " for " + to_text(*s.holder.held);
    if (s.holder.at) all += ", taken at " + to_string(*s.holder.at);
    all += "\n";
  }
  return all;
}

std::vector<deadlock> find_deadlocks(std::chrono::nanoseconds min_wait) {
  auto first = waits();
  if (search(first, min_wait).circles().empty()) return {};
  // The picture was not taken at one moment: only who is in the same waits after it counts.
  const auto second = waits();
  first = still_in(std::move(first), second);
  auto found = search(first, min_wait).circles();
  const auto again = search(second, min_wait).circles();
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
