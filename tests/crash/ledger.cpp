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

detail::ledger_record& detail::ledger_state::of(token id) {
  check(id >= 1 && id <= records.size(), "ledger", "a token from new_token");
  return records[id - 1];
}

void detail::ledger_state::object(std::uint64_t& count, token id, std::string_view finding) {
  ++count;
  if (so_far.findings.size() < findings_max) {
    so_far.findings.push_back("job " + std::to_string(id) + " " + std::string(finding));
  }
}

token ledger::new_token() {
  return state_.with([](state& s) {
    s.records.emplace_back();
    return static_cast<token>(s.records.size());
  });
}

void ledger::pushing(token id, std::string contents, push_terms terms) {
  state_.with([&](state& s) {
    auto& r = s.of(id);
    check(r.asked_at == 0, "ledger", "at most one push for each token");
    r.asked_at = ++s.clock;
    r.contents = std::move(contents);
    r.terms = std::move(terms);
    r.not_before = r.terms.not_before;
    if (!r.terms.key.empty()) s.by_key[r.terms.key].push_back(id);
    ++s.so_far.attempted;
  });
}

void ledger::pushed(token id, answer outcome, unix_time at) {
  state_.with([&](state& s) {
    auto& r = s.of(id);
    r.push = outcome;
    if (outcome == answer::no) {
      ++s.so_far.refused;
      // It may have been delivered before the rejection was read.
      if (r.now != stage::waiting)
        s.object(s.so_far.unexpected, id, "was delivered although its push was rejected");
    }
    if (outcome != answer::yes) return;
    ++s.so_far.acknowledged;
    r.answered_at = ++s.clock;
    if (!r.terms.key.empty()) s.check_twins(id, at);
  });
}

// Objects if another job certainly held this job's key from before its push until after its
// acknowledgement. Keys that are held until a start are judged at the end (count_started_twins).
void detail::ledger_state::check_twins(token id, unix_time now) {
  const auto& entry = of(id);
  if (entry.terms.until == jobs::unique_until::started) return;
  const bool elapses = entry.terms.until == jobs::unique_until::elapsed;
  for (const auto rival : by_key[entry.terms.key]) {
    const auto& other = of(rival);
    if (rival == id || other.answered_at == 0 || other.answered_at > entry.asked_at) continue;
    if (elapses ? !other.off_asked && now < other.terms.key_until : other.ending_at == 0) {
      object(so_far.twins, id,
             "has a unique key that an earlier job still holds: " + entry.terms.key);
      return;
    }
  }
}

// Counts the jobs accepted with this job's key before any worker had requested it.
std::uint64_t detail::ledger_state::count_started_twins(token id) const {
  const auto& entry = records[id - 1];
  if (entry.terms.key.empty() || entry.terms.until != jobs::unique_until::started) return 0;
  if (entry.answered_at == 0 || entry.first_asked == 0 || entry.off_asked) return 0;
  const auto& all = by_key.at(entry.terms.key);
  return static_cast<std::uint64_t>(std::ranges::count_if(all, [&](token rival) {
    const auto& other = records[rival - 1];
    return rival != id && other.answered_at != 0 && other.asked_at > entry.answered_at &&
           other.answered_at < entry.first_asked;
  }));
}

void ledger::was_duplicate(token id) {
  state_.with([&](state& s) {
    auto& entry = s.of(id);
    entry.push = answer::no;
    ++s.so_far.refused;
    ++s.so_far.duplicates;
    const bool holder = std::ranges::any_of(s.by_key[entry.terms.key], [&](token rival) {
      const auto& other = s.of(rival);
      const bool may_hold = entry.terms.until != jobs::unique_until::done || other.ended_at == 0 ||
                            other.ended_at > entry.asked_at;
      return rival != id && other.push != answer::no && may_hold;
    });
    if (!holder) {
      s.object(s.so_far.denied, id, "was rejected as a duplicate although no job held its key");
    }
  });
}

