#include "jobs/worker/detail/coordinator.hpp"

#include <algorithm>
#include <exception>

#include "sluice/future/spawn.hpp"

namespace sluice::jobs::detail {
namespace {

constexpr std::size_t acks_in_one_call = 256;
constexpr std::size_t ack_bytes_in_one_call = 4 << 20;  // of results; a server limits its body size
constexpr milliseconds lease_shortest{100};
constexpr milliseconds reporting_least{1000};  // time for the last reports at shutdown

milliseconds in_milliseconds(time_point::duration d) {
  return std::chrono::duration_cast<milliseconds>(d);
}

// Returns whether a reply is a transient fault, after which the same call can be repeated.
bool may_pass(error_code code) {
  switch (code) {
    case error_code::unavailable:
    case error_code::overloaded:
    case error_code::shutting_down:
    case error_code::disk_full:
    case error_code::io_error:
    case error_code::locked:
    case error_code::timed_out:
      return true;
    default:
      return false;
  }
}

bool is_refusal(error_code code) {
  return code == error_code::invalid || code == error_code::too_large;
}

error no_reply() {
  return {error_code::unavailable, "the source did not reply"};
}

// Keeps the assignment alive until the handler has ended.
task<job_outcome> run_coroutine_of(job_handler& handler, std::shared_ptr<assignment> a) {
  task<job_outcome> running = handler.coroutine(a->context);
  job_outcome outcome = co_await std::move(running);
  co_return outcome;
}

// Sends the future's result to the inbox as the message that `make` returns. Discards the future of
// the continuation: it has no result.
template <class T, class Make>
void forward(future<T> reply, std::shared_ptr<inbox> target, T if_broken, Make make) {
  auto forwarded =
      std::move(reply).handle([target = std::move(target), if_broken = std::move(if_broken),
                               make = std::move(make)](settled<T> s) mutable {
        target->put(make(s ? std::move(s).value() : std::move(if_broken)));
      });
  (void)forwarded;
}

}  // namespace

job_handler* registry::find(std::string_view kind) {
  if (const auto found = by_kind.find(kind); found != by_kind.end()) return &found->second;
  return others ? &*others : nullptr;
}

coordinator::coordinator(work_source& from, const worker_options& o, registry& handlers,
                         thread_pool& pool, counters& counts, std::shared_ptr<inbox> messages)
    : source_(from),
      options_(o),
      handlers_(handlers),
      pool_(pool),
      counts_(counts),
      time_(*o.time),
      inbox_(std::move(messages)) {
  backoff_.first_delay = options_.backoff_first;
  backoff_.delay_max = std::max(options_.backoff_first, options_.backoff_longest);
  backoff_.jitter = jitter::equal;
  if (options_.seed != 0) backoff_.seed = options_.seed;
}

void coordinator::run() {
  while (!is_finished()) {
    for (message& m : inbox_->take(next_wake())) {
      std::visit([this](auto& content) { take(std::move(content)); }, m);
    }
    const time_point t = now();
    while (!due_.empty() && due_.begin()->first <= t) handle_due(find(due_.begin()->second));
    if (t >= final_at_) lose_unsettled();
    start_waiting();
    send_acks();
    lease_if_needed();
    counts_.waiting.store(waiting_.size(), relaxed);
    counts_.unsettled.store(settling_, relaxed);
  }
}

void coordinator::await_handlers() {
  while (running_ > 0) {
    for (message& m : inbox_->take({})) {
      if (std::holds_alternative<handler_ended>(m)) take(std::get<handler_ended>(std::move(m)));
    }
  }
}

bool coordinator::is_finished() const {
  if (!closed_) return false;
  if (reporting_ended_) return true;
  const auto is_open = [](const auto& entry) { return !entry.second->settled; };
  return !leasing_ && std::ranges::none_of(all_, is_open);
}

// Ends reporting at shutdown: the source recovers the remaining jobs when their leases expire.
void coordinator::lose_unsettled() {
  reporting_ended_ = true;
  std::vector<assignment_ptr> left;
  for (const auto& [id, a] : all_) {
    if (!a->settled) left.push_back(a);
  }
  for (const auto& a : left) lose(*a, "the worker stopped before it could report the job's end");
}

deadline coordinator::next_wake() const {
  time_point earliest = final_at_;
  if (!due_.empty()) earliest = std::min(earliest, due_.begin()->first);
  if (wants_lease()) earliest = std::min(earliest, lease_at_);
  return earliest == never ? deadline::never() : deadline::at(earliest, time_.timers());
}

coordinator::assignment_ptr coordinator::find(assignment_id id) const {
  const auto found = all_.find(id);
  return found == all_.end() ? nullptr : found->second;
}

void coordinator::emit(event_kind kind, const assignment* a, std::string text) const {
  if (!options_.on_event) return;
  worker_event e{.kind = kind, .job = {}, .attempt = 0, .took = {}, .message = std::move(text)};
  if (a != nullptr) {
    e.job = a->context.shared();
    e.attempt = a->context.attempt();
    e.took = a->took;
  }
  options_.on_event(e);
}

// ---- leasing

// Ended jobs whose end is not confirmed keep their lease, so their number is bounded, too.
std::size_t coordinator::free_slots() const {
  const std::size_t most = options_.concurrency + options_.prefetch;
  const std::size_t taken = running_ + waiting_.size();
  const std::size_t unsettled_most = std::max<std::size_t>(256, 4 * options_.concurrency);
  if (settling_ >= unsettled_most || taken >= most) return 0;
  return std::min(most - taken, unsettled_most - settling_);
}

// Waits until half of the prefetched jobs are used: few calls for many jobs cost less than many for
// few.
bool coordinator::wants_lease() const {
  return !closed_ && !leasing_ && waiting_.size() <= options_.prefetch / 2 && free_slots() > 0;
}

void coordinator::lease_if_needed() {
  const std::size_t wanted = free_slots();
  if (!wants_lease() || now() < lease_at_) return;
  leasing_ = true;
  counts_.lease_calls.fetch_add(1, relaxed);
  lease_request request{.queues = options_.queues,
                        .pick = options_.pick,
                        .max = wanted,
                        .worker = options_.name,
                        .lease_for = options_.lease_for};
  wait_limits within(deadline::after(options_.poll_for, time_.timers()), stop_leasing_.get_token());
  using answer = result<std::vector<leased_job>>;
  forward<answer>(source_.lease(std::move(request), std::move(within)), inbox_, no_reply(),
                  [](answer jobs) { return lease_reply{std::move(jobs)}; });
}

void coordinator::take(lease_reply m) {
  leasing_ = false;
  if (m.jobs) {
    source_answered();
    for (leased_job& leased : *m.jobs) adopt(std::move(leased));
    return;
  }
  const error_code code = m.jobs.error().code;
  if (code == error_code::timed_out) return source_answered();
  if (code != error_code::stopped) source_failed(m.jobs.error());
}

void coordinator::source_answered() {
  delays_.reset();
  lease_at_ = {};
  if (std::exchange(unavailable_, false)) emit(event_kind::source_back, nullptr);
}

void coordinator::source_failed(const error& why) {
  if (!delays_) delays_.emplace(backoff_);
  lease_at_ = now() + delays_->next();
  if (!std::exchange(unavailable_, true)) {
    emit(event_kind::source_unavailable, nullptr, why.message);
  }
}

void coordinator::adopt(leased_job leased) {
  const unix_time until = leased.until;
  const auto a = std::make_shared<assignment>(++last_id_, std::move(leased));
  a->context.notes().on_available([target = inbox_, id = a->id] { target->put(notes_added{id}); });
  all_.emplace(a->id, a);
  set_lease_end(*a, until, now());
  if (closed_) {
    a->at = assignment::phase::ended;
    report_end(*a, give_back{});
  } else {
    waiting_.push_back(a->id);
    reschedule(*a);
  }
}

void coordinator::take(command c) {
  if (!closed_) {
    closed_ = true;
    stop_leasing_.request_stop();
    for (const assignment_id id : std::exchange(waiting_, {})) {
      const assignment_ptr a = find(id);
      a->at = assignment::phase::ended;
      report_end(*a, give_back{});
    }
  }
  if (c == command::close || final_at_ != never) return;
  // One grace period for the handlers to end, one to report their ends.
  final_at_ = now() + 2 * options_.stop_grace + reporting_least;
  for (const auto& [id, a] : all_) {
    if (a->runs() && !a->settled) ask_to_stop(*a, stop_reason::shutdown);
  }
}

// ---- running

void coordinator::start_waiting() {
  while (!waiting_.empty() && running_ < options_.concurrency) {
    const assignment_ptr a = find(waiting_.front());
    waiting_.pop_front();
    start(a);
  }
}

void coordinator::start(const assignment_ptr& a) {
  const job_spec& spec = a->context.whole().spec;
  job_handler* const handler = handlers_.find(spec.kind);
  a->began = now();
  if (handler == nullptr) return refuse_kind(a);

  a->at = assignment::phase::running;
  ++running_;
  counts_.running.fetch_add(1, relaxed);
  if (spec.time_limit > milliseconds(0)) a->limit_at = a->began + spec.time_limit;
  reschedule(*a);
  emit(event_kind::started, a.get());

  if (handler->coroutine) {
    a->coroutine =
        spawn(pool_, run_coroutine_of(*handler, a))
            .handle([target = inbox_, id = a->id](settled<job_outcome> s) {
              target->put(handler_ended{
                  id, s ? std::move(s).value() : job_outcome{.failed = failure_of(s.error())}});
            });
    return;
  }
  const status taken = pool_.try_submit([target = inbox_, a, handler] {
    job_outcome outcome;
    try {
      outcome = handler->plain(a->context);
    } catch (...) {
      outcome = {.failed = failure_of(std::current_exception())};
    }
    target->put(handler_ended{a->id, std::move(outcome)});
  });
  check(static_cast<bool>(taken), "sluice::jobs::worker", "pool capacity for every free slot");
}

void coordinator::refuse_kind(const assignment_ptr& a) {
  a->at = assignment::phase::ended;
  if (options_.on_unknown_kind == worker_options::refusal::give_back) {
    return report_end(*a, give_back{.delay = options_.give_back_delay});
  }
  report_end(*a,
             failure{.type = "unknown_kind",
                     .message = "worker " + options_.name + " has no handler for kind \"" +
                                a->context.kind() + "\"",
                     .for_good = options_.on_unknown_kind == worker_options::refusal::for_good});
}

void coordinator::ask_to_stop(assignment& a, stop_reason why) {
  if (a.context.stop_requested()) return;
  a.context.request_stop(why);
  if (a.coroutine.valid()) a.coroutine.cancel();
  if (why != stop_reason::lease_lost) a.give_up_at = now() + options_.stop_grace;
  reschedule(a);
}

void coordinator::drop_waiting(assignment& a) {
  if (a.at != assignment::phase::waiting) return;
  std::erase(waiting_, a.id);
  a.at = assignment::phase::ended;
}

void coordinator::take(handler_ended m) {
  --running_;
  counts_.running.fetch_sub(1, relaxed);
  const assignment_ptr a = find(m.id);
  a->at = assignment::phase::ended;
  a->coroutine = {};
  a->limit_at = a->give_up_at = never;
  if (!a->settled && !a->report) {
    a->took = in_milliseconds(now() - a->began);
    report_end(*a, report_for(*a, std::move(m.outcome)));
  }
  reschedule(*a);
  erase_if_finished(*a);
}

end_report coordinator::report_for(const assignment& a, job_outcome outcome) const {
  if (!outcome.failed) {
    if (outcome.result && outcome.result->data.size() > limits::result_bytes_max) {
      return failure{.type = "result_too_large",
                     .message = "the result has " + std::to_string(outcome.result->data.size()) +
                                " bytes, the limit is " + std::to_string(limits::result_bytes_max),
                     .for_good = true};
    }
    return ack_report{std::move(outcome.result)};
  }
  failure& failed = *outcome.failed;
  const stop_reason why = a.context.why_stopped();
  if (why == stop_reason::shutdown) return give_back{};
  if (why != stop_reason::none) return stopped_failure(a, &failed);
  if (outcome.bad_arguments) {
    if (options_.on_bad_arguments == worker_options::refusal::give_back) {
      return give_back{.delay = options_.give_back_delay};
    }
    failed.for_good = options_.on_bad_arguments == worker_options::refusal::for_good;
  }
  return std::move(failed);
}

failure coordinator::stopped_failure(const assignment& a, const failure* from_handler) const {
  failure stopped{.type = std::string(to_string(a.context.why_stopped()))};
  if (a.context.why_stopped() == stop_reason::time_limit) {
    stopped.message = "exceeded its time limit of " +
                      std::to_string(a.context.whole().spec.time_limit.count()) + " ms";
  } else {
    stopped.message = "cancelled while it ran";
  }
  if (from_handler == nullptr) {
    stopped.message += ", and did not stop when requested";
  } else {
    if (!from_handler->message.empty()) stopped.message += ": " + from_handler->message;
    stopped.backtrace = from_handler->backtrace;
  }
  return stopped;
}

// ---- time

// `from`: for an extension the time of the request, so that a late reply does not make the lease
// seem longer than it is; for a new lease the arrival of the reply.
void coordinator::set_lease_end(assignment& a, unix_time until, time_point from) {
  const milliseconds of_job = a.context.whole().spec.lease_for;
  // The server's clock may differ: `until` is used only if the duration is unknown.
  a.lease_for = options_.lease_for > milliseconds(0) ? options_.lease_for : of_job;
  if (a.lease_for == milliseconds(0)) {
    a.lease_for = std::max(until - time_.now(), lease_shortest);
    from = now();
  }
  a.lease_ends = from + a.lease_for;
  a.beat_at = from + a.lease_for / 3;
}

void coordinator::reschedule(assignment& a) {
  time_point due = never;
  if (!a.settled) {
    due = std::min({a.beat_at, a.lease_ends, a.retry_at, a.notes_at});
    if (a.runs()) due = std::min({due, a.limit_at, a.give_up_at});
  }
  if (due == a.due) return;
  if (a.due != never) due_.erase({a.due, a.id});
  a.due = due;
  if (due != never) due_.emplace(due, a.id);
}

void coordinator::handle_due(const assignment_ptr& a) {
  const time_point t = now();
  if (t >= a->lease_ends) return lose(*a, "the lease expired and could not be extended");
  if (t >= a->limit_at) {
    a->limit_at = never;
    ask_to_stop(*a, stop_reason::time_limit);
  }
  if (t >= a->give_up_at) give_up(a);
  if (t >= a->retry_at) {
    a->retry_at = never;
    send(*a);
  }
  if (t >= a->notes_at) send_notes(*a);
  if (t >= a->beat_at) extend(*a);
  reschedule(*a);
}

void coordinator::extend(assignment& a) {
  a.beat_at = never;
  a.beat_sent = now();
  counts_.extend_calls.fetch_add(1, relaxed);
  using answer = result<extension>;
  forward<answer>(source_.extend(a.context.lease(), options_.lease_for), inbox_, no_reply(),
                  [id = a.id](answer reply) {
                    return extend_reply{id, std::move(reply)};
                  });
}

void coordinator::take(extend_reply m) {
  const assignment_ptr a = find(m.id);
  if (a == nullptr || a->settled) return;
  if (!m.reply) {
    if (!may_pass(m.reply.error().code)) return lose(*a, m.reply.error().message);
    // Retries several times before the lease expires.
    a->beat_at = now() + std::max<time_point::duration>(a->lease_for / 12, lease_shortest);
    return reschedule(*a);
  }
  set_lease_end(*a, m.reply->until, a->beat_sent);
  if (m.reply->cancelled) {
    if (a->runs()) {
      ask_to_stop(*a, stop_reason::cancelled);
    } else if (a->at == assignment::phase::waiting) {
      drop_waiting(*a);
      report_end(*a, failure{.type = "cancelled", .message = "cancelled before it started"});
    }
  }
  reschedule(*a);
}

void coordinator::give_up(const assignment_ptr& a) {
  a->give_up_at = never;
  if (a->settled || a->report) return;
  counts_.abandoned.fetch_add(1, relaxed);
  a->took = in_milliseconds(now() - a->began);
  emit(event_kind::abandoned, a.get(), "the handler has not stopped within stop_grace");
  if (a->context.why_stopped() == stop_reason::shutdown) return report_end(*a, give_back{});
  report_end(*a, stopped_failure(*a, nullptr));
}

void coordinator::lose(assignment& a, std::string why) {
  const auto keep = find(a.id);
  drop_waiting(a);
  counts_.lost.fetch_add(1, relaxed);
  if (a.runs()) a.took = in_milliseconds(now() - a.began);
  settle(a);
  if (a.runs()) ask_to_stop(a, stop_reason::lease_lost);
  emit(event_kind::lost, &a, std::move(why));
}

// ---- progress and log lines

void coordinator::take(notes_added m) {
  const assignment_ptr a = find(m.id);
  // While a call is in progress, its reply triggers the next one.
  if (a == nullptr || a->settled || a->notes_out > 0) return;
  if (a->notes_sent == time_point::min() || now() >= a->notes_sent + options_.report_every) {
    send_notes(*a);
  } else {
    a->notes_at = a->notes_sent + options_.report_every;
  }
  reschedule(*a);
}

// The replies do not affect the job: if the attempt has ended, its heartbeat detects that.
void coordinator::send_notes(assignment& a) {
  auto notes = a.context.notes().take();
  a.notes_at = never;
  a.notes_sent = now();
  const auto make_reply = [id = a.id](const void_result&) { return notes_reply{id}; };
  if (notes.progress) {
    ++a.notes_out;
    forward<void_result>(source_.report(a.context.lease(), *std::move(notes.progress)), inbox_,
                         no_reply(), make_reply);
  }
  if (!notes.lines.empty()) {
    ++a.notes_out;
    forward<void_result>(source_.log(a.context.lease(), std::move(notes.lines)), inbox_, no_reply(),
                         make_reply);
  }
}

void coordinator::take(notes_reply m) {
  const assignment_ptr a = find(m.id);
  if (a == nullptr || --a->notes_out > 0 || a->settled) return;
  const bool has_more = !a->context.notes().is_empty();
  if (a->report_waits_for_notes && has_more) {
    send_notes(*a);
  } else if (a->report_waits_for_notes) {
    a->report_waits_for_notes = false;
    send(*a);
  } else if (has_more) {
    a->notes_at = a->notes_sent + options_.report_every;
  }
  reschedule(*a);
}

// ---- reporting

void coordinator::report_end(assignment& a, end_report report) {
  a.report = std::move(report);
  ++settling_;
  if (a.notes_out == 0 && !a.context.notes().is_empty()) send_notes(a);
  a.report_waits_for_notes = a.notes_out > 0;
  if (!a.report_waits_for_notes) send(a);
  reschedule(a);
}

void coordinator::send(assignment& a) {
  if (std::holds_alternative<ack_report>(*a.report)) return acks_.push_back(a.id);
  if (const auto* failed = std::get_if<failure>(&*a.report)) {
    using answer = result<fail_receipt>;
    forward<answer>(
        source_.fail(a.context.lease(), *failed), inbox_, no_reply(), [id = a.id](answer reply) {
          return end_reply{id, reply ? void_result(done{}) : void_result(std::move(reply.error()))};
        });
    return;
  }
  forward<void_result>(source_.release(a.context.lease(), std::get<give_back>(*a.report)), inbox_,
                       no_reply(), [id = a.id](void_result reply) {
                         return end_reply{id, std::move(reply)};
                       });
}

// One call at a time: acks that become due while it is in progress are sent in the next call.
void coordinator::send_acks() {
  if (acking_ || acks_.empty()) return;
  std::vector<assignment_id> ids;
  std::vector<ack_item> items;
  std::size_t taken = 0;
  for (std::size_t bytes = 0; taken < acks_.size() && items.size() < acks_in_one_call; ++taken) {
    const assignment_ptr a = find(acks_[taken]);
    if (a == nullptr || a->settled) continue;  // its lease is lost
    const auto& result = std::get<ack_report>(*a->report).result;
    bytes += result ? result->data.size() : 0;
    if (!items.empty() && bytes > ack_bytes_in_one_call) break;
    ids.push_back(a->id);
    items.push_back({a->context.lease(), result});
  }
  acks_.erase(acks_.begin(), acks_.begin() + static_cast<std::ptrdiff_t>(taken));
  if (items.empty()) return;
  acking_ = true;
  counts_.ack_calls.fetch_add(1, relaxed);
  using answer = std::vector<void_result>;
  answer none(items.size(), no_reply());
  forward<answer>(source_.ack_many(std::move(items)), inbox_, std::move(none),
                  [ids = std::move(ids)](answer replies) mutable {
                    return ack_replies{std::move(ids), std::move(replies)};
                  });
}

void coordinator::take(end_reply m) {
  if (const assignment_ptr a = find(m.id); a != nullptr && !a->settled) take_reply(*a, m.reply);
}

void coordinator::take(ack_replies m) {
  acking_ = false;
  check(m.replies.size() == m.ids.size(), "sluice::jobs::work_source", "a result for every ack");
  for (std::size_t i = 0; i < m.ids.size(); ++i) {
    take(end_reply{m.ids[i], std::move(m.replies[i])});
  }
}

void coordinator::take_reply(assignment& a, const void_result& reply) {
  const auto keep = find(a.id);
  if (reply) {
    const end_report report = std::move(*a.report);
    settle(a);
    if (std::holds_alternative<ack_report>(report)) {
      counts_.succeeded.fetch_add(1, relaxed);
      emit(event_kind::succeeded, &a);
    } else if (const auto* failed = std::get_if<failure>(&report)) {
      counts_.failed.fetch_add(1, relaxed);
      emit(event_kind::failed, &a, failed->type + ": " + failed->message);
    } else {
      counts_.given_back.fetch_add(1, relaxed);
      emit(event_kind::given_back, &a);
    }
    return;
  }
  const error& why = reply.error();
  if (may_pass(why.code)) {
    if (!a.delays) a.delays.emplace(backoff_);
    a.retry_at = now() + a.delays->next();
    return reschedule(a);
  }
  if (is_refusal(why.code) && std::holds_alternative<ack_report>(*a.report)) {
    // The result would be rejected on every attempt.
    a.report = failure{.type = "bad_result", .message = why.message, .for_good = true};
    return send(a);
  }
  lose(a, why.message);
}

void coordinator::settle(assignment& a) {
  if (std::exchange(a.settled, true)) return;
  if (a.report) --settling_;
  a.report.reset();
  reschedule(a);
  erase_if_finished(a);
}

void coordinator::erase_if_finished(assignment& a) {
  if (a.settled && a.at == assignment::phase::ended) all_.erase(a.id);
}

}  // namespace sluice::jobs::detail
