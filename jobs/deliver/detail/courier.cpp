#include "jobs/deliver/detail/courier.hpp"

#include <algorithm>
#include <utility>

#include "sluice/base/random.hpp"

namespace sluice::jobs::detail {
namespace {

constexpr std::size_t receivers_max = 1000;     // of webhooks, with remembered failures
constexpr std::size_t reports_per_request = 4;  // unconfirmed reports per slot
constexpr milliseconds lease_margin{60'000};    // of a lease beyond the timeout of its request
constexpr milliseconds lease_retry{1'000};      // after a failed lease call
constexpr milliseconds report_delay_first{100};
constexpr milliseconds report_delay_longest{5'000};
constexpr milliseconds postpone_least{1'000};

// Returns whether an engine's reply is a transient fault, after which the same call can be
// repeated.
bool may_pass(error_code code) {
  switch (code) {
    case error_code::overloaded:
    case error_code::disk_full:
    case error_code::io_error:
    case error_code::locked:
    case error_code::timed_out:
      return true;
    default:
      return false;
  }
}

milliseconds lease_for(const target& t) {
  return std::min(t.settings.timeout + lease_margin, limits::duration_max);
}

// Adds a random time, so that jobs postponed together do not return together.
milliseconds spread(milliseconds delay) {
  const auto wide = static_cast<std::uint32_t>(std::min<std::int64_t>(delay.count(), 1 << 30));
  return delay + milliseconds(thread_random().below(wide));
}

}  // namespace

courier::courier(engine& jobs, deliverer_options o, loop& l, outgoing& sender)
    : engine_(jobs), options_(std::move(o)), time_(*options_.time), loop_(l), outgoing_(sender) {}

// Posts the result of an engine's future to the loop.
template <class T, class Then>
void courier::when_done(future<T> reply, Then then) {
  ++calls_;
  auto forward = [this, then = std::move(then)](sluice::settled<T> s) mutable {
    loop_.post([this, then = std::move(then), s = std::move(s)]() mutable {
      --calls_;
      if (s) {
        then(std::move(s).value());
      } else {
        then(T(error{error_code::shutting_down, "the engine did not reply"}));
      }
      set_if_finished();
    });
  };
  (void)std::move(reply).handle(std::move(forward));
}

// ---- targets

void courier::refresh() {
  if (closed_) return;
  std::vector<std::pair<std::string, delivery_target>> wanted;
  for (queue_info& q : engine_.queues()) {
    if (!q.options.deliver.url.empty()) {
      wanted.emplace_back(std::move(q.name), std::move(q.options.deliver));
    }
  }
  std::erase_if(wanted, [](const auto& w) { return w.first == webhook_queue; });
  wanted.emplace_back(std::string(webhook_queue),
                      delivery_target{.url = {},
                                      .concurrency = options_.webhook_concurrency,
                                      .timeout = options_.webhook_timeout});
  remove_missing(wanted);
  for (const auto& [queue, settings] : wanted) set_target(queue, settings);
  pump_all();
}

void courier::update(url_rules rules, std::vector<std::string> secrets) {
  options_.rules = std::move(rules);
  options_.secrets = std::move(secrets);
  refresh();
}

void courier::set_target(const std::string& queue, const delivery_target& settings) {
  target_ptr& t = targets_[queue];
  if (t == nullptr) {
    t = std::make_shared<target>();
    t->queue = queue;
    t->is_webhooks = queue == webhook_queue;
    counts_.with([&](counts& all) { all[queue].queue = queue; });
  }
  if (t->settings != settings) t->stop_leasing.request_stop();  // it uses the old settings
  t->settings = settings;
  t->is_removed = false;
  if (t->is_webhooks) return;
  const auto url = options_.rules.allowed(settings.url);
  if (!url && t->why_not != url.error().message) {
    emit({.kind = delivery_event::event_kind::not_allowed,
          .queue = queue,
          .receiver = {},
          .job = 0,
          .message = url.error().message});
  }
  t->why_not = url ? std::string() : url.error().message;
  if (!url) t->stop_leasing.request_stop();
  if (url && (t->breaker == nullptr || t->breaker->name() != url->origin())) {
    t->breaker = make_breaker(t.get(), queue, url->origin());
    t->is_probing = false;
  }
  const bool is_paused = !url || t->breaker->state() != circuit_state::closed;
  counts_.with([&](counts& all) { all[queue].is_paused = is_paused; });
}

void courier::remove_missing(const std::vector<std::pair<std::string, delivery_target>>& wanted) {
  std::vector<target_ptr> gone;
  for (const auto& [queue, t] : targets_) {
    const bool stays =
        std::ranges::any_of(wanted, [&](const auto& w) { return w.first == t->queue; });
    if (!stays) gone.push_back(t);
  }
  for (const target_ptr& t : gone) {
    t->is_removed = true;
    t->stop_leasing.request_stop();
    forget_if_idle(*t);
  }
}

void courier::forget_if_idle(target& t) {
  if (!t.is_removed || t.is_leasing || t.in_flight > 0 || t.reporting > 0) return;
  loop_.cancel(t.wakes);
  counts_.with([&](counts& all) { all.erase(t.queue); });
  targets_.erase(std::string(t.queue));
}

breaker_ptr courier::make_breaker(target* owner, const std::string& queue,
                                  const std::string& receiver) {
  circuit_breaker_options o;
  o.name = receiver;
  o.consecutive_failures = options_.failures_in_a_row;
  o.open_for = options_.pause_first;
  o.open_for_max = options_.pause_longest;
  o.clock = &time_.timers();
  o.on_change = [this, owner, queue, receiver](const circuit_change& c) {
    // Reports each pause once, not its probes.
    const bool is_paused = c.from == circuit_state::closed && c.new_state == circuit_state::open;
    if (!is_paused && c.new_state != circuit_state::closed) return;
    // Ignores a breaker that was replaced because the queue has another URL now.
    if (owner != nullptr && owner->breaker->name() == receiver) {
      if (is_paused) owner->stop_leasing.request_stop();
      counts_.with([&](counts& all) { all[queue].is_paused = is_paused; });
    }
    emit({.kind =
              is_paused ? delivery_event::event_kind::paused : delivery_event::event_kind::resumed,
          .queue = queue,
          .receiver = receiver,
          .job = 0,
          .message = is_paused ? "the receiver keeps failing: no requests for some time"
                               : "the receiver works again"});
  };
  return std::make_shared<circuit_breaker>(std::move(o));
}

breaker_ptr courier::breaker_for(const target& t, const web_url& url) {
  if (!t.is_webhooks) return t.breaker;
  if (receivers_.size() >= receivers_max && !receivers_.contains(url.origin())) {
    std::erase_if(receivers_, [](const auto& entry) {
      return entry.second->state() == circuit_state::closed && entry.second.use_count() == 1;
    });
    // All receivers fail: one of them is forgotten, and gets an early chance.
    if (receivers_.size() >= receivers_max) receivers_.erase(receivers_.begin());
  }
  breaker_ptr& found = receivers_[url.origin()];
  if (found == nullptr) found = make_breaker(nullptr, t.queue, url.origin());
  return found;
}

// ---- leasing

// Returns how many jobs may be leased now.
std::size_t courier::free_slots(target& t) {
  const std::size_t reports_max =
      reports_per_request * std::max<std::size_t>(t.settings.concurrency, 8);
  if (t.in_flight >= t.settings.concurrency || t.reporting >= reports_max) return 0;
  const std::size_t all = options_.requests_max - outgoing_.in_progress();
  const std::size_t free =
      std::min({t.settings.concurrency - t.in_flight, reports_max - t.reporting, all});
  if (t.breaker == nullptr || t.breaker->state() == circuit_state::closed) return free;
  if (t.is_probing || t.breaker->open_for() > std::chrono::nanoseconds(0)) return 0;
  return std::min<std::size_t>(free, 1);
}

void courier::pump(const target_ptr& t) {
  if (closed_ || t->is_leasing || t->is_removed || !t->why_not.empty()) return;
  const time_point now = loop_.now();  // read before open_for: the alarm is early, never late
  if (t->breaker != nullptr) {
    if (const auto left = t->breaker->open_for(); left > std::chrono::nanoseconds(0)) {
      return wake_at(t, now + left);
    }
  }
  if (now < t->lease_at) return wake_at(t, t->lease_at);
  const std::size_t free = free_slots(*t);
  if (free == 0) return;  // called again when a request has ended
  t->is_leasing = true;
  t->stop_leasing = std::stop_source();
  lease_request request{
      .queues = {t->queue}, .max = free, .worker = "sluice delivery", .lease_for = lease_for(*t)};
  when_done(engine_.lease(std::move(request), t->stop_leasing.get_token()),
            [this, t](result<std::vector<leased_job>> jobs) { leased(t, std::move(jobs)); });
}

void courier::wake_at(const target_ptr& t, time_point when) {
  loop_.cancel(t->wakes);
  t->wakes = loop_.at(when, [this, t] {
    t->wakes = {};
    pump(t);
  });
}

// Round robin: when slots are scarce, no target is always first.
void courier::pump_all() {
  std::vector<target_ptr> in_order;
  for (auto at = targets_.lower_bound(next_target_); at != targets_.end(); ++at) {
    in_order.push_back(at->second);
  }
  for (auto at = targets_.begin(); at != targets_.lower_bound(next_target_); ++at) {
    in_order.push_back(at->second);
  }
  if (in_order.size() > 1) next_target_ = in_order[1]->queue;
  for (const target_ptr& t : in_order) pump(t);
}

void courier::leased(const target_ptr& t, result<std::vector<leased_job>> jobs) {
  t->is_leasing = false;
  if (jobs) {
    for (leased_job& job : *jobs) deliver(t, std::move(job));
  } else if (jobs.error().code == error_code::shutting_down) {
    close();
  } else if (jobs.error().code != error_code::stopped) {
    t->lease_at = loop_.now() + lease_retry;
  }
  pump(t);
  forget_if_idle(*t);
}

// ---- sending

void courier::deliver(const target_ptr& t, leased_job job) {
  const auto d = std::make_shared<delivery>();
  d->job = std::move(job);
  d->of = t;
  in_progress_.emplace(d.get(), d);
  // The settings may have changed during the lease call.
  const bool is_full =
      t->in_flight >= t->settings.concurrency || outgoing_.in_progress() >= options_.requests_max;
  if (closed_ || t->is_removed || is_full) return postpone(d, milliseconds(0));
  auto made = t->is_webhooks ? parcel_of_webhook(d->job)
                             : result<parcel>(parcel_of_job(d->job, t->settings.url));
  if (!made) {
    return reject(d, "bad_webhook",
                  "the arguments of this job are not those of a webhook: " + made.error().message);
  }
  auto url = options_.rules.allowed(made->url);
  if (!url) {
    if (!t->is_webhooks) return postpone(d, milliseconds(0));  // see why_not
    return reject(d, "url_not_allowed", url.error().message);
  }
  d->url = *std::move(url);
  d->breaker = breaker_for(*t, d->url);
  d->permit.emplace(d->breaker->try_enter());
  if (!*d->permit) {
    // A queue's jobs return at once: the queue itself pauses. Webhooks wait for their receiver.
    const auto left = std::chrono::duration_cast<milliseconds>(d->permit->retry_after());
    return postpone(d, t->is_webhooks ? spread(std::max(left, postpone_least)) : milliseconds(0));
  }
  d->is_probe = d->breaker->state() == circuit_state::half_open;
  if (d->is_probe) t->is_probing = true;
  sign_parcel(*made, options_.version, options_.secrets, time_.now());
  const milliseconds limit = d->job.job->spec.time_limit;
  const milliseconds timeout = t->settings.timeout;
  ++t->in_flight;
  count(*t, &delivery_stats::in_flight);
  outgoing_request request{.url = d->url,
                           .headers = std::move(made->headers),
                           .body = std::move(made->body),
                           .timeout = limit > milliseconds(0) ? std::min(limit, timeout) : timeout};
  d->request =
      outgoing_.send(std::move(request), [this, d](outgoing_end end) { ended(d, std::move(end)); });
}

void courier::ended(const delivery_ptr& d, outgoing_end end) {
  target& t = *d->of;
  d->request = 0;
  --t.in_flight;
  count(t, &delivery_stats::in_flight, -1);
  if (std::exchange(d->is_probe, false)) t.is_probing = false;
  d->end = judge(std::move(end), d->url, time_.now());
  switch (d->end.receiver) {
    case verdict::receiver_state::works:
      d->permit->success();
      break;
    case verdict::receiver_state::fails:
      d->permit->failure();
      break;
    case verdict::receiver_state::unknown:
      d->permit->abandon();
      break;
  }
  if (d->end.pause > milliseconds(0)) {
    d->breaker->trip(std::min(d->end.pause, options_.pause_longest));
  }
  d->permit.reset();
  report(d);
  pump(d->of);
  if (!closed_ && outgoing_.in_progress() + 1 >= options_.requests_max) pump_all();
}

// Fails the job for good without sending it.
void courier::reject(const delivery_ptr& d, std::string type, std::string why) {
  d->end.report = failure{.type = std::move(type),
                          .message = std::move(why),
                          .backtrace = {},
                          .retry_in = {},
                          .for_good = true};
  report(d);
}

// Releases the job without sending it; the attempt is not counted.
void courier::postpone(const delivery_ptr& d, milliseconds delay) {
  d->end.report = give_back{.delay = delay, .priority = {}};
  report(d);
}

void courier::close() {
  closed_ = true;
  for (const auto& [queue, t] : targets_) {
    loop_.cancel(t->wakes);
    t->stop_leasing.request_stop();
  }
  set_if_finished();
}

void courier::cancel_all() {
  close();
  is_cancelled_ = true;
  std::vector<delivery_ptr> all;
  for (const auto& [key, d] : in_progress_) all.push_back(d);
  for (const delivery_ptr& d : all) {
    if (d->request != 0) outgoing_.cancel(d->request);
    if (d->retry.number == 0) continue;
    loop_.cancel(d->retry);
    report(d);  // the last attempt
  }
  outgoing_.close();
  set_if_finished();
}

// ---- reporting

void courier::report(const delivery_ptr& d) {
  if (d->report_delay == milliseconds(0)) ++d->of->reporting;
  const lease_ref lease = d->job.ref();
  if (const auto* ack = std::get_if<delivery_ack>(&d->end.report)) {
    const bool has_result = !d->of->is_webhooks;  // the response to a webhook is not stored
    when_done(engine_.ack(lease, has_result ? ack->result : std::nullopt),
              [this, d](void_result reply) { reported(d, reply); });
  } else if (const auto* failed = std::get_if<failure>(&d->end.report)) {
    when_done(engine_.fail(lease, *failed), [this, d](result<fail_receipt> reply) {
      reported(d, reply ? void_result(done{}) : void_result(reply.error()));
    });
  } else {
    when_done(engine_.release(lease, std::get<give_back>(d->end.report)),
              [this, d](void_result reply) { reported(d, reply); });
  }
}

void courier::reported(const delivery_ptr& d, const void_result& reply) {
  const target& t = *d->of;
  if (!reply && may_pass(reply.error().code) && !is_cancelled_) return report_later(d);
  const auto emit_for_job = [&](delivery_event::event_kind kind, std::string why) {
    emit({.kind = kind,
          .queue = t.queue,
          .receiver = d->url.host.empty() ? std::string() : d->url.origin(),
          .job = d->job.job->id,
          .message = std::move(why)});
  };
  if (!reply) {
    count(t, &delivery_stats::lost);
    emit_for_job(delivery_event::event_kind::lost, reply.error().message);
  } else if (const auto* ack = std::get_if<delivery_ack>(&d->end.report)) {
    count(t, &delivery_stats::delivered);
    if (!ack->dropped.empty() && !t.is_webhooks) {
      emit_for_job(delivery_event::event_kind::result_dropped, ack->dropped);
    }
  } else if (const auto* failed = std::get_if<failure>(&d->end.report)) {
    count(t, failed->for_good ? &delivery_stats::rejected : &delivery_stats::failed);
  } else {
    count(t, &delivery_stats::given_back);
  }
  settled(d);
}

// Extends the lease meanwhile: a post must not be repeated because of a full disk.
void courier::report_later(const delivery_ptr& d) {
  (void)engine_.extend(d->job.ref(), lease_margin);
  d->report_delay = std::clamp(2 * d->report_delay, report_delay_first, report_delay_longest);
  d->retry = loop_.after(d->report_delay, [this, d] {
    d->retry = {};
    report(d);
  });
}

void courier::settled(const delivery_ptr& d) {
  const target_ptr t = d->of;
  --t->reporting;
  in_progress_.erase(d.get());
  pump(t);
  forget_if_idle(*t);
}

// ---- counting

void courier::set_if_finished() {
  if (closed_ && in_progress_.empty() && calls_ == 0) finished_.set();
}

void courier::count(const target& t, std::uint64_t delivery_stats::*counter, std::int64_t by) {
  counts_.with([&](counts& all) { all[t.queue].*counter += static_cast<std::uint64_t>(by); });
}

std::vector<delivery_stats> courier::stats() const {
  std::vector<delivery_stats> all;
  const auto held = counts_.lock();
  for (const auto& [queue, s] : *held) all.push_back(s);
  return all;
}

void courier::emit(delivery_event e) const {
  if (options_.on_event) options_.on_event(e);
}

}  // namespace sluice::jobs::detail