bool detail::ledger_state::is_expected(token id, std::string_view contents) {
  if (id < 1 || id > records.size() || of(id).asked_at == 0) {
    object(so_far.unexpected, id, "was delivered although it was never pushed");
    return false;
  }
  if (of(id).contents != contents) {
    object(so_far.unexpected, id,
           "was delivered with " + std::string(contents) + " instead of " + of(id).contents);
    return false;
  }
  if (of(id).push == answer::no) {
    object(so_far.unexpected, id, "was delivered although its push had been rejected");
    return false;
  }
  return true;
}

// Objects if the end of an accepted job that this one waits for was never requested.
void detail::ledger_state::check_prerequisites(token id) {
  const auto& entry = of(id);
  if (entry.terms.after.empty()) return;
  if (entry.first_asked == 0) ++so_far.called;
  const bool is_early = std::ranges::any_of(entry.terms.after, [&](token other) {
    return of(other).push == answer::yes && of(other).ending_at == 0;
  });
  if (is_early) object(so_far.early, id, "was delivered before a job that it waits for had ended");
}

std::uint64_t ledger::asking() {
  return state_.with([](state& s) { return ++s.clock; });
}

lease_number ledger::leased(token id, std::string_view contents, lease_terms terms) {
  return state_.with([&](state& s) -> lease_number {
    ++s.so_far.leases;
    if (!s.is_expected(id, contents)) return 0;
    auto& r = s.of(id);
    if (r.life == s.life && terms.attempt != 0 && terms.attempt < r.attempt) {
      // A later lease of another worker was recorded first.
      ++s.so_far.expired;
      if (terms.held_until > r.came) {
        s.object(s.so_far.doubled, id, "was delivered while a lease on it was open");
      }
      return ++s.clock;
    }
    s.check_prerequisites(id);
    if (terms.came < r.not_before) s.object(s.so_far.early, id, "was delivered before its time");
    // A lease requested before the cancel may have been in progress.
    if (r.off_at != 0 && terms.asked > r.off_at) {
      s.object(s.so_far.revived, id, "was delivered after it had been cancelled or deleted");
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
        } else if (terms.came >= r.held_until) {
          ++s.so_far.expired;
        } else {
          s.object(s.so_far.doubled, id, "was delivered while a lease on it was open");
        }
        break;
      case stage::done:
      case stage::dead:
        s.object(s.so_far.revived, id, "was delivered after its end had been acknowledged");
        break;
    }
    r.now = stage::leased;
    r.life = s.life;
    r.end_unanswered = false;  // it was delivered, so the unanswered requests were not executed
    r.retry_unanswered = false;
    if (r.off_life != s.life) r.off_unanswered = false;
    r.not_before = {};
    r.held_until = terms.held_until;
    r.attempt = terms.attempt;
    r.came = terms.came;
    if (r.first_asked == 0) r.first_asked = terms.asked;
    return r.lease = ++s.clock;
  });
}

void detail::ledger_state::begin_end(token id, lease_number by, ledger_stage next) {
  auto& r = of(id);
  if (by != 0 && by != r.lease) return;  // a later lease has replaced this one
  const bool has_lease = r.now == stage::leased || r.now == next;  // or the same request again
  check(has_lease && r.life == life, "ledger", "the end of a leased job");
  r.now = next;
  if (next == stage::failing) return;
  r.end_unanswered = true;
  if (r.ending_at == 0) r.ending_at = ++clock;
}

void ledger::acking(token id, lease_number by) {
  state_.with([&](state& s) { s.begin_end(id, by, stage::acking); });
}

void ledger::failing(token id, lease_number by, unix_time pause_until) {
  state_.with([&](state& s) {
    s.begin_end(id, by, stage::failing);
    if (by == 0 || by == s.of(id).lease) s.of(id).pause_until = pause_until;
  });
}

void ledger::burying(token id, lease_number by) {
  state_.with([&](state& s) { s.begin_end(id, by, stage::burying); });
}

void ledger::acked(token id, answer outcome, lease_number by, std::string result) {
  state_.with([&](state& s) {
    s.finish_end(id, by, outcome, stage::done);
    auto& r = s.of(id);
    if (outcome == answer::yes && (by == 0 || by == r.lease)) r.result = std::move(result);
  });
}

void ledger::buried(token id, answer outcome, lease_number by) {
  state_.with([&](state& s) { s.finish_end(id, by, outcome, stage::dead); });
}

