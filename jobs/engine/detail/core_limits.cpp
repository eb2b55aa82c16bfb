// How fast and how many: which queue a job is taken from, and whether it may start.
#include <algorithm>
#include <utility>

#include "jobs/engine/detail/change_window.hpp"

namespace sluice::jobs::detail {
namespace {

// Buckets of keys that are full again are swept out when there are twice as many as were left.
constexpr std::size_t key_rates_min = 1024;

bucket::pace pace_of(const queue_options& o) {
  return bucket::pace::of(o.rate, o.rate_burst);
}

}  // namespace

void queue_timer::fire() noexcept {
  core* const by = std::exchange(owner, nullptr);
  by->touch(queue_);
}

bool core::is_paused(const queue_state& q) const {
  if (q.options.paused) return true;
  return q.paused_until != time_point{} && q.paused_until > time_.timers().now();
}

void_result core::pause_for(std::string_view name, milliseconds time) {
  queue_state* const q = find_queue(name);
  if (q == nullptr || !q->is_stored) return no_such_queue(name);
  if (time < milliseconds(0) || time > limits::duration_max) {
    return error{error_code::invalid, "a pause must be from 0 to 10 years"};
  }
  timers_.remove(q->resumes);
  q->resumes.owner = nullptr;
  q->paused_until = {};
  if (time == milliseconds(0)) {
    touch(*q);
    return done{};
  }
  q->paused_until = time_.timers().now() + time;
  q->resumes.owner = this;
  timers_.add(q->resumes, q->paused_until);
  return done{};
}

milliseconds core::pause_left(std::string_view name) const {
  const auto found = queues_.find(name);
  if (found == queues_.end() || found->second->paused_until == time_point{}) return milliseconds(0);
  const auto left = found->second->paused_until - time_.timers().now();
  return std::max(milliseconds(0), std::chrono::ceil<milliseconds>(left));
}

bool core::may_start(const queue_state& q, time_point now) const {
  return !q.ready.empty() && lets_start(q, now);
}

// Its pauses and limits let another job start. That one is there is another matter.
bool core::lets_start(const queue_state& q, time_point now) const {
  if (leases_.size() >= options_.running_max || is_paused(q)) return false;
  if (q.options.concurrency > 0 && q.leases_held() >= q.options.concurrency) return false;
  return q.options.rate <= 0 || q.rate.may(pace_of(q.options), now);
}

// If jobs and workers wait, and only the rate keeps them apart: a timer until it does not.
void core::arm_rate(queue_state& q) {
  if (q.options.rate <= 0 || q.wakes.owner != nullptr || q.ready.empty() || is_paused(q)) {
    return;
  }
  const bucket::pace pace = pace_of(q.options);
  if (q.rate.may(pace, time_.timers().now())) return;
  q.wakes.owner = this;
  timers_.add(q.wakes, q.rate.next(pace));
}

void_result core::check_options(const queue_options& options) const {
  if (auto valid = validate(options); !valid) return valid;
  if (options.deliver.url.empty()) return done{};
  if (!options_.check_url) {
    return error{error_code::invalid, "deliver.url: this server posts to no URL"};
  }
  auto allowed = options_.check_url(options.deliver.url);
  if (!allowed) allowed.error().message = "deliver.url: " + allowed.error().message;
  return allowed;
}

// Its options are others now: whoever waits for what they allow is looked at again. A rate that is
// as before goes on as it was: nobody gets another burst by pausing a queue.
void core::queue_changed(queue_state& q, const queue_options& before) {
  const queue_options& now = q.options;
  timers_.remove(q.wakes);
  q.wakes.owner = nullptr;
  if (now.key_rate != before.key_rate || now.key_burst != before.key_burst) q.key_rates.clear();
  if (now.rate != before.rate || now.rate_burst != before.rate_burst) q.rate = {};
  job_event e;
  e.type = event_type::queue_changed;
  e.queue = q.name;
  add_event(std::move(e));
  touch(q);
}

// One that somebody named starts whatever the rates say; those that are handed out make up for it.
void core::count_start(queue_state& q, const job& j) {
  const time_point now = time_.timers().now();
  if (q.options.rate > 0) q.rate.take(pace_of(q.options), now);
  if (q.options.key_rate > 0 && !j.spec.key.empty()) {
    const bucket::pace pace = bucket::pace::of(q.options.key_rate, q.options.key_burst);
    rate_of_key(q, j.spec.key, now).take(pace, now);
  }
}

// The next job of a queue that may start one. False: there is none whose key may.
bool core::take_one(queue_state& q, const lease_request& what, std::vector<leased_job>& into) {
  while (!q.ready.empty()) {
    job_ptr it;
    change_window(q, [&](window& w) { it = w.take_front(); });
    if (!key_may_start(q, it)) continue;
    into.push_back(start(q, std::move(it), what));
    return true;
  }
  return false;
}

// One whose queue lets it start.
leased_job core::start(queue_state& q, job_ptr it, const lease_request& what, bool is_stored) {
  if (q.options.rate > 0) q.rate.take(pace_of(q.options), time_.timers().now());
  q.passed += 1.0 / q.options.weight;
  return open_lease(q, std::move(it), what, is_stored);
}

// Which jobs a lease takes, by the order that it asks for.
void core::take_some(const lease_request& what, std::vector<leased_job>& into) {
  std::vector<queue_state*> asked;
  for (const std::string& name : what.queues) {
    queue_state* const q = find_queue(name);
    if (q != nullptr && std::ranges::find(asked, q) == asked.end()) asked.push_back(q);
  }
  switch (what.pick) {
    case lease_request::order::strict:
      for (queue_state* const q : asked) {
        take_from(*q, what, into);
        if (into.size() == what.max) return;
      }
      return;
    case lease_request::order::fair:
      take_fairly(asked, what, into);
      break;
    case lease_request::order::urgent:
      take_urgently(asked, what, into);
      break;
  }
  for (queue_state* const q : asked) want_refill(*q);
}

// The next job of each queue is the first of its window, so the most urgent of all is one of these.
void core::take_urgently(std::vector<queue_state*> open, const lease_request& what,
                         std::vector<leased_job>& into) {
  const time_point now = time_.timers().now();
  while (into.size() < what.max) {
    std::erase_if(open, [&](const queue_state* q) { return !may_start(*q, now); });
    if (open.empty()) return;
    const auto first =
        std::ranges::min_element(open, [](const queue_state* a, const queue_state* b) {
          return position_of(*a->ready.front()) < position_of(*b->ready.front());
        });
    (void)take_one(**first, what, into);
  }
}

// From several queues in proportion to their weights: each job takes its queue as much further as
// its weight is small, and the queue that is least far is next. One that had nothing for a while,
// or that was not asked for, starts where the others are, so that it neither waits for them nor has
// saved anything up: queues that always have jobs are never further apart than that.
void core::take_fairly(std::vector<queue_state*> open, const lease_request& what,
                       std::vector<leased_job>& into) {
  const time_point now = time_.timers().now();
  while (into.size() < what.max) {
    std::erase_if(open, [&](const queue_state* q) { return !may_start(*q, now); });
    if (open.empty()) return;
    double furthest = 0;
    double step = 0;  // the largest that one of them takes
    for (const queue_state* const q : open) {
      furthest = std::max(furthest, q->passed);
      step = std::max(step, 1.0 / q->options.weight);
    }
    for (queue_state* const q : open) q->passed = std::max(q->passed, furthest - step);
    const auto least = std::ranges::min_element(open, {}, &queue_state::passed);
    (void)take_one(**least, what, into);
  }
}

// Leases of keys.

void core::count_key(lease_state& l) {
  if (l.it->spec.key.empty()) return;
  l.line = line_of(l.queue->number, l.it->spec.key);
  ++l.queue->keys[l.line].all;
}

void core::uncount_key(const lease_state& l) {
  if (l.it->spec.key.empty()) return;
  queue_state& q = *l.queue;
  const auto found = q.keys.find(l.line);
  key_leases& key = found->second;
  --key.all;
  key.cancelled -= l.is_cancelled ? 1 : 0;
  if (const auto next = std::exchange(key.passed_over, std::nullopt)) {
    change_window(q, [&](window& w) { w.forget_from(*next); });
  }
  if (key.all == 0) q.keys.erase(found);
}

// Returns false if the key of `j` has as many leases as it may have, some of them of cancelled
// jobs. The store frees a key's place when the job ends. Only for cancelled jobs is that before the
// lease ends.
bool core::key_is_free(const queue_state& q, const job& j) const {
  if (q.cancelled_leases == 0 || j.spec.key.empty()) return true;
  const auto found = q.keys.find(line_of(q.number, j.spec.key));
  return found == q.keys.end() || found->second.cancelled == 0 ||
         found->second.all < q.options.key_concurrency;
}

// Takes a ready job whose key is not free out of the window. It is read again when a lease of the
// key ends.
void core::pass_over(queue_state& q, const job& j) {
  const position at = position_of(j);
  std::optional<position>& first = q.keys.at(line_of(q.number, j.spec.key)).passed_over;
  if (!first || at < *first) first = at;
  change_window(q, [&](window& w) { w.erase(at); });
}

// Rates of keys.

bucket& core::rate_of_key(queue_state& q, std::string_view key, time_point now) {
  if (q.key_rates.size() >= std::max(key_rates_min, 2 * q.key_rates_swept)) {
    std::erase_if(q.key_rates, [&](const auto& one) { return one.second.is_full(now); });
    q.key_rates_swept = q.key_rates.size();
  }
  return q.key_rates[line_of(q.number, key)];
}

bool core::key_may_start(queue_state& q, const job_ptr& it) {
  if (!key_is_free(q, *it)) {
    pass_over(q, *it);
    return false;
  }
  if (q.options.key_rate <= 0 || it->spec.key.empty()) return true;
  const bucket::pace pace = bucket::pace::of(q.options.key_rate, q.options.key_burst);
  const time_point now = time_.timers().now();
  bucket& key = rate_of_key(q, it->spec.key, now);
  if (key.may(pace, now)) {
    key.take(pace, now);
    return true;
  }
  // The wall clock, by which it was put off, may run a little faster than the timers: then it is
  // back too soon, and keeps the start that it has reserved.
  const bool is_back = key.may(pace, now + milliseconds(1));
  put_off(q, it, (is_back ? key.next(pace) : key.reserve(pace, now)) - now);
  return false;
}

// It keeps its place under its key, and is looked at again when the key's rate allows it. On disk,
// since there may be more of them than memory is for.
void core::put_off(queue_state& q, const job_ptr& it, std::chrono::nanoseconds by) {
  const unix_time due = time_.after(by);
  change c;
  c.what = change::op::move;
  c.queue = q.number;
  c.id = it->id;
  c.from = job_state::ready;
  c.to = job_state::scheduled;
  c.weight = jobs::weight_of(it->spec);
  c.it = it;
  c.how = std::make_unique<change::moved>();
  c.how->due_at = due;
  const std::size_t at = stage(std::move(c));
  busy_.insert(it->id);
  stage_after(
      [this, it, due](const commit::outcome& how, answers&) {
        busy_.erase(it->id);
        const bool is_gone = how.why_not != nullptr && how.why_not->job == it->id;
        if (how.why_not == nullptr) {
          note_due(due);
        } else if (!is_gone) {
          // It is ready as before, and would be put off again at once, into a store that fails: it
          // is read when that works again.
          queue_state& mine = *find_queue(it->spec.queue);
          change_window(mine, [&](window& w) { w.forget_from(position_of(*it)); });
          mine.is_unreadable = true;
        }
      },
      at);
}

}  // namespace sluice::jobs::detail
