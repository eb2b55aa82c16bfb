// Workers: leases, their ends, and the calls that wait for either.
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

// Returns a random number from the system, fetched in blocks. The holder of one lease key must not
// be able to guess others.
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

// Truncates at a character boundary.
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

error not_a_duration(const char* name) {
  return {error_code::invalid, std::string(name) + " must be from 0 to 10 years"};
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
  return c.fields != nullptr && c.fields->error ? std::string_view(c.fields->error->type) : "";
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

void core::lease(lease_request request, promise<result<std::vector<leased_job>>> reply,
                 const wait_limits& limits, answers& out) {
  const auto refuse = [&](error_code code, std::string why) {
    out.add(std::move(reply), result<std::vector<leased_job>>(error{code, std::move(why)}));
  };
  if (closed_) return refuse(error_code::shutting_down, "the server is shutting down");
  if (is_store_damaged()) return refuse(degraded_->code, degraded_->message);
  if (request.queues.empty()) return refuse(error_code::invalid, "queues must name at least one");
  if (request.queues.size() > lease_queues_max) {
    return refuse(error_code::too_large, "queues must name at most 1000");
  }
  if (request.max == 0) return refuse(error_code::invalid, "max must be at least 1");
  if (auto valid = check_lease(request); !valid) {
    return refuse(valid.error().code, valid.error().message);
  }
  request.max = std::min(request.max, options_.lease_max);
  for (const std::string& name : request.queues) {
    if (auto valid = validate_queue_name(name); !valid) {
      return refuse(valid.error().code, valid.error().message);
    }
  }
  if (leases_.size() >= options_.running_max) return refuse(error_code::overloaded, too_many_run());
  if (limits.stop.stop_requested()) {  // has precedence over a ready job
    return refuse(error_code::stopped, "the caller asked to stop");
  }
  std::vector<leased_job> taken;
  take_some(request, taken);
  if (!taken.empty()) {
    return out.add(std::move(reply), result<std::vector<leased_job>>(std::move(taken)));
  }
  // A call that may not wait for a job still waits for a read of the store.
  const bool reads = std::ranges::any_of(request.queues, [&](const std::string& name) {
    const queue_state* const q = find_queue(name);
    return q != nullptr && q->ready.empty() && q->ready.is_cut() && !is_paused(*q);
  });
  const bool only_reads = limits.deadline.passed();
  const time_point now = time_.timers().now();
  const bool is_due = only_reads && due_is_pending(now);
  if (only_reads && !reads && !is_due) return refuse(error_code::timed_out, "no job is ready");
  std::uint64_t bytes = request.worker.size();
  for (const std::string& name : request.queues) bytes += name.size() + sizeof name;
  if (const auto why = refuse_wait(bytes)) return refuse(why->code, why->message);
  bool is_asked = false;
  std::vector<waiting::line*> lines;
  for (const std::string& name : request.queues) {
    queue_state* const q = make_queue(name, true);
    if (q == nullptr) {
      drop_unused_of(request);
      return refuse(error_code::overloaded, too_many_queues().message);
    }
    if (std::ranges::find(lines, &q->leases) != lines.end()) continue;
    lines.push_back(&q->leases);
    want_refill(*q);
    arm_rate(*q);
    is_asked = is_asked || q->wants_refill;
  }
  if (only_reads && !is_asked && !is_due) {  // waiting would not help
    drop_unused_of(request);
    const error why = degraded_.value_or(error{error_code::timed_out, "no job is ready"});
    return refuse(why.code, why.message);
  }
  const std::stop_token cancel = reply.stop_token();
  auto wait = std::make_unique<lease_wait>(std::move(request), std::move(reply), now);
  wait->bytes = bytes;
  wait->on_left = [this, asked = &wait->request] { drop_unused_of(*asked); };
  if (only_reads) lines.push_back(&reads_);
  park(std::move(wait), lines, only_reads ? wait_limits(limits.stop) : limits, cancel);
}

void_result core::check_lease(lease_request& request) {
  if (!is_duration(request.lease_for)) return not_a_duration("lease_for");
  cut(request.worker, limits::worker_bytes_max);
  return done{};
}

std::string core::too_many_run() const {
  return std::to_string(leases_.size()) +
         " jobs are leased, which is the limit (running_max): ack them, or let leases end";
}

// Returns the reason why a job leased by id cannot run now. Pauses and rates do not apply: they
// limit leases from a queue.
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

result<leased_job> core::lease_this(const job_ptr& job, const lease_request& request) {
  queue_state& q = *find_queue(job->spec.queue);
  if (auto why = refuse_lease(q, *job)) return *std::move(why);
  unpublish(*job);
  count_start(q, *job);
  return open_lease(q, job, request, true);
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

// Ends leases that wait only for a read of the store, if it found no job for them. Events that
// became due after the call do not prolong the wait: under load there is always one.
void core::end_reads(answers& out) {
  for (auto at = reads_.begin(); at != reads_.end();) {
    auto& w = static_cast<lease_wait&>(**at++);
    if (due_is_pending(w.began)) continue;
    const bool reads = std::ranges::any_of(w.request.queues, [&](const std::string& name) {
      const queue_state* const q = find_queue(name);
      return q != nullptr && q->wants_refill && !is_paused(*q);
    });
    if (reads) continue;
    end_wait_early(w, degraded_.value_or(error{error_code::timed_out, "no job is ready"}), out);
  }
}

std::size_t core::take_from(queue_state& q, const lease_request& request,
                            std::vector<leased_job>& into) {
  const time_point now = time_.timers().now();
  const std::size_t before = into.size();
  while (into.size() < request.max && may_start(q, now) && take_one(q, request, into)) {
  }
  want_refill(q);
  return into.size() - before;
}

leased_job core::open_lease(queue_state& q, job_ptr job, const lease_request& request,
                            bool is_stored) {
  lease_state& l = leases_[job->id];
  l.is_unstored = !is_stored;
  q.unstored += l.is_unstored ? 1 : 0;
  l.owner = this;
  l.queue = &q;
  l.weight = weight_of(job->spec);
  keep_leased(l, job);
  count_key(l);
  do {
    l.key = (options_.seed != 0 ? random_.next() : secret_number()) & key_mask;
  } while (l.key == 0);
  l.worker = request.worker;
  l.lasts = request.lease_for > milliseconds(0)     ? request.lease_for
            : job->spec.lease_for > milliseconds(0) ? job->spec.lease_for
                                                    : q.options.lease_for;
  l.began = time_.timers().now();
  l.began_at = time_.now();
  l.until = l.began + l.lasts;
  time_lease(l);
  ++q.running;
  ++running_;
  ++counters.leased;
  const unique_key& unique = job->spec.unique;
  if (!unique.key.empty() && unique.until == unique_until::started && job->attempts == 0) {
    change c;
    c.type = change::op::free_key;
    c.queue = q.number;
    c.id = job->id;
    c.job = job;
    stage(std::move(c));
  }
  if (is_stored) note(event_type::started, *job);
  return {std::move(job), l.key, l.attempt(), time_.after(l.until - l.began)};
}

// Large args stay on disk: leased jobs may use as much memory as the windows, at most.
void core::keep_leased(lease_state& l, const job_ptr& job) {
  l.is_trimmed =
      leased_bytes_ + l.weight > options_.window_bytes_max && !job->spec.args.data.empty();
  l.job = l.is_trimmed ? without_args(*job) : job;
  leased_bytes_ += l.is_trimmed ? 0 : l.weight;
}

// Arms the lease's timer, at the latest for the job's own time limit. The worker ends the attempt
// at the limit and can report more about it; the engine does so a little later if no report has
// arrived.
void core::time_lease(lease_state& l) {
  if (const milliseconds limit = l.job->spec.time_limit; limit > milliseconds(0)) {
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
      if (take_from(q, first.request, taken) == 0) {
        // Blocked by running_max, the concurrency, or the rate. The rate has its own timer, and an
        // end in this queue touches it; only running_max depends on other queues and is remembered
        // here.
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
  answer_event_waits(out);
}

void core::answer_lease(lease_wait& w, std::vector<leased_job> with, answers& out) {
  std::unique_ptr<waiting> ended = unpark(w);
  out.add(std::move(w.reply), result<std::vector<leased_job>>(std::move(with)));
  out.destroy_later(std::move(ended));
}

result<lease_state*> core::checked_lease(lease_ref ref) {
  lease_state* const l = find_lease(ref.job);
  if (l == nullptr || l->key != ref.key) {
    return error{error_code::lease_lost,
                 "job " + std::to_string(ref.job) +
                     " is not leased under this key: the lease expired or was returned, or the "
                     "job has ended; another worker may run it",
                 ref.job};
  }
  if (l->is_ending) {
    return error{error_code::lease_lost,
                 "job " + std::to_string(ref.job) + " is already being ended", ref.job};
  }
  return l;
}

result<extension> core::extend(lease_ref ref, milliseconds by,
                               std::optional<jobs::progress> progress) {
  result<lease_state*> found = checked_lease(ref);
  if (!found) return found.error();
  lease_state& l = **found;
  if (!is_duration(by)) return not_a_duration("an extension");
  if (progress) {
    if (auto reported = report(ref, *std::move(progress)); !reported) return reported.error();
  }
  const time_point now = time_.timers().now();
  l.until = now + (by > milliseconds(0) ? by : l.lasts);
  time_lease(l);
  return extension{time_.after(l.until - now), l.is_cancelled};
}

void_result core::report(lease_ref ref, jobs::progress progress) {
  result<lease_state*> found = checked_lease(ref);
  if (!found) return found.error();
  if (!(progress.percent >= 0 && progress.percent <= 100)) {
    return error{error_code::invalid, "percent must be from 0 to 100"};
  }
  cut(progress.text, limits::progress_bytes_max);
  lease_state& l = **found;
  l.progress = std::move(progress);
  if (!l.is_unstored) note_progress(l);
  return done{};
}

void core::note_progress(const lease_state& l) {
  job_event e;
  e.type = event_type::progress;
  e.job = l.job->id;
  e.queue = l.queue->name;
  e.attempt = l.attempt();
  e.batch = l.job->spec.batch;
  e.percent = l.progress->percent;
  e.text = l.progress->text;
  add_event(std::move(e));
}

void core::log(lease_ref ref, std::vector<std::string> lines, promise<void_result> reply,
               answers& out) {
  const auto answer = [&](void_result with) { out.add(std::move(reply), std::move(with)); };
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
  if (auto why = refuse_result_bytes(bytes, ref.job)) return answer(*std::move(why));
  if (all->empty() || l.is_cancelled) return answer(done{});
  staged_result_bytes_ += bytes;
  if (!l.is_unstored) return stage_logs(ref.job, std::move(all), bytes, std::move(reply));
  after_pending_commit(ref, [this, ref, bytes, all = std::move(all), reply = std::move(reply)](
                                const commit::outcome&, answers& later) mutable {
    const result<lease_state*> still = checked_lease(ref);
    if (still) return stage_logs(ref.job, std::move(all), bytes, std::move(reply));
    staged_result_bytes_ -= bytes;
    later.add(std::move(reply), void_result(still.error()));
  });
}

void core::stage_logs(job_id of, std::unique_ptr<std::vector<log_line>> lines, std::uint64_t bytes,
                      promise<void_result> reply) {
  change c;
  c.type = change::op::add_logs;
  c.id = of;
  c.logs = std::move(lines);
  stage(std::move(c));
  stage_after([this, bytes, reply = std::move(reply)](const commit::outcome& outcome,
                                                      answers& replies) mutable {
    staged_result_bytes_ -= bytes;
    replies.add(std::move(reply),
                outcome.failure != nullptr ? void_result(*outcome.failure) : done{});
  });
}

// Ends.

void core::end_lease(lease_state& l, end_item end, change c) {
  l.is_ending = true;
  timers_.remove(l);
  c.queue = l.queue->number;
  c.id = l.job->id;
  c.from = job_state::ready;
  c.weight = l.weight;
  const unique_key& unique = l.job->spec.unique;
  const bool frees =
      unique.ends_with_job() && (c.type == change::op::drop || has_ended(c.new_state));
  if (frees && c.fields != nullptr) c.fields->free_key = true;
  if (frees || gates::concern(l.job->spec)) c.job = l.job;
  if (c.fields != nullptr) {
    c.fields->progress = l.progress;
    if (has_ended(c.new_state) || c.new_state == job_state::retrying) {
      const attempt_outcome outcome = c.new_state == job_state::done ? attempt_outcome::done
                                      : end.is_expiry                ? attempt_outcome::expired
                                                                     : attempt_outcome::failed;
      c.fields->attempt = attempt_record{l.attempt(), l.began_at, time_.now(), l.worker, outcome};
    }
  }
  end.id = l.job->id;
  staged_result_bytes_ += end.bytes;
  end.change = stage(std::move(c));
  next_.ends.push_back(std::move(end));
}

// Rejects a report if too many bytes of results and failures are staged. Separate from the budget
// of pushes: a flood of them does not prevent acks.
std::optional<error> core::refuse_result_bytes(std::uint64_t bytes, job_id id) const {
  if (bytes == 0 || staged_result_bytes_ == 0 ||
      staged_result_bytes_ + bytes <= options_.staged_bytes_max) {
    return std::nullopt;
  }
  return error{error_code::overloaded,
               std::to_string(staged_result_bytes_) + " of " +
                   std::to_string(options_.staged_bytes_max) +
                   " bytes of results and failures are waiting to be stored "
                   "(staged_bytes_max); the lease is still valid, retry later",
               id};
}

void core::ack(lease_ref ref, std::optional<payload> value, ack_reply reply, answers& out) {
  const std::uint64_t bytes = value ? value->data.size() : 0;
  if (auto why = refuse_result_bytes(bytes, ref.job)) return reply.give(*std::move(why), out);
  if (has_pending_commit(ref)) {
    staged_result_bytes_ += bytes;
    return after_pending_commit(
        ref, [this, ref, bytes, value = std::move(value), reply = std::move(reply)](
                 const commit::outcome&, answers& later) mutable {
          staged_result_bytes_ -= bytes;
          ack(ref, std::move(value), std::move(reply), later);
        });
  }
  result<lease_state*> found = checked_lease(ref);
  if (!found) return reply.give(found.error(), out);
  lease_state& l = **found;
  if (value && value->data.size() > limits::result_bytes_max) {
    return reply.give(
        error{error_code::too_large,
              "the result is longer than " + std::to_string(limits::result_bytes_max) + " bytes"},
        out);
  }
  if (l.is_cancelled) {  // its end is already stored
    remove_lease(ref.job, out);
    reply.give(done{}, out);
    return settle(out);
  }
  end_item end;
  end.acked = std::move(reply);
  end.new_state = job_state::done;
  end.bytes = bytes;
  const milliseconds keep = keep_of(*l.queue, l.job->spec, job_state::done, value.has_value());
  (void)stage_webhook(*l.job, job_state::done, value, nullptr);
  change c;
  c.new_state = job_state::done;
  if (keep == milliseconds(0)) {
    c.type = change::op::drop;
    end.value = std::move(value);
  } else {
    c.type = change::op::move;
    c.fields = std::make_unique<change::moved>();
    c.fields->ended_at = time_.now();
    c.fields->due_at = time_.after(keep);
    c.fields->attempts = l.attempt();
    c.fields->result = std::move(value);
  }
  end_lease(l, std::move(end), std::move(c));
}

void core::cut_to_limits(failure& why) {
  cut(why.type, limits::kind_bytes_max);
  cut(why.message, limits::error_message_bytes_max);
  cut(why.backtrace, limits::backtrace_bytes_max);
}

void core::fail(lease_ref ref, failure why, promise<result<fail_receipt>> reply, answers& out) {
  cut_to_limits(why);
  const std::uint64_t bytes = why.type.size() + why.message.size() + why.backtrace.size();
  if (auto no = refuse_result_bytes(bytes, ref.job)) {
    return out.add(std::move(reply), result<fail_receipt>(*std::move(no)));
  }
  if (has_pending_commit(ref)) {
    staged_result_bytes_ += bytes;
    return after_pending_commit(ref,
                                [this, ref, bytes, why = std::move(why), reply = std::move(reply)](
                                    const commit::outcome&, answers& later) mutable {
                                  staged_result_bytes_ -= bytes;
                                  fail(ref, std::move(why), std::move(reply), later);
                                });
  }
  result<lease_state*> found = checked_lease(ref);
  if (!found) return out.add(std::move(reply), result<fail_receipt>(found.error()));
  lease_state& l = **found;
  if (why.retry_in && !is_duration(*why.retry_in)) {
    return out.add(std::move(reply), result<fail_receipt>(not_a_duration("retry_in")));
  }
  if (!is_priority(why.priority)) {
    return out.add(std::move(reply), result<fail_receipt>(not_a_priority()));
  }
  if (l.is_cancelled) {
    remove_lease(ref.job, out);
    out.add(std::move(reply), result<fail_receipt>(fail_receipt{job_state::cancelled, {}}));
    return settle(out);
  }
  end_item end;
  end.failed = std::move(reply);
  end.bytes = bytes;
  stage_failure(l, std::move(why), std::move(end), std::chrono::nanoseconds(0));
}

// `ago`: the time since the failure.
void core::stage_failure(lease_state& l, failure why, end_item end, std::chrono::nanoseconds ago) {
  const retry_policy& policy = l.job->spec.retry;
  const std::uint32_t attempt = l.attempt();
  const unix_time wall = time_.now();
  change c;
  c.type = change::op::move;
  c.fields = std::make_unique<change::moved>();
  c.fields->attempts = attempt;
  c.fields->priority = why.priority;
  c.fields->error = attempt_error{attempt, wall, std::move(why.type), std::move(why.message),
                                  std::move(why.backtrace)};
  if (why.for_good || attempt >= policy.attempts_max) {
    const milliseconds keep = keep_of(*l.queue, l.job->spec, job_state::dead, false);
    c.new_state = job_state::dead;
    c.fields->ended_at = wall;
    c.fields->due_at = time_.after(keep);
    (void)stage_webhook(*l.job, job_state::dead, {}, &*c.fields->error);
    if (keep == milliseconds(0)) {
      c.type = change::op::drop;
      end.last_error = std::move(c.fields->error);
      c.fields.reset();
    }
    end.receipt = {job_state::dead, {}};
  } else {
    const double chance = static_cast<double>(random_.next() >> 11) * 0x1.0p-53;
    const milliseconds pause = why.retry_in ? *why.retry_in : pause_after(policy, attempt, chance);
    c.new_state = job_state::retrying;
    c.fields->due_at = time_.after(pause - ago);
    end.receipt = {job_state::retrying, c.fields->due_at};
  }
  end.new_state = c.new_state;
  end_lease(l, std::move(end), std::move(c));
}

void core::lease_expired(lease_state& l) {
  if (l.is_cancelled) return remove_lease(l.job->id, *firing_);
  if (busy_.contains(l.job->id)) {  // its cancel is staged and decided soon
    l.until = time_.timers().now() + options_.probe_every;
    return timers_.add(l, l.until);
  }
  end_item end;
  end.is_expiry = true;
  const milliseconds limit = l.job->spec.time_limit;
  const bool too_long = limit > milliseconds(0) && l.until >= l.began + limit;
  failure why;
  why.type = too_long ? "time_limit" : "lease_expired";
  why.message = too_long ? "the attempt took longer than its time limit of " +
                               std::to_string(limit.count()) + " ms"
                         : "the worker" + (l.worker.empty() ? "" : " '" + l.worker + "'") +
                               " did not extend its lease of " + std::to_string(l.lasts.count()) +
                               " ms in time";
  // The backoff begins when the lease expired, not when that was noticed.
  stage_failure(l, std::move(why), std::move(end), time_.timers().now() - l.until);
}

job_ptr core::release(lease_ref ref, give_back options, ack_reply& reply, answers& out) {
  const auto answer = [&](void_result with) {
    reply.give(std::move(with), out);
    return nullptr;
  };
  if (has_pending_commit(ref)) {
    after_pending_commit(ref, [this, ref, options, reply = std::move(reply)](
                                  const commit::outcome&, answers& later) mutable {
      if (const job_ptr trimmed = release(ref, options, reply, later)) {
        read_again(*trimmed, later);
        reply.give(done{}, later);
      }
    });
    return nullptr;
  }
  result<lease_state*> found = checked_lease(ref);
  if (!found) return answer(found.error());
  lease_state& l = **found;
  if (!is_duration(options.delay)) return answer(not_a_duration("delay"));
  if (!is_priority(options.priority)) return answer(not_a_priority());
  if (l.is_cancelled) {
    remove_lease(ref.job, out);
    settle(out);
    return answer(done{});
  }
  if (options.delay == milliseconds(0) && !options.priority) {
    // In the store it has been ready all the time.
    ++counters.given_back;
    note(event_type::returned, *l.job);
    const job_ptr job = l.job;
    const bool is_trimmed = l.is_trimmed;
    remove_lease(ref.job, out);
    if (is_trimmed) return job;
    publish_again(job, out);
    return answer(done{});
  }
  const bool is_later = options.delay > milliseconds(0);
  end_item end;
  end.acked = std::move(reply);
  end.new_state = is_later ? job_state::scheduled : job_state::ready;
  change c;
  c.type = change::op::move;
  c.new_state = end.new_state;
  c.fields = std::make_unique<change::moved>();
  if (is_later) c.fields->due_at = time_.after(options.delay);
  c.fields->priority = options.priority;
  end_lease(l, std::move(end), std::move(c));
  return nullptr;
}

std::vector<end_item*> core::ends_without_args(commit& c) {
  std::vector<end_item*> ends;
  if (ends_.empty()) return ends;
  for (end_item& e : c.ends) {
    const lease_state* const l = find_lease(e.id);
    if (l != nullptr && l->is_trimmed && has_ended(e.new_state) && ends_.contains(e.id)) {
      ends.push_back(&e);
    }
  }
  return ends;
}

void core::end_committed(end_item& e, const change& c, answers& out) {
  lease_state* const l = find_lease(e.id);
  check(l != nullptr, "sluice::jobs::core", "a lease for every end");
  staged_result_bytes_ -= e.bytes;
  if (has_ended(e.new_state)) {
    if (ends_.contains(e.id)) {
      job last = *l->job;
      last.state = e.new_state;
      last.attempts = l->attempt();
      last.ended_at = c.fields != nullptr ? c.fields->ended_at.value_or(time_.now()) : time_.now();
      last.result = std::move(e.value);
      if (e.args) last.spec.args = *std::move(e.args);
      if (c.fields != nullptr) {
        last.due_at = c.fields->due_at;
        e.last_error = c.fields->error;
        if (c.fields->attempt) add_attempt(last.history, *c.fields->attempt);
        if (c.fields->result) last.result = c.fields->result;
        last.spec.priority = c.fields->priority.value_or(last.spec.priority);
      }
      last.progress = l->progress;
      if (e.last_error) last.errors.push_back(*std::move(e.last_error));
      if (last.errors.size() > limits::errors_max) last.errors.erase(last.errors.begin());
      job_ended(last, out);
    }
    counters.acked += e.new_state == job_state::done ? 1 : 0;
    counters.died += e.new_state == job_state::dead ? 1 : 0;
  } else {
    counters.retried += e.new_state == job_state::retrying ? 1 : 0;
    counters.given_back += e.new_state == job_state::retrying ? 0 : 1;
  }
  note(event_of(e.new_state), *l->job, error_type_of(e, c));
  counters.expired += e.is_expiry ? 1U : 0U;
  counters.failed += e.failed.has_value() ? 1U : 0U;
  // The time of its next attempt, or of the end of its retention.
  if (c.fields != nullptr && c.fields->due_at > unix_time{}) note_due(c.fields->due_at);
  if (e.new_state == job_state::ready) {
    auto back = std::make_shared<job>(*l->job);
    back->spec.priority = c.fields->priority.value_or(back->spec.priority);
    const bool is_trimmed = l->is_trimmed;
    remove_lease(e.id, out);
    is_trimmed ? read_again(*back, out) : publish(std::move(back));
  } else {
    remove_lease(e.id, out);
  }
  e.acked.give(done{}, out);
  if (e.failed) out.add(std::move(*e.failed), result<fail_receipt>(e.receipt));
}

void core::remove_lease(job_id id, answers& out) {
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
  if (!l.job->spec.key.empty()) ++l.queue->keys.at(l.line).cancelled;
}

}  // namespace sluice::jobs::detail