void detail::ledger_state::finish_end(token id, lease_number by, answer outcome,
                                      ledger_stage next) {
  auto& r = of(id);
  if (by != 0 && by != r.lease) {
    if (outcome == answer::yes) object(so_far.doubled, id, "was ended without its current lease");
    return;
  }
  if (outcome == answer::none) return;
  r.end_unanswered = false;
  if (outcome == answer::no) {
    r.now = stage::leased;
    return;
  }
  ++(next == stage::done ? so_far.done : so_far.dead);
  r.now = next;
  r.ended_at = ++clock;
}

void ledger::failed(token id, answer outcome, lease_number by) {
  state_.with([&](state& s) {
    if (outcome == answer::yes) ++s.so_far.failed;
    auto& r = s.of(id);
    // It may have been delivered again already.
    if (r.now != stage::failing || (by != 0 && by != r.lease)) return;
    if (outcome == answer::yes) r.not_before = r.pause_until;
    if (outcome == answer::no) r.now = stage::leased;  // rejected: the lease is still open
  });
}

void ledger::extending(token id, unix_time until, lease_number by) {
  state_.with([&](state& s) {
    auto& r = s.of(id);
    if (by == 0 || by == r.lease) r.held_until = std::min(r.held_until, until);
  });
}

void ledger::extended(token id, answer outcome, unix_time until, lease_number by) {
  state_.with([&](state& s) {
    if (outcome != answer::yes) return;
    ++s.so_far.extended;
    auto& r = s.of(id);
    if (by == 0 || by == r.lease) r.held_until = until;
  });
}

void ledger::calling_off(token id) {
  state_.with([&](state& s) {
    auto& r = s.of(id);
    r.off_asked = true;
    r.off_unanswered = true;
    r.off_life = s.life;
    if (r.ending_at == 0) r.ending_at = ++s.clock;
  });
}

void ledger::called_off(token id, answer outcome, bool deleted) {
  state_.with([&](state& s) {
    auto& r = s.of(id);
    if (outcome == answer::none) return;
    r.off_unanswered = false;
    if (outcome == answer::no) return;
    ++s.so_far.called_off;
    r.deleted = r.deleted || deleted;
    if (r.off_at == 0) r.off_at = ++s.clock;
  });
}

void ledger::retried(token id, answer outcome) {
  state_.with([&](state& s) {
    auto& r = s.of(id);
    if (outcome == answer::no) return;
    r.now = stage::waiting;
    r.ended_at = 0;  // it may hold its key again
    r.end_unanswered = r.retry_unanswered = outcome == answer::none;
    r.found_dead = false;
    r.attempt = 0;  // attempts are counted from 1 again
    if (outcome == answer::yes) ++s.so_far.retried;
  });
}

void ledger::crashed() {
  state_.with([](state& s) {
    ++s.life;
    ++s.so_far.crashes;
  });
}

void ledger::found_dead(token id, std::string_view contents) {
  state_.with([&](state& s) {
    if (!s.is_expected(id, contents)) return;
    auto& r = s.of(id);
    r.found_dead = true;
    if (r.now != stage::dead && r.now != stage::burying && !r.retry_unanswered) {
      s.object(s.so_far.unexpected, id, "is dead although it was never buried");
    } else if (r.deleted) {
      s.object(s.so_far.revived, id, "is dead although it had been deleted");
    }
  });
}

void ledger::found_done(token id, std::string_view contents, std::string_view result) {
  state_.with([&](state& s) {
    if (!s.is_expected(id, contents)) return;
    auto& r = s.of(id);
    ++s.so_far.results;
    r.found_result = true;
    if (!r.result.empty() && result != r.result) {
      s.object(s.so_far.unexpected, id, "has another result: " + std::string(result));
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
        end.object(end.so_far.twins, i + 1, "did not hold its key until it was leased");
      }
      if (r.now == stage::dead && !r.found_dead && !r.off_asked) {
        end.object(end.so_far.revived, i + 1, "is not dead although it had been buried");
      }
      if (r.now == stage::done && !r.result.empty() && !r.found_result && !r.off_asked) {
        end.object(end.so_far.lost, i + 1, "was acked with a result that is lost");
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
