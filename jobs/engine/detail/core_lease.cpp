// Workers: leases, their ends, and those who wait for either.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include "jobs/engine/detail/lease_wait.hpp"
#include "sluice/base/check.hpp"

namespace sluice::jobs::detail {
namespace {

constexpr std::uint64_t key_mask = (std::uint64_t{1} << 53) - 1;  // fits a JavaScript number
constexpr std::size_t lease_queues_max = 1000;

// From the system, many at a time. Who holds keys must not be able to tell those of others.
std::uint64_t secret_number() {
  static constexpr std::size_t at_a_time = 32;
  thread_local std::array<std::uint64_t, at_a_time> numbers{};
  thread_local std::size_t left = 0;
  if (left == 0) {
    check(::getentropy(numbers.data(), sizeof numbers) == 0, "sluice::jobs::engine",
          "a system that has random numbers");
    left = at_a_time;
  }
  return std::exchange(numbers[--left], 0);
}

// Not in the middle of a character.
void cut(std::string& text, std::size_t max) {
  if (text.size() <= max) return;
  const auto continues = [&](std::size_t at) {
    return (static_cast<unsigned char>(text[at]) & 0xC0U) == 0x80U;
  };
  std::size_t end = max;
  while (end > 0 && max - end < 3 && continues(end)) --end;
  text.resize(end);
}

bool is_duration(milliseconds d) {
  return d >= milliseconds(0) && d <= limits::duration_max;
}

error not_a_duration(const char* what) {
  return {error_code::invalid, std::string(what) + " must be from 0 to 10 years"};
}

bool is_priority(std::optional<std::int64_t> p) {
  return !p || (*p <= limits::priority_max && *p >= -limits::priority_max);
}

error not_a_priority() {
  return {error_code::invalid, "priority must be from -4294967296 to 4294967296"};
}

milliseconds time_to_report(milliseconds limit) {
  return std::min(milliseconds(5000), limit / 10 + milliseconds(1000));
}

event_type event_of(job_state after) {
  switch (after) {
    case job_state::done:
      return event_type::done;
    case job_state::dead:
      return event_type::dead;
    case job_state::retrying:
      return event_type::retrying;
    default:
      return event_type::returned;
  }
}

std::string_view error_type_of(const end_item& e, const change& c) {
  if (e.last_error) return e.last_error->type;
  return c.how != nullptr && c.how->error ? std::string_view(c.how->error->type) : "";
}

job_ptr without_args(const job& whole) {
  auto trimmed = std::make_shared<job>(whole);
  trimmed->spec.args.data.clear();
  trimmed->spec.args.data.shrink_to_fit();
  return trimmed;
}

}  // namespace

void lease_state::fire() noexcept {
  owner->lease_expired(*this);
}

// Leasing.

void core::lease(lease_request what, promise<result<std::vector<leased_job>>> to,
                 const wait_limits& limits, answers& out) {
  const auto refuse = [&](error_code code, std::string why) {
    out.add(std::move(to), result<std::vector<leased_job>>(error{code, std::move(why)}));
  };
  if (closed_) return refuse(error_code::shutting_down, "the server is shutting down");
  if (is_store_damaged()) return refuse(degraded_->code, degraded_->message);
  if (what.queues.empty()) return refuse(error_code::invalid, "queues must name at least one");
  if (what.queues.size() > lease_queues_max) {
    return refuse(error_code::too_large, "queues must name at most 1000");
  }
  if (what.max == 0) return refuse(error_code::invalid, "max must be at least 1");
  if (auto valid = check_lease(what); !valid) {
    return refuse(valid.error().code, valid.error().message);
  }
  what.max = std::min(what.max, options_.lease_max);
  for (const std::string& name : what.queues) {
    if (auto valid = validate_queue_name(name); !valid) {
      return refuse(valid.error().code, valid.error().message);
    }
  }
  if (leases_.size() >= options_.running_max) return refuse(error_code::overloaded, too_many_run());
  if (limits.stop.stop_requested()) {  // wins over a job that is there
    return refuse(error_code::stopped, "the caller asked to stop");
  }
  std::vector<leased_job> taken;
  take_some(what, taken);
  if (!taken.empty()) {
    return out.add(std::move(to), result<std::vector<leased_job>>(std::move(taken)));
  }
  // A call that may not wait for a job still waits for the store to be read.
  const bool reads = std::ranges::any_of(what.queues, [&](const std::string& name) {
    const queue_state* const q = find_queue(name);
    return q != nullptr && q->ready.empty() && q->ready.is_cut() && !is_paused(*q);
  });
  const bool only_reads = limits.deadline.passed();
  const time_point now = time_.timers().now();
  const bool is_due = only_reads && due_is_pending(now);
  if (only_reads && !reads && !is_due) return refuse(error_code::timed_out, "no job is ready");
  std::uint64_t bytes = what.worker.size();
  for (const std::string& name : what.queues) bytes += name.size() + sizeof name;
  if (const auto why = refuse_wait(bytes)) return refuse(why->code, why->message);
  bool is_asked = false;
  std::vector<waiting::line*> lines;
  for (const std::string& name : what.queues) {
    queue_state* const q = make_queue(name, true);
    if (q == nullptr) {
      drop_unused_of(what);
      return refuse(error_code::overloaded, too_many_queues().message);
    }
    if (std::ranges::find(lines, &q->leases) != lines.end()) continue;
    lines.push_back(&q->leases);
    want_refill(*q);
    arm_rate(*q);
    is_asked = is_asked || q->wants_refill;
  }
  if (only_reads && !is_asked && !is_due) {  // it would be of no use
    drop_unused_of(what);
    const error why = degraded_.value_or(error{error_code::timed_out, "no job is ready"});
    return refuse(why.code, why.message);
  }
  const std::stop_token cancel = to.stop_token();
  auto wait = std::make_unique<lease_wait>(std::move(what), std::move(to), now);
  wait->bytes = bytes;
  wait->on_left = [this, asked = &wait->what] { drop_unused_of(*asked); };
  if (only_reads) lines.push_back(&reads_);
  hold(std::move(wait), lines, only_reads ? wait_limits(limits.stop) : limits, cancel);
}

void_result core::check_lease(lease_request& what) {
  if (!is_duration(what.lease_for)) return not_a_duration("lease_for");
  cut(what.worker, limits::worker_bytes_max);
  return done{};
}

std::string core::too_many_run() const {
  return std::to_string(leases_.size()) +
         " jobs are leased, which is the limit (running_max): ack them, or let leases end";
}

// Why a job of it that somebody names cannot run now. Pauses and rates do not keep it: they are
// about what is handed out.
std::optional<error> core::refuse_lease(const queue_state& q, const job& j) const {
  if (closed_) return error{error_code::shutting_down, "the server is shutting down"};
  if (is_store_damaged()) return degraded_;
  if (leases_.size() >= options_.running_max) {
    return error{error_code::overloaded, too_many_run()};
  }
  if (q.options.concurrency > 0 && q.leases_held() >= q.options.concurrency) {
    return error{error_code::overloaded, std::to_string(q.leases_held()) + " jobs of queue '" +
                                             q.name +
                                             "' are leased, which is its limit (concurrency)"};
  }
  if (!key_is_free(q, j)) {
    return error{error_code::overloaded,
                 "key '" + j.spec.key + "' is taken by a cancelled job until its lease ends", j.id};
  }
  return std::nullopt;
}

result<leased_job> core::lease_this(const job_ptr& it, const lease_request& what) {
  queue_state& q = *find_queue(it->spec.queue);
  if (auto why = refuse_lease(q, *it)) return *std::move(why);
  unpublish(*it);
  count_start(q, *it);
  return open_lease(q, it, what, true);
}

std::optional<lease_info> core::lease_of(job_id id) const {
  const auto found = leases_.find(id);
  if (found == leases_.end() || found->second.is_cancelled) return std::nullopt;
  const lease_state& l = found->second;
  return lease_info{l.worker, l.began_at, time_.after(l.until - time_.timers().now())};
}

void core::drop_unused_of(const lease_request& asked) {
  for (const std::string& name : asked.queues) {
    if (queue_state* const q = find_queue(name)) drop_unused(*q);
  }
}

// Ends leases that wait only for the store, if it has no job for them. Events that became due after
// the call do not keep it waiting: under load there is always one.
void core::end_reads(answers& out) {
  for (auto at = reads_.begin(); at != reads_.end();) {
    auto& w = static_cast<lease_wait&>(**at++);
    if (due_is_pending(w.began)) continue;
    const bool reads = std::ranges::any_of(w.what.queues, [&](const std::string& name) {
      const queue_state* const q = find_queue(name);
      return q != nullptr && q->wants_refill && !is_paused(*q);
    });
    if (reads) continue;
    end_wait_early(w, degraded_.value_or(error{error_code::timed_out, "no job is ready"}), out);
  }
}

std::size_t core::take_from(queue_state& q, const lease_request& what,
                            std::vector<leased_job>& into) {
  const time_point now = time_.timers().now();
  const std::size_t before = into.size();
  while (into.size() < what.max && may_start(q, now) && take_one(q, what, into)) {
  }
  want_refill(q);
  return into.size() - before;
}

leased_job core::open_lease(queue_state& q, job_ptr it, const lease_request& what, bool is_stored) {
  lease_state& l = leases_[it->id];
  l.is_unstored = !is_stored;
  q.unstored += l.is_unstored ? 1 : 0;
  l.owner = this;
  l.queue = &q;
  l.weight = weight_of(it->spec);
  keep_leased(l, it);
  count_key(l);
  do {
    l.key = (options_.seed != 0 ? random_.next() : secret_number()) & key_mask;
  } while (l.key == 0);
  l.worker = what.worker;
  l.lasts = what.lease_for > milliseconds(0)       ? what.lease_for
            : it->spec.lease_for > milliseconds(0) ? it->spec.lease_for
                                                   : q.options.lease_for;
  l.began = time_.timers().now();
  l.began_at = time_.now();
  l.until = l.began + l.lasts;
  time_lease(l);
  ++q.running;
  ++running_;
  ++counters.leased;
  const unique_key& unique = it->spec.unique;
  if (!unique.key.empty() && unique.until == unique_until::started && it->attempts == 0) {
    change c;
    c.what = change::op::free_key;
    c.queue = q.number;
    c.id = it->id;
    c.it = it;
    stage(std::move(c));
  }
  if (is_stored) note(event_type::started, *it);
  return {std::move(it), l.key, l.attempt(), time_.after(l.until - l.began)};
}

// Large args stay on disk: what is leased may not take more memory than what waits.
void core::keep_leased(lease_state& l, const job_ptr& it) {
  l.is_trimmed =
      leased_bytes_ + l.weight > options_.window_bytes_max && !it->spec.args.data.empty();
  l.it = l.is_trimmed ? without_args(*it) : it;
  leased_bytes_ += l.is_trimmed ? 0 : l.weight;
}

// Arms its timer, no later than the job's own time limit allows. The worker ends the attempt at the
// limit and knows more about it; the engine does so when nothing was heard a little later.
void core::time_lease(lease_state& l) {
  if (const milliseconds limit = l.it->spec.time_limit; limit > milliseconds(0)) {
    l.until = std::min(l.until, l.began + limit + time_to_report(limit));
  }
  timers_.remove(l);
  timers_.add(l, l.until);
}

void core::serve(answers& out) {
  for (std::size_t i = 0; i < touched_.size(); ++i) {
    if (touched_[i] == nullptr) continue;
    queue_state& q = *touched_[i];
    while (!q.leases.empty() && !q.ready.empty() && !is_paused(q) && !closed_) {
      auto& first = static_cast<lease_wait&>(*q.leases.front());
      std::vector<leased_job> taken;
      if (take_from(q, first.what, taken) == 0) {
        // As many run as may, or as fast as may; of the latter the queue itself hears when it has
        // changed.
        if (leases_.size() >= options_.running_max && !std::exchange(q.is_starved, true)) {
          starved_.push_back(&q);
        }
        arm_rate(q);
        break;
      }
      answer_lease(first, std::move(taken), out);
    }
    if (!q.leases.empty()) want_refill(q);
  }
  if (!reads_.empty()) end_reads(out);
  tell_events(out);
}

void core::answer_lease(lease_wait& w, std::vector<leased_job> with, answers& out) {
  std::unique_ptr<waiting> mine = release_wait(w);
  out.add(std::move(w.to), result<std::vector<leased_job>>(std::move(with)));
  out.bury(std::move(mine));
}

result<lease_state*> core::checked_lease(lease_ref ref) {
  lease_state* const l = find_lease(ref.job);
  if (l == nullptr || l->key != ref.key) {
    return error{error_code::lease_lost,
                 "job " + std::to_string(ref.job) +
                     " is not leased under this key: the lease ran out or was given back, or the "
                     "job has ended; the work may be done by another worker",
                 ref.job};
  }
  if (l->is_ending) {
    return error{error_code::lease_lost,
                 "job " + std::to_string(ref.job) + " is being ended already", ref.job};
  }
  return l;
}

result<extension> core::extend(lease_ref ref, milliseconds by,
                               std::optional<jobs::progress> how_far) {
  result<lease_state*> found = checked_lease(ref);
  if (!found) return found.error();
  lease_state& l = **found;
  if (!is_duration(by)) return not_a_duration("an extension");
  if (how_far) {
    if (auto said = report(ref, *std::move(how_far)); !said) return said.error();
  }
  const time_point now = time_.timers().now();
  l.until = now + (by > milliseconds(0) ? by : l.lasts);
  time_lease(l);
  return extension{time_.after(l.until - now), l.is_cancelled};
}

void_result core::report(lease_ref ref, jobs::progress how_far) {
  result<lease_state*> found = checked_lease(ref);
  if (!found) return found.error();
  if (!(how_far.percent >= 0 && how_far.percent <= 100)) {
    return error{error_code::invalid, "percent must be from 0 to 100"};
  }
  cut(how_far.text, limits::progress_bytes_max);
  lease_state& l = **found;
  l.how_far = std::move(how_far);
  if (!l.is_unstored) note_progress(l);
  return done{};
}

void core::note_progress(const lease_state& l) {
  job_event e;
  e.type = event_type::progress;
  e.job = l.it->id;
  e.queue = l.queue->name;
  e.attempt = l.attempt();
  e.batch = l.it->spec.batch;
  e.percent = l.how_far->percent;
  e.text = l.how_far->text;
  add_event(std::move(e));
}

void core::log(lease_ref ref, std::vector<std::string> lines, promise<void_result> to,
               answers& out) {
  const auto answer = [&](void_result with) { out.add(std::move(to), std::move(with)); };
  result<lease_state*> found = checked_lease(ref);
  if (!found) return answer(found.error());
  lease_state& l = **found;
  if (lines.size() > limits::log_lines_at_once) {
    return answer(error{error_code::too_large, "more than " +
                                                   std::to_string(limits::log_lines_at_once) +
                                                   " lines at once; nothing was kept"});
  }
  std::uint64_t bytes = 0;
  auto all = std::make_unique<std::vector<log_line>>();
  const unix_time wall = time_.now();
  for (std::string& line : lines) {
    cut(line, limits::log_line_bytes_max);
    bytes += line.size();
    all->push_back({0, l.attempt(), wall, std::move(line)});
  }
  if (auto why = refuse_said(bytes, ref.job)) return answer(*std::move(why));
  if (all->empty() || l.is_cancelled) return answer(done{});
  said_bytes_ += bytes;
  if (!l.is_unstored) return stage_logs(ref.job, std::move(all), bytes, std::move(to));
  when_decided(ref, [this, ref, bytes, all = std::move(all), to = std::move(to)](
                        const commit::outcome&, answers& later) mutable {
    const result<lease_state*> still = checked_lease(ref);
    if (still) return stage_logs(ref.job, std::move(all), bytes, std::move(to));
    said_bytes_ -= bytes;
    later.add(std::move(to), void_result(still.error()));
  });
}

void core::stage_logs(job_id of, std::unique_ptr<std::vector<log_line>> lines, std::uint64_t bytes,
                      promise<void_result> to) {
  change c;
  c.what = change::op::add_logs;
  c.id = of;
  c.logs = std::move(lines);
  stage(std::move(c));
  stage_after([this, bytes, to = std::move(to)](const commit::outcome& how, answers& then) mutable {
    said_bytes_ -= bytes;
    then.add(std::move(to), how.why_not != nullptr ? void_result(*how.why_not) : done{});
  });
}

// Ends.

void core::end_lease(lease_state& l, end_item end, change c) {
  l.is_ending = true;
  timers_.remove(l);
  c.queue = l.queue->number;
  c.id = l.it->id;
  c.from = job_state::ready;
  c.weight = l.weight;
  const unique_key& unique = l.it->spec.unique;
  const bool frees = unique.ends_with_job() && (c.what == change::op::drop || has_ended(c.to));
  if (frees && c.how != nullptr) c.how->free_key = true;
  if (frees || gates::concern(l.it->spec)) c.it = l.it;
  if (c.how != nullptr) {
    c.how->progress = l.how_far;
    if (has_ended(c.to) || c.to == job_state::retrying) {
      const attempt_outcome outcome = c.to == job_state::done ? attempt_outcome::done
                                      : end.is_expiry         ? attempt_outcome::expired
                                                              : attempt_outcome::failed;
      c.how->attempt = attempt_record{l.attempt(), l.began_at, time_.now(), l.worker, outcome};
    }
  }
  end.id = l.it->id;
  said_bytes_ += end.bytes;
  end.change = stage(std::move(c));
  next_.ends.push_back(std::move(end));
}

// Not more than this is kept in memory of what workers say. Beside the pushes: a flood of them does
// not keep an ack from being stored.
std::optional<error> core::refuse_said(std::uint64_t bytes, job_id id) const {
  if (bytes == 0 || said_bytes_ == 0 || said_bytes_ + bytes <= options_.staged_bytes_max) {
    return std::nullopt;
  }
  return error{error_code::overloaded,
               std::to_string(said_bytes_) + " of " + std::to_string(options_.staged_bytes_max) +
                   " bytes of results and failures are on their way to the store "
                   "(staged_bytes_max); the lease is still yours: say it again later",
               id};
}

void core::ack(lease_ref ref, std::optional<payload> value, ack_reply to, answers& out) {
  const std::uint64_t bytes = value ? value->data.size() : 0;
  if (auto why = refuse_said(bytes, ref.job)) return to.give(*std::move(why), out);
  if (is_being_decided(ref)) {
    said_bytes_ += bytes;
    return when_decided(ref, [this, ref, bytes, value = std::move(value), to = std::move(to)](
                                 const commit::outcome&, answers& later) mutable {
      said_bytes_ -= bytes;
      ack(ref, std::move(value), std::move(to), later);
    });
  }
  result<lease_state*> found = checked_lease(ref);
  if (!found) return to.give(found.error(), out);
  lease_state& l = **found;
  if (value && value->data.size() > limits::result_bytes_max) {
    return to.give(
        error{error_code::too_large,
              "the result is longer than " + std::to_string(limits::result_bytes_max) + " bytes"},
        out);
  }
  if (l.is_cancelled) {  // its end is known already
    forget_lease(ref.job, out);
    to.give(done{}, out);
    return settle(out);
  }
  end_item end;
  end.acked = std::move(to);
  end.to = job_state::done;
  end.bytes = bytes;
  const milliseconds keep = keep_of(*l.queue, l.it->spec, job_state::done, value.has_value());
  (void)stage_webhook(*l.it, job_state::done, value, nullptr);
  change c;
  c.to = job_state::done;
  if (keep == milliseconds(0)) {
    c.what = change::op::drop;
    end.value = std::move(value);
  } else {
    c.what = change::op::move;
    c.how = std::make_unique<change::moved>();
    c.how->ended_at = time_.now();
    c.how->due_at = time_.after(keep);
    c.how->attempts = l.attempt();
    c.how->result = std::move(value);
  }
  end_lease(l, std::move(end), std::move(c));
}

void core::cut_to_limits(failure& why) {
  cut(why.type, limits::kind_bytes_max);
  cut(why.message, limits::error_message_bytes_max);
  cut(why.backtrace, limits::backtrace_bytes_max);
}

void core::fail(lease_ref ref, failure why, promise<result<fail_receipt>> to, answers& out) {
  cut_to_limits(why);
  const std::uint64_t bytes = why.type.size() + why.message.size() + why.backtrace.size();
  if (auto no = refuse_said(bytes, ref.job)) {
    return out.add(std::move(to), result<fail_receipt>(*std::move(no)));
  }
  if (is_being_decided(ref)) {
    said_bytes_ += bytes;
    return when_decided(ref, [this, ref, bytes, why = std::move(why), to = std::move(to)](
                                 const commit::outcome&, answers& later) mutable {
      said_bytes_ -= bytes;
      fail(ref, std::move(why), std::move(to), later);
    });
  }
  result<lease_state*> found = checked_lease(ref);
  if (!found) return out.add(std::move(to), result<fail_receipt>(found.error()));
  lease_state& l = **found;
  if (why.retry_in && !is_duration(*why.retry_in)) {
    return out.add(std::move(to), result<fail_receipt>(not_a_duration("retry_in")));
  }
  if (!is_priority(why.priority)) {
    return out.add(std::move(to), result<fail_receipt>(not_a_priority()));
  }
  if (l.is_cancelled) {
    forget_lease(ref.job, out);
    out.add(std::move(to), result<fail_receipt>(fail_receipt{job_state::cancelled, {}}));
    return settle(out);
  }
  end_item end;
  end.failed = std::move(to);
  end.bytes = bytes;
  stage_failure(l, std::move(why), std::move(end), std::chrono::nanoseconds(0));
}

// `ago`: how long before now it failed.
void core::stage_failure(lease_state& l, failure why, end_item end, std::chrono::nanoseconds ago) {
  const retry_policy& policy = l.it->spec.retry;
  const std::uint32_t attempt = l.attempt();
  const unix_time wall = time_.now();
  change c;
  c.what = change::op::move;
  c.how = std::make_unique<change::moved>();
  c.how->attempts = attempt;
  c.how->priority = why.priority;
  c.how->error = attempt_error{attempt, wall, std::move(why.type), std::move(why.message),
                               std::move(why.backtrace)};
  if (why.for_good || attempt >= policy.attempts_max) {
    const milliseconds keep = keep_of(*l.queue, l.it->spec, job_state::dead, false);
    c.to = job_state::dead;
    c.how->ended_at = wall;
    c.how->due_at = time_.after(keep);
    (void)stage_webhook(*l.it, job_state::dead, {}, &*c.how->error);
    if (keep == milliseconds(0)) {
      c.what = change::op::drop;
      end.last_error = std::move(c.how->error);
      c.how.reset();
    }
    end.receipt = {job_state::dead, {}};
  } else {
    const double chance = static_cast<double>(random_.next() >> 11) * 0x1.0p-53;
    const milliseconds pause = why.retry_in ? *why.retry_in : pause_after(policy, attempt, chance);
    c.to = job_state::retrying;
    c.how->due_at = time_.after(pause - ago);
    end.receipt = {job_state::retrying, c.how->due_at};
  }
  end.to = c.to;
  end_lease(l, std::move(end), std::move(c));
}

void core::lease_expired(lease_state& l) {
  if (l.is_cancelled) return forget_lease(l.it->id, *firing_);
  if (busy_.contains(l.it->id)) {  // being cancelled: how that went is known soon
    l.until = time_.timers().now() + options_.probe_every;
    return timers_.add(l, l.until);
  }
  end_item end;
  end.is_expiry = true;
  const milliseconds limit = l.it->spec.time_limit;
  const bool too_long = limit > milliseconds(0) && l.until >= l.began + limit;
  failure why;
  why.type = too_long ? "time_limit" : "lease_expired";
  why.message = too_long ? "the attempt took longer than its time limit of " +
                               std::to_string(limit.count()) + " ms"
                         : "the worker" + (l.worker.empty() ? "" : " '" + l.worker + "'") +
                               " did not extend its lease of " + std::to_string(l.lasts.count()) +
                               " ms in time";
  // Its pause begins when the lease has ended, however late that is seen.
  stage_failure(l, std::move(why), std::move(end), time_.timers().now() - l.until);
}

job_ptr core::release(lease_ref ref, give_back how, ack_reply& to, answers& out) {
  const auto answer = [&](void_result with) {
    to.give(std::move(with), out);
    return nullptr;
  };
  if (is_being_decided(ref)) {
    when_decided(
        ref, [this, ref, how, to = std::move(to)](const commit::outcome&, answers& later) mutable {
          if (const job_ptr trimmed = release(ref, how, to, later)) {
            read_again(*trimmed, later);
            to.give(done{}, later);
          }
        });
    return nullptr;
  }
  result<lease_state*> found = checked_lease(ref);
  if (!found) return answer(found.error());
  lease_state& l = **found;
  if (!is_duration(how.delay)) return answer(not_a_duration("delay"));
  if (!is_priority(how.priority)) return answer(not_a_priority());
  if (l.is_cancelled) {
    forget_lease(ref.job, out);
    settle(out);
    return answer(done{});
  }
  if (how.delay == milliseconds(0) && !how.priority) {
    // For the store it never was anything but ready.
    ++counters.given_back;
    note(event_type::returned, *l.it);
    const job_ptr it = l.it;
    const bool is_trimmed = l.is_trimmed;
    forget_lease(ref.job, out);
    if (is_trimmed) return it;
    publish_again(it, out);
    return answer(done{});
  }
  const bool is_later = how.delay > milliseconds(0);
  end_item end;
  end.acked = std::move(to);
  end.to = is_later ? job_state::scheduled : job_state::ready;
  change c;
  c.what = change::op::move;
  c.to = end.to;
  c.how = std::make_unique<change::moved>();
  if (is_later) c.how->due_at = time_.after(how.delay);
  c.how->priority = how.priority;
  end_lease(l, std::move(end), std::move(c));
  return nullptr;
}

std::vector<end_item*> core::ends_without_args(commit& c) {
  std::vector<end_item*> those;
  if (ends_.empty()) return those;
  for (end_item& e : c.ends) {
    const lease_state* const l = find_lease(e.id);
    if (l != nullptr && l->is_trimmed && has_ended(e.to) && ends_.contains(e.id)) {
      those.push_back(&e);
    }
  }
  return those;
}

void core::end_committed(end_item& e, const change& c, answers& out) {
  lease_state* const l = find_lease(e.id);
  check(l != nullptr, "sluice::jobs::core", "a lease for every end");
  said_bytes_ -= e.bytes;
  if (has_ended(e.to)) {
    if (ends_.contains(e.id)) {
      job last = *l->it;
      last.state = e.to;
      last.attempts = l->attempt();
      last.ended_at = c.how != nullptr ? c.how->ended_at.value_or(time_.now()) : time_.now();
      last.result = std::move(e.value);
      if (e.args) last.spec.args = *std::move(e.args);
      if (c.how != nullptr) {
        last.due_at = c.how->due_at;
        e.last_error = c.how->error;
        if (c.how->attempt) add_attempt(last.history, *c.how->attempt);
        if (c.how->result) last.result = c.how->result;
        last.spec.priority = c.how->priority.value_or(last.spec.priority);
      }
      last.progress = l->how_far;
      if (e.last_error) last.errors.push_back(*std::move(e.last_error));
      if (last.errors.size() > limits::errors_max) last.errors.erase(last.errors.begin());
      job_ended(last, out);
    }
    counters.acked += e.to == job_state::done ? 1 : 0;
    counters.died += e.to == job_state::dead ? 1 : 0;
  } else {
    counters.retried += e.to == job_state::retrying ? 1 : 0;
    counters.given_back += e.to == job_state::retrying ? 0 : 1;
  }
  note(event_of(e.to), *l->it, error_type_of(e, c));
  counters.expired += e.is_expiry ? 1U : 0U;
  counters.failed += e.failed.has_value() ? 1U : 0U;
  // Its next attempt, or the end of its retention.
  if (c.how != nullptr && c.how->due_at > unix_time{}) note_due(c.how->due_at);
  if (e.to == job_state::ready) {
    auto back = std::make_shared<job>(*l->it);
    back->spec.priority = c.how->priority.value_or(back->spec.priority);
    const bool is_trimmed = l->is_trimmed;
    forget_lease(e.id, out);
    is_trimmed ? read_again(*back, out) : publish(std::move(back));
  } else {
    forget_lease(e.id, out);
  }
  e.acked.give(done{}, out);
  if (e.failed) out.add(std::move(*e.failed), result<fail_receipt>(e.receipt));
}

void core::forget_lease(job_id id, answers& out) {
  const auto found = leases_.find(id);
  lease_state& l = found->second;
  timers_.remove(l);
  leased_bytes_ -= l.is_trimmed ? 0 : l.weight;
  if (l.is_cancelled) {
    --l.queue->cancelled_leases;
  } else {
    --l.queue->running;
    --running_;
  }
  uncount_key(l);
  touch(*l.queue);
  for (queue_state* const q : std::exchange(starved_, {})) {
    q->is_starved = false;
    touch(*q);
  }
  leases_.erase(found);
  check_drained(out);
}

void core::mark_cancelled(lease_state& l) {
  check(!l.is_cancelled, "sluice::jobs::core", "a job to be cancelled once");
  l.is_cancelled = true;
  --l.queue->running;
  --running_;
  ++l.queue->cancelled_leases;
  if (!l.it->spec.key.empty()) ++l.queue->keys.at(l.line).cancelled;
}

}  // namespace sluice::jobs::detail
