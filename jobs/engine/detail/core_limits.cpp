// Selection and limits: which job a lease gets, and whether it may start.
#include <algorithm>
#include <utility>

#include "jobs/engine/detail/change_window.hpp"

namespace sluice::jobs::detail {
namespace {

// Full buckets of keys are deleted when there are twice as many entries as the last sweep left.
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
  timers_.remove(q->pause_timer);
  q->pause_timer.owner = nullptr;
  q->paused_until = {};
  if (time == milliseconds(0)) {
    touch(*q);
    return done{};
  }
  q->paused_until = time_.timers().now() + time;
  q->pause_timer.owner = this;
  timers_.add(q->pause_timer, q->paused_until);
  return done{};
}

milliseconds core::pause_left(std::string_view name) const {
  const auto found = queues_.find(name);
  if (found == queues_.end() || found->second->paused_until == time_point{}) return milliseconds(0);
  const auto left = found->second->paused_until - time_.timers().now();
  return std::max(milliseconds(0), std::chrono::ceil<milliseconds>(left));
}

bool core::may_start(const queue_state& q, time_point now) const {
  return !q.ready.empty() && limits_permit(q, now);
}

// Returns whether pauses and limits permit a start. Does not check that a job is ready.
bool core::limits_permit(const queue_state& q, time_point now) const {
  if (leases_.size() >= options_.running_max || is_paused(q)) return false;
  if (q.options.concurrency > 0 && q.leases_held() >= q.options.concurrency) return false;
  return q.options.rate <= 0 || q.rate.may(pace_of(q.options), now);
}

// Arms a timer for the next permitted start if only the rate keeps waiting workers from ready jobs.
void core::arm_rate(queue_state& q) {
  if (q.options.rate <= 0 || q.rate_timer.owner != nullptr || q.ready.empty() || is_paused(q)) {
    return;
  }
  const bucket::pace pace = pace_of(q.options);
  if (q.rate.may(pace, time_.timers().now())) return;
  q.rate_timer.owner = this;
  timers_.add(q.rate_timer, q.rate.next(pace));
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

// Called after the options of a queue have changed: calls that wait for a limit are checked again.
// The bucket of an unchanged rate is kept: pausing a queue gives no new burst.
void core::queue_changed(queue_state& q, const queue_options& before) {
  const queue_options& now = q.options;
  timers_.remove(q.rate_timer);
  q.rate_timer.owner = nullptr;
  if (now.key_rate != before.key_rate || now.key_burst != before.key_burst) q.key_rates.clear();
  if (now.rate != before.rate || now.rate_burst != before.rate_burst) q.rate = {};
  job_event e;
  e.type = event_type::queue_changed;
  e.queue = q.name;
  add_event(std::move(e));
  touch(q);
}

// Charges the rates for a job leased by id, which starts at once: later starts are delayed by it.
void core::count_start(queue_state& q, const job& j) {
  const time_point now = time_.timers().now();
  if (q.options.rate > 0) q.rate.take(pace_of(q.options), now);
  if (q.options.key_rate > 0 && !j.spec.key.empty()) {
    const bucket::pace pace = bucket::pace::of(q.options.key_rate, q.options.key_burst);
    rate_of_key(q, j.spec.key, now).take(pace, now);
  }
}

// Leases the first job of the queue whose key permits it. Returns false if there is no such job.
bool core::take_one(queue_state& q, const lease_request& request, std::vector<leased_job>& into) {
  while (!q.ready.empty()) {
    job_ptr job;
    change_window(q, [&](window& w) { job = w.take_front(); });
    if (!key_may_start(q, job)) continue;
    into.push_back(start(q, std::move(job), request));
    return true;
  }
  return false;
}

// Precondition: the limits of the queue permit a start.
leased_job core::start(queue_state& q, job_ptr job, const lease_request& request, bool is_stored) {
  if (q.options.rate > 0) q.rate.take(pace_of(q.options), time_.timers().now());
  q.virtual_time += 1.0 / q.options.weight;
  return open_lease(q, std::move(job), request, is_stored);
}

// Selects the jobs of a lease in the order it requests.
void core::take_some(const lease_request& request, std::vector<leased_job>& into) {
  std::vector<queue_state*> asked;
  for (const std::string& name : request.queues) {
    queue_state* const q = find_queue(name);
    if (q != nullptr && std::ranges::find(asked, q) == asked.end()) asked.push_back(q);
  }
  switch (request.pick) {
    case lease_request::order::strict:
      for (queue_state* const q : asked) {
        take_from(*q, request, into);
        if (into.size() == request.max) return;
      }
      return;
    case lease_request::order::fair:
      take_fairly(asked, request, into);
      break;
    case lease_request::order::urgent:
      take_urgently(asked, request, into);
      break;
  }
  for (queue_state* const q : asked) want_refill(*q);
}

// The next job of each queue is the front of its window, so the most urgent job is one of these.
void core::take_urgently(std::vector<queue_state*> open, const lease_request& request,
                         std::vector<leased_job>& into) {
  const time_point now = time_.timers().now();
  while (into.size() < request.max) {
    std::erase_if(open, [&](const queue_state* q) { return !may_start(*q, now); });
    if (open.empty()) return;
    const auto first =
        std::ranges::min_element(open, [](const queue_state* a, const queue_state* b) {
          return position_of(*a->ready.front()) < position_of(*b->ready.front());
        });
    (void)take_one(**first, request, into);
  }
}

// Weighted fair queuing. Each job advances its queue's virtual time by 1/weight; the queue with the
// lowest virtual time is next. A queue that was empty, blocked or not requested is raised to within
// one step of the others: it neither starves nor has built up credit, and queues that always have
// jobs are never further apart than that.
void core::take_fairly(std::vector<queue_state*> open, const lease_request& request,
                       std::vector<leased_job>& into) {
  const time_point now = time_.timers().now();
  while (into.size() < request.max) {
    std::erase_if(open, [&](const queue_state* q) { return !may_start(*q, now); });
    if (open.empty()) return;
    double furthest = 0;
    double step = 0;  // the largest 1/weight
    for (const queue_state* const q : open) {
      furthest = std::max(furthest, q->virtual_time);
      step = std::max(step, 1.0 / q->options.weight);
    }
    for (queue_state* const q : open) q->virtual_time = std::max(q->virtual_time, furthest - step);
    const auto least = std::ranges::min_element(open, {}, &queue_state::virtual_time);
    (void)take_one(**least, request, into);
  }
}

// Leases of keys.

void core::count_key(lease_state& l) {
  if (l.job->spec.key.empty()) return;
  l.line = line_of(l.queue->number, l.job->spec.key);
  ++l.queue->keys[l.line].all;
}

void core::uncount_key(const lease_state& l) {
  if (l.job->spec.key.empty()) return;
  queue_state& q = *l.queue;
  const auto found = q.keys.find(l.line);
  key_leases& key = found->second;
  --key.all;
  key.cancelled -= l.is_cancelled ? 1 : 0;
  if (const auto next = std::exchange(key.passed_over, std::nullopt)) {
    change_window(q, [&](window& w) { w.drop_from(*next); });
  }
  if (key.all == 0) q.keys.erase(found);
}

// Returns false if the key of `j` has key_concurrency leases or more, some of them of cancelled
// jobs. The store frees a key when its job ends, and only for cancelled jobs is that before the
// lease ends.
bool core::key_is_free(const queue_state& q, const job& j) const {
  if (q.cancelled_leases == 0 || j.spec.key.empty()) return true;
  const auto found = q.keys.find(line_of(q.number, j.spec.key));
  return found == q.keys.end() || found->second.cancelled == 0 ||
         found->second.all < q.options.key_concurrency;
}

// Removes a ready job whose key is not free from the window. It is read again when a lease of the
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

bool core::key_may_start(queue_state& q, const job_ptr& job) {
  if (!key_is_free(q, *job)) {
    pass_over(q, *job);
    return false;
  }
  if (q.options.key_rate <= 0 || job->spec.key.empty()) return true;
  const bucket::pace pace = bucket::pace::of(q.options.key_rate, q.options.key_burst);
  const time_point now = time_.timers().now();
  bucket& key = rate_of_key(q, job->spec.key, now);
  if (key.may(pace, now)) {
    key.take(pace, now);
    return true;
  }
  // The deferral is timed by the wall clock, which may run a little faster than the timers: then
  // the job is back early and keeps the start it has reserved.
  const bool is_back = key.may(pace, now + milliseconds(1));
  defer_for_rate(q, job, (is_back ? key.next(pace) : key.reserve(pace, now)) - now);
  return false;
}

// Reschedules a job for when the rate of its key permits it; it keeps its position under its key.
// Stored, because there may be more such jobs than fit in memory.
void core::defer_for_rate(queue_state& q, const job_ptr& job, std::chrono::nanoseconds by) {
  const unix_time due = time_.after(by);
  change c;
  c.type = change::op::move;
  c.queue = q.number;
  c.id = job->id;
  c.from = job_state::ready;
  c.new_state = job_state::scheduled;
  c.weight = jobs::weight_of(job->spec);
  c.job = job;
  c.fields = std::make_unique<change::moved>();
  c.fields->due_at = due;
  const std::size_t at = stage(std::move(c));
  busy_.insert(job->id);
  stage_after(
      [this, job, due](const commit::outcome& outcome, answers&) {
        busy_.erase(job->id);
        const bool is_gone = outcome.failure != nullptr && outcome.failure->job == job->id;
        if (outcome.failure == nullptr) {
          note_due(due);
        } else if (!is_gone) {
          // It is still ready, and would be deferred again at once into a failing store: read it
          // when the store works again.
          queue_state& queue = *find_queue(job->spec.queue);
          change_window(queue, [&](window& w) { w.drop_from(position_of(*job)); });
          queue.is_unreadable = true;
        }
      },
      at);
}

}  // namespace sluice::jobs::detail
