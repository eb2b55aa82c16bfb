#include "tests/crash/ledger.hpp"

#include <algorithm>
#include <utility>

#include "sluice/base/check.hpp"

namespace sluice::crash {
namespace {

using stage = detail::ledger_stage;

constexpr std::size_t findings_max = 20;

std::string line(std::string_view name, std::uint64_t count) {
  return std::string(name) + " " + std::to_string(count);
}

}  // namespace

std::string verdict::to_string() const {
  std::string text = line("pushes", attempted) + " (" + line("acknowledged", acknowledged) + ", " +
                     line("refused", refused) + ", " + line("unanswered", unanswered) + "), " +
                     line("leases", leases) + ", " + line("done", done) + ", " +
                     line("failed", failed) + ", " + line("dead", dead) + ", " +
                     line("crashes", crashes) + ", " + line("redelivered", redelivered) + ", " +
                     line("expired", expired) + ", " + line("extended", extended) + ", " +
                     line("called off", called_off) + ", " + line("retried", retried) + ", " +
                     line("results", results) + ", " + line("duplicates", duplicates) + ", " +
                     line("called", called) + "; " + line("lost", lost) + ", " +
                     line("unexpected", unexpected) + ", " + line("doubled", doubled) + ", " +
                     line("revived", revived) + ", " + line("twins", twins) + ", " +
                     line("denied", denied) + ", " + line("early", early);
  for (const auto& finding : findings) text += "\n  " + finding;
  return text;
}

void verdict::add(const verdict& more) {
  for (const auto count :
       {&verdict::attempted,  &verdict::acknowledged, &verdict::refused,    &verdict::unanswered,
        &verdict::leases,     &verdict::redelivered,  &verdict::done,       &verdict::failed,
        &verdict::dead,       &verdict::crashes,      &verdict::expired,    &verdict::extended,
        &verdict::called_off, &verdict::retried,      &verdict::results,    &verdict::early,
        &verdict::lost,       &verdict::unexpected,   &verdict::doubled,    &verdict::revived,
        &verdict::twins,      &verdict::denied,       &verdict::duplicates, &verdict::called}) {
    this->*count += more.*count;
  }
  findings.insert(findings.end(), more.findings.begin(), more.findings.end());
}

detail::ledger_record& detail::ledger_state::of(token it) {
  check(it >= 1 && it <= records.size(), "ledger", "a token that it gave out");
  return records[it - 1];
}

void detail::ledger_state::object(std::uint64_t& count, token it, std::string_view what) {
  ++count;
  if (so_far.findings.size() < findings_max) {
    so_far.findings.push_back("job " + std::to_string(it) + " " + std::string(what));
  }
}

token ledger::new_token() {
  return state_.with([](state& s) {
    s.records.emplace_back();
    return static_cast<token>(s.records.size());
  });
}

void ledger::pushing(token it, std::string contents, push_terms terms) {
  state_.with([&](state& s) {
    auto& r = s.of(it);
    check(r.asked_at == 0, "ledger", "one push for each token");
    r.asked_at = ++s.clock;
    r.contents = std::move(contents);
    r.terms = std::move(terms);
    r.not_before = r.terms.not_before;
    if (!r.terms.key.empty()) s.by_key[r.terms.key].push_back(it);
    ++s.so_far.attempted;
  });
}

void ledger::pushed(token it, answer how, unix_time at) {
  state_.with([&](state& s) {
    auto& r = s.of(it);
    r.push = how;
    if (how == answer::no) {
      ++s.so_far.refused;
      // It may have been given out before the refusal was read.
      if (r.now != stage::waiting)
        s.object(s.so_far.unexpected, it, "was given out, and its push refused");
    }
    if (how != answer::yes) return;
    ++s.so_far.acknowledged;
    r.answered_at = ++s.clock;
    if (!r.terms.key.empty()) s.check_twins(it, at);
  });
}

// Another job with this key that surely held it from before this one was asked for until after it
// was acknowledged. For keys that are held until a start this is known when all is over.
void detail::ledger_state::check_twins(token it, unix_time now) {
  const auto& mine = of(it);
  if (mine.terms.until == jobs::unique_until::started) return;
  const bool elapses = mine.terms.until == jobs::unique_until::elapsed;
  for (const auto who : by_key[mine.terms.key]) {
    const auto& other = of(who);
    if (who == it || other.answered_at == 0 || other.answered_at > mine.asked_at) continue;
    if (elapses ? !other.off_asked && now < other.terms.key_until : other.ending_at == 0) {
      object(so_far.twins, it,
             "has a unique key that a job before it still holds: " + mine.terms.key);
      return;
    }
  }
}

// Jobs that were accepted with the key of this one while nobody had even asked for it yet.
std::uint64_t detail::ledger_state::count_started_twins(token it) const {
  const auto& mine = records[it - 1];
  if (mine.terms.key.empty() || mine.terms.until != jobs::unique_until::started) return 0;
  if (mine.answered_at == 0 || mine.first_asked == 0 || mine.off_asked) return 0;
  const auto& all = by_key.at(mine.terms.key);
  return static_cast<std::uint64_t>(std::ranges::count_if(all, [&](token who) {
    const auto& other = records[who - 1];
    return who != it && other.answered_at != 0 && other.asked_at > mine.answered_at &&
           other.answered_at < mine.first_asked;
  }));
}

void ledger::was_duplicate(token it) {
  state_.with([&](state& s) {
    auto& mine = s.of(it);
    mine.push = answer::no;
    ++s.so_far.refused;
    ++s.so_far.duplicates;
    const bool holder = std::ranges::any_of(s.by_key[mine.terms.key], [&](token who) {
      const auto& other = s.of(who);
      const bool may_hold = mine.terms.until != jobs::unique_until::done || other.ended_at == 0 ||
                            other.ended_at > mine.asked_at;
      return who != it && other.push != answer::no && may_hold;
    });
    if (!holder) {
      s.object(s.so_far.denied, it, "was called a duplicate, and nothing held its key");
    }
  });
}

bool detail::ledger_state::came_rightly(token it, std::string_view contents) {
  if (it < 1 || it > records.size() || of(it).asked_at == 0) {
    object(so_far.unexpected, it, "came, and nobody pushed it");
    return false;
  }
  if (of(it).contents != contents) {
    object(so_far.unexpected, it,
           "came with other contents: " + std::string(contents) + " for " + of(it).contents);
    return false;
  }
  if (of(it).push == answer::no) {
    object(so_far.unexpected, it, "came, and its push had been refused");
    return false;
  }
  return true;
}

// What it waits for was ended by somebody, or was never there for certain.
void detail::ledger_state::check_after(token it) {
  const auto& mine = of(it);
  if (mine.terms.after.empty()) return;
  if (mine.first_asked == 0) ++so_far.called;
  const bool is_early = std::ranges::any_of(mine.terms.after, [&](token other) {
    return of(other).push == answer::yes && of(other).ending_at == 0;
  });
  if (is_early) object(so_far.early, it, "was given out before a job that it waits for had ended");
}

std::uint64_t ledger::asking() {
  return state_.with([](state& s) { return ++s.clock; });
}

lease_number ledger::leased(token it, std::string_view contents, lease_terms how) {
  return state_.with([&](state& s) -> lease_number {
    ++s.so_far.leases;
    if (!s.came_rightly(it, contents)) return 0;
    auto& r = s.of(it);
    if (r.life == s.life && how.attempt != 0 && how.attempt < r.attempt) {
      // Another worker has had it since, and was quicker to say so.
      ++s.so_far.expired;
      if (how.held_until > r.came) {
        s.object(s.so_far.doubled, it, "was given out while a lease on it was open");
      }
      return ++s.clock;
    }
    s.check_after(it);
    if (how.came < r.not_before) s.object(s.so_far.early, it, "was given out before its time");
    // What was asked for earlier may have been on its way.
    if (r.off_at != 0 && how.asked > r.off_at) {
      s.object(s.so_far.revived, it, "was given out after it had been cancelled or deleted");
    }
    const bool same_life = r.life == s.life;
    switch (r.now) {
      case stage::waiting:
      case stage::failing:
        break;
      case stage::leased:
      case stage::acking:
      case stage::burying:
        if (!same_life) {
          ++s.so_far.redelivered;
        } else if (how.came >= r.held_until) {
          ++s.so_far.expired;
        } else {
          s.object(s.so_far.doubled, it, "was given out while a lease on it was open");
        }
        break;
      case stage::done:
      case stage::dead:
        s.object(s.so_far.revived, it, "was given out after its end had been acknowledged");
        break;
    }
    r.now = stage::leased;
    r.life = s.life;
    r.end_unanswered = false;  // here it is: what was unanswered has not happened
    r.retry_unanswered = false;
    if (r.off_life != s.life) r.off_unanswered = false;
    r.not_before = {};
    r.held_until = how.held_until;
    r.attempt = how.attempt;
    r.came = how.came;
    if (r.first_asked == 0) r.first_asked = how.asked;
    return r.lease = ++s.clock;
  });
}

void detail::ledger_state::begin_end(token it, lease_number by, ledger_stage to) {
  auto& r = of(it);
  if (by != 0 && by != r.lease) return;                          // it has been given to another
  const bool has_lease = r.now == stage::leased || r.now == to;  // the same once more
  check(has_lease && r.life == life, "ledger", "an end of a job that is leased");
  r.now = to;
  if (to == stage::failing) return;
  r.end_unanswered = true;
  if (r.ending_at == 0) r.ending_at = ++clock;
}

void ledger::acking(token it, lease_number by) {
  state_.with([&](state& s) { s.begin_end(it, by, stage::acking); });
}

void ledger::failing(token it, lease_number by, unix_time pause_until) {
  state_.with([&](state& s) {
    s.begin_end(it, by, stage::failing);
    if (by == 0 || by == s.of(it).lease) s.of(it).pause_until = pause_until;
  });
}

void ledger::burying(token it, lease_number by) {
  state_.with([&](state& s) { s.begin_end(it, by, stage::burying); });
}

void ledger::acked(token it, answer how, lease_number by, std::string result) {
  state_.with([&](state& s) {
    s.finish_end(it, by, how, stage::done);
    auto& r = s.of(it);
    if (how == answer::yes && (by == 0 || by == r.lease)) r.result = std::move(result);
  });
}

void ledger::buried(token it, answer how, lease_number by) {
  state_.with([&](state& s) { s.finish_end(it, by, how, stage::dead); });
}

void detail::ledger_state::finish_end(token it, lease_number by, answer how, ledger_stage to) {
  auto& r = of(it);
  if (by != 0 && by != r.lease) {
    if (how == answer::yes) object(so_far.doubled, it, "was ended by a worker that had lost it");
    return;
  }
  if (how == answer::none) return;
  r.end_unanswered = false;
  if (how == answer::no) {
    r.now = stage::leased;
    return;
  }
  ++(to == stage::done ? so_far.done : so_far.dead);
  r.now = to;
  r.ended_at = ++clock;
}

void ledger::failed(token it, answer how, lease_number by) {
  state_.with([&](state& s) {
    if (how == answer::yes) ++s.so_far.failed;
    auto& r = s.of(it);
    // It may have been given out already.
    if (r.now != stage::failing || (by != 0 && by != r.lease)) return;
    if (how == answer::yes) r.not_before = r.pause_until;
    if (how == answer::no) r.now = stage::leased;  // not done: the lease is still open
  });
}

void ledger::extending(token it, unix_time until, lease_number by) {
  state_.with([&](state& s) {
    auto& r = s.of(it);
    if (by == 0 || by == r.lease) r.held_until = std::min(r.held_until, until);
  });
}

void ledger::extended(token it, answer how, unix_time until, lease_number by) {
  state_.with([&](state& s) {
    if (how != answer::yes) return;
    ++s.so_far.extended;
    auto& r = s.of(it);
    if (by == 0 || by == r.lease) r.held_until = until;
  });
}

void ledger::calling_off(token it) {
  state_.with([&](state& s) {
    auto& r = s.of(it);
    r.off_asked = true;
    r.off_unanswered = true;
    r.off_life = s.life;
    if (r.ending_at == 0) r.ending_at = ++s.clock;
  });
}

void ledger::called_off(token it, answer how, bool deleted) {
  state_.with([&](state& s) {
    auto& r = s.of(it);
    if (how == answer::none) return;
    r.off_unanswered = false;
    if (how == answer::no) return;
    ++s.so_far.called_off;
    r.deleted = r.deleted || deleted;
    if (r.off_at == 0) r.off_at = ++s.clock;
  });
}

void ledger::retried(token it, answer how) {
  state_.with([&](state& s) {
    auto& r = s.of(it);
    if (how == answer::no) return;
    r.now = stage::waiting;
    r.ended_at = 0;  // it may have its key again
    r.end_unanswered = r.retry_unanswered = how == answer::none;
    r.found_dead = false;
    r.attempt = 0;  // they are counted anew
    if (how == answer::yes) ++s.so_far.retried;
  });
}

void ledger::crashed() {
  state_.with([](state& s) {
    ++s.life;
    ++s.so_far.crashes;
  });
}

void ledger::found_dead(token it, std::string_view contents) {
  state_.with([&](state& s) {
    if (!s.came_rightly(it, contents)) return;
    auto& r = s.of(it);
    r.found_dead = true;
    if (r.now != stage::dead && r.now != stage::burying && !r.retry_unanswered) {
      s.object(s.so_far.unexpected, it, "is dead, and nobody buried it");
    } else if (r.deleted) {
      s.object(s.so_far.revived, it, "is among the dead, and it had been deleted");
    }
  });
}

void ledger::found_done(token it, std::string_view contents, std::string_view result) {
  state_.with([&](state& s) {
    if (!s.came_rightly(it, contents)) return;
    auto& r = s.of(it);
    ++s.so_far.results;
    r.found_result = true;
    if (!r.result.empty() && result != r.result) {
      s.object(s.so_far.unexpected, it, "has another result: " + std::string(result));
    }
  });
}

verdict ledger::judge() const {
  return state_.with([](const state& s) {
    state end;
    end.so_far = s.so_far;
    for (std::size_t i = 0; i < s.records.size(); ++i) {
      const auto& r = s.records[i];
      if (r.asked_at != 0 && r.push == answer::none) ++end.so_far.unanswered;
      if (const auto twins = s.count_started_twins(i + 1); twins > 0) {
        end.object(end.so_far.twins, i + 1, "did not hold its key until it was taken");
      }
      if (r.now == stage::dead && !r.found_dead && !r.off_asked) {
        end.object(end.so_far.revived, i + 1, "is not among the dead, where it had been put");
      }
      if (r.now == stage::done && !r.result.empty() && !r.found_result && !r.off_asked) {
        end.object(end.so_far.lost, i + 1, "was acknowledged with a result that is lost");
      }
      if (r.push != answer::yes || r.now == stage::done || r.now == stage::dead) continue;
      if (r.end_unanswered || r.found_dead || r.off_unanswered || r.off_at != 0) continue;
      end.so_far.lost_jobs.push_back(i + 1);
      end.object(end.so_far.lost, i + 1, "was acknowledged and is lost: " + r.contents);
    }
    return end.so_far;
  });
}

}  // namespace sluice::crash
