#include "jobs/deliver/detail/courier.hpp"

#include <algorithm>
#include <utility>

#include "sluice/base/random.hpp"

namespace sluice::jobs::detail {
namespace {

constexpr std::size_t receivers_max = 1000;     // of webhooks, whose failures are remembered
constexpr std::size_t telling_per_request = 4;  // answers that wait for the engine, a free slot
constexpr milliseconds lease_margin{60'000};    // a lease outlasts its request by so much
constexpr milliseconds lease_again{1'000};      // after the engine refused one
constexpr milliseconds tell_first{100};
constexpr milliseconds tell_longest{5'000};
constexpr milliseconds put_off_least{1'000};

// Of the engine's answer: a fault that may pass, after which the same can be said again.
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
  return std::min(t.what.timeout + lease_margin, limits::duration_max);
}

// Some later, at random: those that were put off together do not come back together.
milliseconds spread(milliseconds delay) {
  const auto wide = static_cast<std::uint32_t>(std::min<std::int64_t>(delay.count(), 1 << 30));
  return delay + milliseconds(thread_random().below(wide));
}

}  // namespace

courier::courier(engine& jobs, deliverer_options o, loop& on, outgoing& through)
    : engine_(jobs), options_(std::move(o)), time_(*options_.time), loop_(on), outgoing_(through) {}

// Hands what a future of the engine ends with to the loop.
template <class T, class Then>
void courier::when_done(future<T> answer, Then then) {
  ++calls_;
  auto pass = [this, then = std::move(then)](sluice::settled<T> s) mutable {
    loop_.post([this, then = std::move(then), s = std::move(s)]() mutable {
      --calls_;
      if (s) {
        then(std::move(s).value());
      } else {
        then(T(error{error_code::shutting_down, "the engine gave no answer"}));
      }
      end_if_over();
    });
  };
  (void)std::move(answer).handle(std::move(pass));
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
  for (const auto& [queue, what] : wanted) set_target(queue, what);
  pump_all();
}

void courier::update(url_rules rules, std::vector<std::string> secrets) {
  options_.rules = std::move(rules);
  options_.secrets = std::move(secrets);
  refresh();
}

void courier::set_target(const std::string& queue, const delivery_target& what) {
  target_ptr& t = targets_[queue];
  if (t == nullptr) {
    t = std::make_shared<target>();
    t->queue = queue;
    t->is_webhooks = queue == webhook_queue;
    counts_.with([&](counts& all) { all[queue].queue = queue; });
  }
  if (t->what != what) t->stop_leasing.request_stop();  // it asked for other numbers
  t->what = what;
  t->is_removed = false;
  if (t->is_webhooks) return;
  const auto to = options_.rules.allowed(what.url);
  if (!to && t->why_not != to.error().message) {
    say({.kind = delivery_event::what::not_allowed,
         .queue = queue,
         .receiver = {},
         .job = 0,
         .message = to.error().message});
  }
  t->why_not = to ? std::string() : to.error().message;
  if (!to) t->stop_leasing.request_stop();
  if (to && (t->breaker == nullptr || t->breaker->name() != to->origin())) {
    t->breaker = make_breaker(t.get(), queue, to->origin());
    t->is_probing = false;
  }
  const bool is_paused = !to || t->breaker->state() != circuit_state::closed;
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
  if (!t.is_removed || t.is_leasing || t.in_flight > 0 || t.telling > 0) return;
  loop_.cancel(t.wakes);
  counts_.with([&](counts& all) { all.erase(t.queue); });
  targets_.erase(std::string(t.queue));
}

breaker_ptr courier::make_breaker(target* of, const std::string& queue,
                                  const std::string& receiver) {
  circuit_breaker_options o;
  o.name = receiver;
  o.consecutive_failures = options_.failures_in_a_row;
  o.open_for = options_.pause_first;
  o.open_for_max = options_.pause_longest;
  o.clock = &time_.timers();
  o.on_change = [this, of, queue, receiver](const circuit_change& c) {
    // Each pause once, however often it is tried in between.
    const bool is_paused = c.from == circuit_state::closed && c.to == circuit_state::open;
    if (!is_paused && c.to != circuit_state::closed) return;
    // One that was replaced meanwhile, because the queue is delivered elsewhere, says nothing.
    if (of != nullptr && of->breaker->name() == receiver) {
      if (is_paused) of->stop_leasing.request_stop();
      counts_.with([&](counts& all) { all[queue].is_paused = is_paused; });
    }
    say({.kind = is_paused ? delivery_event::what::paused : delivery_event::what::resumed,
         .queue = queue,
         .receiver = receiver,
         .job = 0,
         .message = is_paused ? "it keeps failing: no requests for a while" : "it works again"});
  };
  return std::make_shared<circuit_breaker>(std::move(o));
}

breaker_ptr courier::breaker_for(const target& t, const web_url& to) {
  if (!t.is_webhooks) return t.breaker;
  if (receivers_.size() >= receivers_max && !receivers_.contains(to.origin())) {
    std::erase_if(receivers_, [](const auto& known) {
      return known.second->state() == circuit_state::closed && known.second.use_count() == 1;
    });
    // All of them fail: some receiver gets another chance early.
    if (receivers_.size() >= receivers_max) receivers_.erase(receivers_.begin());
  }
  breaker_ptr& found = receivers_[to.origin()];
  if (found == nullptr) found = make_breaker(nullptr, t.queue, to.origin());
  return found;
}

// ---- leasing

// How many jobs may be leased now.
std::size_t courier::room_of(target& t) {
  const std::size_t telling_max =
      telling_per_request * std::max<std::size_t>(t.what.concurrency, 8);
  if (t.in_flight >= t.what.concurrency || t.telling >= telling_max) return 0;
  const std::size_t all = options_.requests_max - outgoing_.under_way();
  const std::size_t room =
      std::min({t.what.concurrency - t.in_flight, telling_max - t.telling, all});
  if (t.breaker == nullptr || t.breaker->state() == circuit_state::closed) return room;
  if (t.is_probing || t.breaker->open_for() > std::chrono::nanoseconds(0)) return 0;
  return std::min<std::size_t>(room, 1);
}

void courier::pump(const target_ptr& t) {
  if (closed_ || t->is_leasing || t->is_removed || !t->why_not.empty()) return;
  const time_point now = loop_.now();  // before it is asked what is left: early, and never late
  if (t->breaker != nullptr) {
    if (const auto left = t->breaker->open_for(); left > std::chrono::nanoseconds(0)) {
      return wake_at(t, now + left);
    }
  }
  if (now < t->lease_at) return wake_at(t, t->lease_at);
  const std::size_t room = room_of(*t);
  if (room == 0) return;  // looked at again when a request has ended
  t->is_leasing = true;
  t->stop_leasing = std::stop_source();
  lease_request what{
      .queues = {t->queue}, .max = room, .worker = "sluice delivery", .lease_for = lease_for(*t)};
  when_done(engine_.lease(std::move(what), t->stop_leasing.get_token()),
            [this, t](result<std::vector<leased_job>> jobs) { leased(t, std::move(jobs)); });
}

void courier::wake_at(const target_ptr& t, time_point when) {
  loop_.cancel(t->wakes);
  t->wakes = loop_.at(when, [this, t] {
    t->wakes = {};
    pump(t);
  });
}

// In turn: with less room than the targets want, none of them is always the first.
void courier::pump_all() {
  std::vector<target_ptr> in_turn;
  for (auto at = targets_.lower_bound(next_turn_); at != targets_.end(); ++at) {
    in_turn.push_back(at->second);
  }
  for (auto at = targets_.begin(); at != targets_.lower_bound(next_turn_); ++at) {
    in_turn.push_back(at->second);
  }
  if (in_turn.size() > 1) next_turn_ = in_turn[1]->queue;
  for (const target_ptr& t : in_turn) pump(t);
}

void courier::leased(const target_ptr& t, result<std::vector<leased_job>> jobs) {
  t->is_leasing = false;
  if (jobs) {
    for (leased_job& it : *jobs) deliver(t, std::move(it));
  } else if (jobs.error().code == error_code::shutting_down) {
    close();
  } else if (jobs.error().code != error_code::stopped) {
    t->lease_at = loop_.now() + lease_again;
  }
  pump(t);
  forget_if_idle(*t);
}

// ---- sending

void courier::deliver(const target_ptr& t, leased_job it) {
  const auto d = std::make_shared<delivery>();
  d->it = std::move(it);
  d->of = t;
  under_way_.emplace(d.get(), d);
  // What it may was changed while the lease was on its way.
  const bool is_full =
      t->in_flight >= t->what.concurrency || outgoing_.under_way() >= options_.requests_max;
  if (closed_ || t->is_removed || is_full) return put_off(d, milliseconds(0));
  auto made =
      t->is_webhooks ? parcel_of_webhook(d->it) : result<parcel>(parcel_of_job(d->it, t->what.url));
  if (!made) {
    return refuse(d, "bad_webhook",
                  "the arguments of this job are not those of a webhook: " + made.error().message);
  }
  auto to = options_.rules.allowed(made->url);
  if (!to) {
    if (!t->is_webhooks) return put_off(d, milliseconds(0));  // see why_not
    return refuse(d, "url_not_allowed", to.error().message);
  }
  d->to = *std::move(to);
  d->breaker = breaker_for(*t, d->to);
  d->permit.emplace(d->breaker->try_enter());
  if (!*d->permit) {
    // Another job of a queue whose receiver pauses is as good: these wait where they were.
    const auto left = std::chrono::duration_cast<milliseconds>(d->permit->retry_after());
    return put_off(d, t->is_webhooks ? spread(std::max(left, put_off_least)) : milliseconds(0));
  }
  d->is_probe = d->breaker->state() == circuit_state::half_open;
  if (d->is_probe) t->is_probing = true;
  sign_parcel(*made, options_.version, options_.secrets, time_.now());
  const milliseconds limit = d->it.it->spec.time_limit;
  ++t->in_flight;
  count(*t, &delivery_stats::in_flight);
  outgoing_request what{
      .to = d->to,
      .headers = std::move(made->headers),
      .body = std::move(made->body),
      .timeout = limit > milliseconds(0) ? std::min(limit, t->what.timeout) : t->what.timeout};
  d->request =
      outgoing_.send(std::move(what), [this, d](outgoing_end how) { ended(d, std::move(how)); });
}

void courier::ended(const delivery_ptr& d, outgoing_end how) {
  target& t = *d->of;
  d->request = 0;
  --t.in_flight;
  count(t, &delivery_stats::in_flight, -1);
  if (std::exchange(d->is_probe, false)) t.is_probing = false;
  d->end = judge(std::move(how), d->to, time_.now());
  switch (d->end.is) {
    case verdict::receiver::works:
      d->permit->success();
      break;
    case verdict::receiver::fails:
      d->permit->failure();
      break;
    case verdict::receiver::unknown:
      d->permit->abandon();
      break;
  }
  if (d->end.pause > milliseconds(0)) {
    d->breaker->trip(std::min(d->end.pause, options_.pause_longest));
  }
  d->permit.reset();
  tell(d);
  pump(d->of);
  if (!closed_ && outgoing_.under_way() + 1 >= options_.requests_max) pump_all();
}

// Not sent, and never to be.
void courier::refuse(const delivery_ptr& d, std::string type, std::string why) {
  d->end.word = failure{.type = std::move(type),
                        .message = std::move(why),
                        .backtrace = {},
                        .retry_in = {},
                        .for_good = true};
  tell(d);
}

// Not sent now: the attempt is not counted.
void courier::put_off(const delivery_ptr& d, milliseconds delay) {
  d->end.word = give_back{.delay = delay, .priority = {}};
  tell(d);
}

void courier::close() {
  closed_ = true;
  for (const auto& [queue, t] : targets_) {
    loop_.cancel(t->wakes);
    t->stop_leasing.request_stop();
  }
  end_if_over();
}

void courier::cut_off() {
  close();
  cut_off_ = true;
  std::vector<delivery_ptr> all;
  for (const auto& [key, d] : under_way_) all.push_back(d);
  for (const delivery_ptr& d : all) {
    if (d->request != 0) outgoing_.cancel(d->request);
    if (d->again.number == 0) continue;
    loop_.cancel(d->again);
    tell(d);  // for the last time
  }
  outgoing_.close();
  end_if_over();
}

// ---- telling

void courier::tell(const delivery_ptr& d) {
  if (d->tell_again == milliseconds(0)) ++d->of->telling;
  const lease_ref lease = d->it.ref();
  if (const auto* done_with = std::get_if<say_done>(&d->end.word)) {
    const bool keeps = !d->of->is_webhooks;  // what a webhook is answered is of no use to anybody
    when_done(engine_.ack(lease, keeps ? done_with->result : std::nullopt),
              [this, d](void_result how) { told(d, how); });
  } else if (const auto* failed = std::get_if<failure>(&d->end.word)) {
    when_done(engine_.fail(lease, *failed), [this, d](result<fail_receipt> how) {
      told(d, how ? void_result(done{}) : void_result(how.error()));
    });
  } else {
    when_done(engine_.release(lease, std::get<give_back>(d->end.word)),
              [this, d](void_result how) { told(d, how); });
  }
}

void courier::told(const delivery_ptr& d, const void_result& how) {
  const target& t = *d->of;
  if (!how && may_pass(how.error().code) && !cut_off_) return tell_later(d);
  const auto about = [&](delivery_event::what kind, std::string why) {
    say({.kind = kind,
         .queue = t.queue,
         .receiver = d->to.host.empty() ? std::string() : d->to.origin(),
         .job = d->it.it->id,
         .message = std::move(why)});
  };
  if (!how) {
    count(t, &delivery_stats::lost);
    about(delivery_event::what::lost, how.error().message);
  } else if (const auto* done_with = std::get_if<say_done>(&d->end.word)) {
    count(t, &delivery_stats::delivered);
    if (!done_with->dropped.empty() && !t.is_webhooks) {
      about(delivery_event::what::result_dropped, done_with->dropped);
    }
  } else if (const auto* failed = std::get_if<failure>(&d->end.word)) {
    count(t, failed->for_good ? &delivery_stats::rejected : &delivery_stats::failed);
  } else {
    count(t, &delivery_stats::given_back);
  }
  settled(d);
}

// The lease is kept meanwhile: what the receiver has done must not be done again for a full disk.
void courier::tell_later(const delivery_ptr& d) {
  (void)engine_.extend(d->it.ref(), lease_margin);
  d->tell_again = std::clamp(2 * d->tell_again, tell_first, tell_longest);
  d->again = loop_.after(d->tell_again, [this, d] {
    d->again = {};
    tell(d);
  });
}

void courier::settled(const delivery_ptr& d) {
  const target_ptr t = d->of;
  --t->telling;
  under_way_.erase(d.get());
  pump(t);
  forget_if_idle(*t);
}

// ---- counting

void courier::end_if_over() {
  if (closed_ && under_way_.empty() && calls_ == 0) over_.set();
}

void courier::count(const target& t, std::uint64_t delivery_stats::*which, std::int64_t by) {
  counts_.with([&](counts& all) { all[t.queue].*which += static_cast<std::uint64_t>(by); });
}

std::vector<delivery_stats> courier::stats() const {
  std::vector<delivery_stats> all;
  const auto held = counts_.lock();
  for (const auto& [queue, s] : *held) all.push_back(s);
  return all;
}

void courier::say(delivery_event e) const {
  if (options_.on_event) options_.on_event(e);
}

}  // namespace sluice::jobs::detail
