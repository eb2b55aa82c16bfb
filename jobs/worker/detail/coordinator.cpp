#include "jobs/worker/detail/coordinator.hpp"

#include <algorithm>
#include <exception>

#include "sluice/future/spawn.hpp"

namespace sluice::jobs::detail {
namespace {

constexpr std::size_t acks_in_one_call = 256;
constexpr std::size_t ack_bytes_in_one_call = 4 << 20;  // of results; a server bounds what it reads
constexpr milliseconds lease_shortest{100};
constexpr milliseconds telling_least{1000};  // for what is left at the end of a shutdown

milliseconds in_milliseconds(time_point::duration d) {
  return std::chrono::duration_cast<milliseconds>(d);
}

// Of a source's answer: a fault that may pass, after which the same call can be made again.
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

error no_answer() {
  return {error_code::unavailable, "the source gave no answer"};
}

// Keeps the assignment until the handler has ended, also when nobody else does any more.
task<job_outcome> run_coroutine_of(job_handler& handler, std::shared_ptr<assignment> a) {
  task<job_outcome> running = handler.coroutine(a->context);
  job_outcome outcome = co_await std::move(running);
  co_return outcome;
}

// Hands what a future ends with to the inbox. `make` turns the result into a message. The future
// that this makes is dropped: what it stands for has no result.
template <class T, class Make>
void pass_on(future<T> answer, std::shared_ptr<inbox> to, T if_broken, Make make) {
  auto passed = std::move(answer).handle([to = std::move(to), if_broken = std::move(if_broken),
                               make = std::move(make)](settled<T> s) mutable {
    to->put(make(s ? std::move(s).value() : std::move(if_broken)));
  });
  (void)passed;
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
  while (!over()) {
    for (message& m : inbox_->take(next_wake())) {
      std::visit([this](auto& held) { take(std::move(held)); }, m);
    }
    const time_point t = now();
    while (!due_.empty() && due_.begin()->first <= t) look_at(find(due_.begin()->second));
    if (t >= final_at_) end_unsettled();
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

bool coordinator::over() const {
  if (!closed_) return false;
  if (gave_up_) return true;
  const auto is_open = [](const auto& known) { return !known.second->settled; };
  return !leasing_ && std::ranges::none_of(all_, is_open);
}

// The time for telling is over: what the source has not heard, it learns when the leases end.
void coordinator::end_unsettled() {
  gave_up_ = true;
  std::vector<assignment_ptr> left;
  for (const auto& [which, a] : all_) {
    if (!a->settled) left.push_back(a);
  }
  for (const auto& a : left) lose(*a, "shut down before the source could be told");
}

deadline coordinator::next_wake() const {
  time_point earliest = final_at_;
  if (!due_.empty()) earliest = std::min(earliest, due_.begin()->first);
  if (wants_lease()) earliest = std::min(earliest, lease_at_);
  return earliest == never ? deadline::never() : deadline::at(earliest, time_.timers());
}

coordinator::assignment_ptr coordinator::find(ticket which) const {
  const auto found = all_.find(which);
  return found == all_.end() ? nullptr : found->second;
}

void coordinator::tell_event(event_kind kind, const assignment* about, std::string text) const {
  if (!options_.on_event) return;
  worker_event e{.kind = kind, .it = {}, .attempt = 0, .took = {}, .message = std::move(text)};
  if (about != nullptr) {
    e.it = about->context.shared();
    e.attempt = about->context.attempt();
    e.took = about->took;
  }
  options_.on_event(e);
}

// ---- leasing

// Jobs that ended but are not told yet hold their lease: bounded, too.
std::size_t coordinator::room() const {
  const std::size_t most = options_.concurrency + options_.prefetch;
  const std::size_t taken = running_ + waiting_.size();
  const std::size_t unsettled_most = std::max<std::size_t>(256, 4 * options_.concurrency);
  if (settling_ >= unsettled_most || taken >= most) return 0;
  return std::min(most - taken, unsettled_most - settling_);
}

// While half of what may be kept ready is there, few calls for many jobs beat many for few.
bool coordinator::wants_lease() const {
  return !closed_ && !leasing_ && waiting_.size() <= options_.prefetch / 2 && room() > 0;
}

void coordinator::lease_if_needed() {
  const std::size_t wanted = room();
  if (!wants_lease() || now() < lease_at_) return;
  leasing_ = true;
  counts_.lease_calls.fetch_add(1, relaxed);
  lease_request what{.queues = options_.queues,
                     .pick = options_.pick,
                     .max = wanted,
                     .worker = options_.name,
                     .lease_for = options_.lease_for};
  wait_limits within(deadline::after(options_.poll_for, time_.timers()), stop_leasing_.get_token());
  using answer = result<std::vector<leased_job>>;
  pass_on<answer>(source_.lease(std::move(what), std::move(within)), inbox_, no_answer(),
                  [](answer jobs) { return leases_came{std::move(jobs)}; });
}

void coordinator::take(leases_came m) {
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
  if (std::exchange(unavailable_, false)) tell_event(event_kind::source_back, nullptr);
}

void coordinator::source_failed(const error& why) {
  if (!delays_) delays_.emplace(backoff_);
  lease_at_ = now() + delays_->next();
  if (!std::exchange(unavailable_, true)) {
    tell_event(event_kind::source_unavailable, nullptr, why.message);
  }
}

void coordinator::adopt(leased_job leased) {
  const unix_time until = leased.until;
  const auto a = std::make_shared<assignment>(++last_ticket_, std::move(leased));
  a->context.notes().tell([to = inbox_, which = a->which] { to->put(noted{which}); });
  all_.emplace(a->which, a);
  lease_lasts(*a, until, now());
  if (closed_) {
    a->at = assignment::phase::ended;
    tell(*a, give_back{});
  } else {
    waiting_.push_back(a->which);
    reschedule(*a);
  }
}

void coordinator::take(command c) {
  if (!closed_) {
    closed_ = true;
    stop_leasing_.request_stop();
    for (const ticket which : std::exchange(waiting_, {})) {
      const assignment_ptr a = find(which);
      a->at = assignment::phase::ended;
      tell(*a, give_back{});
    }
  }
  if (c == command::close || final_at_ != never) return;
  // Once for the handlers to end, once for the source to be told.
  final_at_ = now() + 2 * options_.stop_grace + telling_least;
  for (const auto& [which, a] : all_) {
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
  tell_event(event_kind::started, a.get());

  if (handler->coroutine) {
    a->coroutine =
        spawn(pool_, run_coroutine_of(*handler, a))
            .handle([to = inbox_, which = a->which](settled<job_outcome> s) {
              to->put(handler_ended{
                  which, s ? std::move(s).value() : job_outcome{.failed = failure_of(s.error())}});
            });
    return;
  }
  const status taken = pool_.try_submit([to = inbox_, a, handler] {
    job_outcome outcome;
    try {
      outcome = handler->plain(a->context);
    } catch (...) {
      outcome = {.failed = failure_of(std::current_exception())};
    }
    to->put(handler_ended{a->which, std::move(outcome)});
  });
  check(static_cast<bool>(taken), "sluice::jobs::worker", "room in the pool for every free slot");
}

void coordinator::refuse_kind(const assignment_ptr& a) {
  a->at = assignment::phase::ended;
  if (options_.on_unknown_kind == worker_options::refusal::give_back) {
    return tell(*a, give_back{.delay = options_.give_back_delay});
  }
  tell(*a, failure{.type = "unknown_kind",
                   .message = "worker " + options_.name + " has no handler for jobs of kind \"" +
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
  std::erase(waiting_, a.which);
  a.at = assignment::phase::ended;
}

void coordinator::take(handler_ended m) {
  --running_;
  counts_.running.fetch_sub(1, relaxed);
  const assignment_ptr a = find(m.which);
  a->at = assignment::phase::ended;
  a->coroutine = {};
  a->limit_at = a->give_up_at = never;
  if (!a->settled && !a->word) {
    a->took = in_milliseconds(now() - a->began);
    tell(*a, word_for(*a, std::move(m.outcome)));
  }
  reschedule(*a);
  forget_if_over(*a);
}

last_word coordinator::word_for(const assignment& a, job_outcome outcome) const {
  if (!outcome.failed) {
    if (outcome.result && outcome.result->data.size() > limits::result_bytes_max) {
      return failure{.type = "result_too_large",
                     .message = "the result has " + std::to_string(outcome.result->data.size()) +
                                " bytes, at most " + std::to_string(limits::result_bytes_max) +
                                " are kept",
                     .for_good = true};
    }
    return say_ack{std::move(outcome.result)};
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

failure coordinator::stopped_failure(const assignment& a, const failure* said) const {
  failure told{.type = std::string(to_string(a.context.why_stopped()))};
  if (a.context.why_stopped() == stop_reason::time_limit) {
    told.message = "took longer than its time limit of " +
                   std::to_string(a.context.whole().spec.time_limit.count()) + " ms";
  } else {
    told.message = "was called off while it ran";
  }
  if (said == nullptr) {
    told.message += ", and did not end when asked to";
  } else {
    if (!said->message.empty()) told.message += ": " + said->message;
    told.backtrace = said->backtrace;
  }
  return told;
}

// ---- time

// `from`: the source has counted from some time after it. An answer may take long to come, and a
// lease must not be thought to last longer than it does.
void coordinator::lease_lasts(assignment& a, unix_time until, time_point from) {
  const milliseconds said = a.context.whole().spec.lease_for;
  // A server's clock may not be ours: where the length of a lease is known, `until` is not needed.
  a.lease_for = options_.lease_for > milliseconds(0) ? options_.lease_for : said;
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
  if (a.due != never) due_.erase({a.due, a.which});
  a.due = due;
  if (due != never) due_.emplace(due, a.which);
}

void coordinator::look_at(const assignment_ptr& a) {
  const time_point t = now();
  if (t >= a->lease_ends) return lose(*a, "its lease ran out and could not be extended");
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
  pass_on<answer>(source_.extend(a.context.lease(), options_.lease_for), inbox_, no_answer(),
                  [which = a.which](answer how) {
                    return lease_extended{which, std::move(how)};
                  });
}

void coordinator::take(lease_extended m) {
  const assignment_ptr a = find(m.which);
  if (a == nullptr || a->settled) return;
  if (!m.how) {
    if (!may_pass(m.how.error().code)) return lose(*a, m.how.error().message);
    // Some more tries before it runs out.
    a->beat_at = now() + std::max<time_point::duration>(a->lease_for / 12, lease_shortest);
    return reschedule(*a);
  }
  lease_lasts(*a, m.how->until, a->beat_sent);
  if (m.how->cancelled) {
    if (a->runs()) {
      ask_to_stop(*a, stop_reason::cancelled);
    } else if (a->at == assignment::phase::waiting) {
      drop_waiting(*a);
      tell(*a, failure{.type = "cancelled", .message = "was called off before it began"});
    }
  }
  reschedule(*a);
}

void coordinator::give_up(const assignment_ptr& a) {
  a->give_up_at = never;
  if (a->settled || a->word) return;
  counts_.abandoned.fetch_add(1, relaxed);
  a->took = in_milliseconds(now() - a->began);
  tell_event(event_kind::abandoned, a.get(), "the handler was asked to stop and still runs");
  if (a->context.why_stopped() == stop_reason::shutdown) return tell(*a, give_back{});
  tell(*a, stopped_failure(*a, nullptr));
}

void coordinator::lose(assignment& a, std::string why) {
  const auto keep = find(a.which);
  drop_waiting(a);
  counts_.lost.fetch_add(1, relaxed);
  if (a.runs()) a.took = in_milliseconds(now() - a.began);
  settle(a);
  if (a.runs()) ask_to_stop(a, stop_reason::lease_lost);
  tell_event(event_kind::lost, &a, std::move(why));
}

// ---- what handlers say while they run

void coordinator::take(noted m) {
  const assignment_ptr a = find(m.which);
  // While some are on their way, these go when they have arrived.
  if (a == nullptr || a->settled || a->notes_out > 0) return;
  if (a->notes_sent == time_point::min() || now() >= a->notes_sent + options_.report_every) {
    send_notes(*a);
  } else {
    a->notes_at = a->notes_sent + options_.report_every;
  }
  reschedule(*a);
}

// Whether the source takes it makes no difference to the job: an attempt that is over hears of it
// by its heartbeat.
void coordinator::send_notes(assignment& a) {
  auto said = a.context.notes().take();
  a.notes_at = never;
  a.notes_sent = now();
  const auto done_with = [which = a.which](const void_result&) { return notes_told{which}; };
  if (said.how_far) {
    ++a.notes_out;
    pass_on<void_result>(source_.report(a.context.lease(), *std::move(said.how_far)), inbox_,
                         no_answer(), done_with);
  }
  if (!said.lines.empty()) {
    ++a.notes_out;
    pass_on<void_result>(source_.log(a.context.lease(), std::move(said.lines)), inbox_, no_answer(),
                         done_with);
  }
}

void coordinator::take(notes_told m) {
  const assignment_ptr a = find(m.which);
  if (a == nullptr || --a->notes_out > 0 || a->settled) return;
  const bool has_more = !a->context.notes().is_empty();
  if (a->word_waits && has_more) {
    send_notes(*a);
  } else if (a->word_waits) {
    a->word_waits = false;
    send(*a);
  } else if (has_more) {
    a->notes_at = a->notes_sent + options_.report_every;
  }
  reschedule(*a);
}

// ---- telling

void coordinator::tell(assignment& a, last_word word) {
  a.word = std::move(word);
  ++settling_;
  if (a.notes_out == 0 && !a.context.notes().is_empty()) send_notes(a);
  a.word_waits = a.notes_out > 0;
  if (!a.word_waits) send(a);
  reschedule(a);
}

void coordinator::send(assignment& a) {
  if (std::holds_alternative<say_ack>(*a.word)) return acks_.push_back(a.which);
  if (const auto* failed = std::get_if<failure>(&*a.word)) {
    using answer = result<fail_receipt>;
    pass_on<answer>(source_.fail(a.context.lease(), *failed), inbox_, no_answer(),
                    [which = a.which](answer how) {
                      return detail::told{
                          which, how ? void_result(done{}) : void_result(std::move(how.error()))};
                    });
    return;
  }
  pass_on<void_result>(source_.release(a.context.lease(), std::get<give_back>(*a.word)), inbox_,
                       no_answer(), [which = a.which](void_result how) {
                         return detail::told{which, std::move(how)};
                       });
}

// One call at a time: what becomes due while it is under way goes with the next.
void coordinator::send_acks() {
  if (acking_ || acks_.empty()) return;
  std::vector<ticket> which;
  std::vector<ack_item> items;
  std::size_t taken = 0;
  for (std::size_t bytes = 0; taken < acks_.size() && items.size() < acks_in_one_call; ++taken) {
    const assignment_ptr a = find(acks_[taken]);
    if (a == nullptr || a->settled) continue;  // its lease was lost meanwhile
    const auto& result = std::get<say_ack>(*a->word).result;
    bytes += result ? result->data.size() : 0;
    if (!items.empty() && bytes > ack_bytes_in_one_call) break;
    which.push_back(a->which);
    items.push_back({a->context.lease(), result});
  }
  acks_.erase(acks_.begin(), acks_.begin() + static_cast<std::ptrdiff_t>(taken));
  if (items.empty()) return;
  acking_ = true;
  counts_.ack_calls.fetch_add(1, relaxed);
  using answer = std::vector<void_result>;
  answer none(items.size(), no_answer());
  pass_on<answer>(source_.ack_many(std::move(items)), inbox_, std::move(none),
                  [which = std::move(which)](answer how) mutable {
                    return acks_told{std::move(which), std::move(how)};
                  });
}

void coordinator::take(told m) {
  if (const assignment_ptr a = find(m.which); a != nullptr && !a->settled) heard(*a, m.how);
}

void coordinator::take(acks_told m) {
  acking_ = false;
  check(m.how.size() == m.which.size(), "sluice::jobs::work_source", "an answer for every ack");
  for (std::size_t i = 0; i < m.which.size(); ++i) take(told{m.which[i], std::move(m.how[i])});
}

void coordinator::heard(assignment& a, const void_result& how) {
  const auto keep = find(a.which);
  if (how) {
    const last_word word = std::move(*a.word);
    settle(a);
    if (std::holds_alternative<say_ack>(word)) {
      counts_.succeeded.fetch_add(1, relaxed);
      tell_event(event_kind::succeeded, &a);
    } else if (const auto* failed = std::get_if<failure>(&word)) {
      counts_.failed.fetch_add(1, relaxed);
      tell_event(event_kind::failed, &a, failed->type + ": " + failed->message);
    } else {
      counts_.given_back.fetch_add(1, relaxed);
      tell_event(event_kind::given_back, &a);
    }
    return;
  }
  const error& why = how.error();
  if (may_pass(why.code)) {
    if (!a.delays) a.delays.emplace(backoff_);
    a.retry_at = now() + a.delays->next();
    return reschedule(a);
  }
  if (is_refusal(why.code) && std::holds_alternative<say_ack>(*a.word)) {
    // It would be refused again, and so would that of another attempt.
    a.word = failure{.type = "bad_result", .message = why.message, .for_good = true};
    return send(a);
  }
  lose(a, why.message);
}

void coordinator::settle(assignment& a) {
  if (std::exchange(a.settled, true)) return;
  if (a.word) --settling_;
  a.word.reset();
  reschedule(a);
  forget_if_over(a);
}

void coordinator::forget_if_over(assignment& a) {
  if (a.settled && a.at == assignment::phase::ended) all_.erase(a.which);
}

}  // namespace sluice::jobs::detail
