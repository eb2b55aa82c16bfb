// Producers: admission, waiting for capacity, and what a push stages for the next commit.
#include <algorithm>
#include <utility>

#include "jobs/engine/detail/core.hpp"

namespace sluice::jobs::detail {
namespace {

error full(const queue_state& q) {
  return {error_code::queue_full,
          "queue '" + q.name + "' is full: it holds " +
              std::to_string(q.counts.unfinished() + q.staged_jobs) + " of " +
              std::to_string(q.options.capacity_jobs) + " jobs and " +
              std::to_string(q.counts.bytes + q.staged_bytes) + " of " +
              std::to_string(q.options.capacity_bytes) + " bytes; try again later"};
}

error never_fits(const queue_state& q, std::uint64_t jobs, std::uint64_t bytes) {
  return {error_code::too_large,
          std::to_string(jobs) + (jobs == 1 ? " job weighs " : " jobs weigh ") +
              std::to_string(bytes) + " bytes, but queue '" + q.name + "' holds at most " +
              std::to_string(q.options.capacity_jobs) + " jobs and " +
              std::to_string(q.options.capacity_bytes) + " bytes"};
}

bool drops_others(const queue_state& q) {
  return q.options.when_full == overflow::drop_oldest || q.options.when_full == overflow::latest;
}

bool could_hold(const queue_state& q, std::uint64_t jobs, std::uint64_t bytes) {
  return jobs <= q.options.capacity_jobs && bytes <= q.options.capacity_bytes;
}

std::uint64_t weight_of(const std::vector<push_item>& items) {
  std::uint64_t sum = 0;
  for (const push_item& item : items) sum += item.weight;
  return sum;
}

}  // namespace

// Pushes waiting for capacity in a queue or in staged_bytes_max: one, or several that are pushed
// together or not at all.
class core::push_wait final : public waiting {
 public:
  push_wait(std::vector<push_item> pushes, bool are_a_group, std::shared_ptr<batch_plan> as)
      : waiting(kind::push), items(std::move(pushes)), is_group(are_a_group), plan(std::move(as)) {}
  void refuse(error why, answers& out) override {
    for (push_item& item : items) item.reply.give(why, out);
  }
  void each_queue(const std::function<void(queue_state&)>& see) override {
    for (push_item& item : items) see(*item.queue);
  }

  std::vector<push_item> items;
  const bool is_group;
  std::shared_ptr<batch_plan> plan;  // null: not a batch
};

std::optional<error> core::refuse_intake() const {
  if (is_ending_) return shutting_down();
  return degraded_;
}

// Fails if a dependency or batch that the spec names has never existed, or if its webhook is not
// allowed.
void_result core::check_references(const job_spec& spec) const {
  const std::string known = ": the last id is " + std::to_string(next_id_ - 1);
  for (std::size_t i = 0; i < spec.after.size(); ++i) {
    if (spec.after[i].on < next_id_) continue;
    return error{error_code::not_found, "after[" + std::to_string(i) + "]: job or batch " +
                                            std::to_string(spec.after[i].on) + " does not exist" +
                                            known};
  }
  if (spec.batch >= next_id_) {
    return error{error_code::not_found,
                 "batch " + std::to_string(spec.batch) + " does not exist" + known};
  }
  if (spec.webhook.empty()) return done{};
  if (!options_.check_url) {
    return error{error_code::invalid, "webhook: this server posts to no URL"};
  }
  if (auto allowed = options_.check_url(spec.webhook); !allowed) {
    return error{allowed.error().code, "webhook: " + allowed.error().message};
  }
  return done{};
}

// Step names are only valid in a batch.
static std::optional<error> names_a_step(const job_spec& spec) {
  for (const dependency& d : spec.after) {
    if (d.step.empty()) continue;
    return error{error_code::invalid, "after: step '" + d.step +
                                          "': a step can only name a job of the same batch; "
                                          "push them as a batch, or name the job by its id"};
  }
  return std::nullopt;
}

result<push_item> core::make_item(job_spec spec, push_reply& reply) {
  if (auto valid = validate(spec); !valid) return valid.error();
  if (auto allowed = check_references(spec); !allowed) return allowed.error();
  queue_state* const q = make_queue(spec.queue);
  if (q == nullptr) return too_many_queues();
  push_item item;
  item.weight = jobs::weight_of(spec);
  if (!could_hold(*q, 1, item.weight)) return never_fits(*q, 1, item.weight);
  item.queue = q;
  item.job = std::make_shared<job>();
  item.job->spec = std::move(spec);
  item.job->created_at = time_.now();
  item.reply = std::move(reply);
  return item;
}

// Rejects an unstaged push. Its queue may have been created only for it.
void core::refuse_item(push_item& item, error why, answers& out) {
  ++counters.refused;
  item.reply.give(std::move(why), out);
  drop_unused(*item.queue);
}

void core::refuse_items(std::vector<push_item>& items, error why, answers& out) {
  why.message += "; nothing was pushed";
  counters.refused += items.size();
  for (push_item& item : items) item.reply.give(why, out);
  drop_unused_of(items);
}

void core::drop_unused_of(const std::vector<push_item>& items) {
  std::vector<queue_state*> queues;
  for (const push_item& item : items) queues.push_back(item.queue);
  std::ranges::sort(queues);
  const auto rest = std::ranges::unique(queues);
  queues.erase(rest.begin(), rest.end());
  for (queue_state* const q : queues) drop_unused(*q);
}

void core::push(job_spec spec, push_reply reply, const wait_limits& limits, answers& out) {
  if (std::optional<error> why = refuse_intake()) {
    ++counters.refused;
    return reply.give(*std::move(why), out);
  }
  if (std::optional<error> why = names_a_step(spec)) {
    ++counters.refused;
    return reply.give(*std::move(why), out);
  }
  if (depends_on_unstored(spec)) {
    const std::uint64_t weight = jobs::weight_of(spec);
    if (must_wait_for_staged(weight)) {
      ++counters.refused;
      return reply.give(too_much_staged(), out);
    }
    staged_bytes_ += weight;
    return deferred_.push_back(
        [this, weight, limits, spec = std::move(spec), reply = std::move(reply)](
            const commit::outcome&, answers& later) mutable {
          staged_bytes_ -= weight;
          push(std::move(spec), std::move(reply), limits, later);
        });
  }
  result<push_item> item = make_item(std::move(spec), reply);
  if (!item) {
    ++counters.refused;
    return reply.give(item.error(), out);
  }
  arrive(*std::move(item), limits, out);
}

void core::arrive(push_item item, const wait_limits& limits, answers& out) {
  queue_state& q = *item.queue;
  const bool blocks = q.options.when_full == overflow::block;
  // Pushes that already wait are first.
  const bool fits = q.has_capacity(1, item.weight) && !(blocks && !q.pushes.empty());
  const bool can_be_staged = blocked_pushes_.empty() && !must_wait_for_staged(item.weight);
  if (fits && can_be_staged) return stage_push(std::move(item));
  if (!fits && !blocks && (can_be_staged || !drops_others(q))) {
    return arrive_at_full(std::move(item), out);
  }
  const bool waits_for_capacity = !fits && blocks;
  if (waits_for_capacity && closed_) return refuse_item(item, shutting_down(), out);
  if (auto why = refuse_wait(item.weight)) return refuse_item(item, *std::move(why), out);
  if (limits.deadline.passed()) {
    return refuse_item(item, waits_for_capacity ? full(q) : too_much_staged(), out);
  }
  std::vector<push_item> one;
  one.push_back(std::move(item));
  park_pushes(std::move(one), false, nullptr, waits_for_capacity ? &q : nullptr, limits);
}

// Pushes into a queue that is full and does not block.
void core::arrive_at_full(push_item item, answers& out) {
  switch (item.queue->options.when_full) {
    case overflow::drop_newest:
      ++counters.dropped;
      return item.reply.give(push_receipt{0, push_receipt::fate::dropped}, out);
    case overflow::drop_oldest:
    case overflow::latest:
      staged_bytes_ += item.weight;
      evictions_.push_back(std::move(item));
      return;
    default:
      return refuse_item(item, full(*item.queue), out);
  }
}

void core::park_pushes(std::vector<push_item> items, bool are_a_group,
                       std::shared_ptr<batch_plan> plan, queue_state* line_queue,
                       const wait_limits& limits) {
  auto wait = std::make_unique<push_wait>(std::move(items), are_a_group, std::move(plan));
  wait->line_queue = line_queue;
  wait->bytes = weight_of(wait->items);
  park(std::move(wait), {line_queue == nullptr ? &blocked_pushes_ : &line_queue->pushes}, limits,
       {});
}

void core::push_together(std::vector<job_spec> specs,
                         promise<std::vector<result<push_receipt>>> reply,
                         const wait_limits& limits, answers& out,
                         std::shared_ptr<batch_plan> plan) {
  const std::size_t count = specs.size();
  const bool waits = std::ranges::any_of(
      specs, [this](const job_spec& spec) { return depends_on_unstored(spec); });
  std::uint64_t weight = 0;
  for (const job_spec& spec : specs) weight += waits ? jobs::weight_of(spec) : 0;
  if (waits && !must_wait_for_staged(weight)) {
    staged_bytes_ += weight;
    return deferred_.push_back(
        [this, weight, limits, specs = std::move(specs), reply = std::move(reply),
         plan = std::move(plan)](const commit::outcome&, answers& later) mutable {
          staged_bytes_ -= weight;
          push_together(std::move(specs), std::move(reply), limits, later, std::move(plan));
        });
  }
  auto replies = push_reply::make_many(std::move(reply), count);
  const auto refuse = [&](const error& why) {
    counters.refused += count;
    for (std::size_t i = 0; i < count; ++i) push_reply(replies, i).give(why, out);
  };
  if (std::optional<error> why = refuse_intake()) return refuse(*why);
  if (waits) return refuse(too_much_staged());
  std::vector<push_item> items;
  items.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    push_reply item_reply(replies, i);
    std::optional<error> bad = plan == nullptr ? names_a_step(specs[i]) : std::nullopt;
    result<push_item> item =
        bad ? result<push_item>(*std::move(bad)) : make_item(std::move(specs[i]), item_reply);
    if (!item) {
      error why = item.error();
      why.message = "job " + std::to_string(i + 1) + " of " + std::to_string(count) + ": " +
                    why.message + "; nothing was pushed";
      refuse(why);
      return drop_unused_of(items);
    }
    items.push_back(*std::move(item));
  }
  arrive_together(std::move(items), std::move(plan), limits, out);
}

// The reason why pushes cannot be staged now. With `why`, waiting would not help.
struct core::obstacle {
  queue_state* at = nullptr;
  std::optional<error> why{};
};

// Returns the first queue in which pushes of a group cannot be staged now: it lacks capacity, or
// other pushes wait before them. The line of `in` does not count: they are at its head.
core::obstacle core::obstacle_to(const std::vector<push_item>& items,
                                 const queue_state* line_queue) const {
  std::map<queue_state*, std::pair<std::uint64_t, std::uint64_t>> wanted;
  for (const push_item& item : items) {
    auto& [jobs, bytes] = wanted[item.queue];
    ++jobs;
    bytes += item.weight;
  }
  obstacle first;
  for (const auto& [q, want] : wanted) {
    if (!could_hold(*q, want.first, want.second)) {
      return {q, never_fits(*q, want.first, want.second)};
    }
    const bool blocks = q->options.when_full == overflow::block;
    const bool others_first = blocks && q != line_queue && !q->pushes.empty();
    if (q->has_capacity(want.first, want.second) && !others_first) continue;
    if (!blocks) return {q, full(*q)};
    if (first.at == nullptr) first.at = q;
  }
  return first;
}

void core::arrive_together(std::vector<push_item> items, std::shared_ptr<batch_plan> plan,
                           const wait_limits& limits, answers& out) {
  obstacle before = obstacle_to(items, nullptr);
  const bool has_capacity = before.at == nullptr;
  if (has_capacity && blocked_pushes_.empty() && !must_wait_for_staged(weight_of(items))) {
    return stage_together(std::move(items), plan.get());
  }
  if (before.why) return refuse_items(items, *std::move(before.why), out);
  if (!has_capacity && closed_) return refuse_items(items, shutting_down(), out);
  if (auto too_many = refuse_wait(weight_of(items))) return refuse_items(items, *too_many, out);
  if (limits.deadline.passed()) {
    return refuse_items(items, has_capacity ? too_much_staged() : full(*before.at), out);
  }
  park_pushes(std::move(items), true, std::move(plan), before.at, limits);
}

void core::stage_together(std::vector<push_item> items, batch_plan* plan) {
  const bool can_clash =
      plan != nullptr || std::ranges::any_of(items, [](const push_item& item) {
        return !item.job->spec.unique.key.empty() || gates::concern(item.job->spec);
      });
  if (can_clash && ++next_group_ == 0) ++next_group_;
  const std::uint32_t group = can_clash ? next_group_ : 0;
  for (push_item& item : items) item.is_of_list = true;
  if (plan == nullptr) {
    for (push_item& item : items) stage_push(std::move(item), group);
    return;
  }
  stage_batch(items, *plan, group);
}

// Stages a batch, then its jobs and its callbacks, in the order of their ids.
void core::stage_batch(std::vector<push_item>& items, batch_plan& plan, std::uint32_t group) {
  plan.batch.id = next_id_++;
  plan.batch.open = true;
  plan.batch.created_at = time_.now();
  const job_id first = next_id_;
  change c;
  c.type = change::op::add_batch;
  c.id = plan.batch.id;
  c.group = group;
  c.batch = std::make_unique<batch_info>(plan.batch);
  stage(std::move(c));
  for (std::size_t i = 0; i < items.size(); ++i) {
    job_spec& spec = items[i].job->spec;
    for (const auto& [at, item] : plan.steps[i]) {
      spec.after[at] = {first + item, {}, spec.after[at].when};
    }
    if (plan.callbacks[i]) {
      spec.after.push_back({plan.batch.id, {}, *plan.callbacks[i]});
    } else {
      spec.batch = plan.batch.id;
    }
    stage_push(std::move(items[i]), group);
  }
  if (plan.stays_open) return;
  change closes;  // no effect if the batch was not added
  closes.type = change::op::close_batch;
  closes.id = plan.batch.id;
  stage(std::move(closes));
}

void core::push_empty_batch(const std::shared_ptr<batch_plan>& plan,
                            promise<result<batch_receipt>> reply, answers& out) {
  if (std::optional<error> why = refuse_intake()) {
    return out.add(std::move(reply), result<batch_receipt>(*std::move(why)));
  }
  std::vector<push_item> none;
  stage_together(std::move(none), plan.get());
  stage_after(
      [plan, reply = std::move(reply)](const commit::outcome& outcome, answers& replies) mutable {
        if (outcome.failure != nullptr) {
          return replies.add(std::move(reply), result<batch_receipt>(*outcome.failure));
        }
        batch_receipt receipt;
        receipt.id = plan->batch.id;
        replies.add(std::move(reply), result<batch_receipt>(std::move(receipt)));
      });
}

error core::too_much_staged() const {
  return {error_code::overloaded,
          std::to_string(staged_bytes_) + " of " + std::to_string(options_.staged_bytes_max) +
              " bytes are waiting to be stored (staged_bytes_max); try again later, or wait"};
}

bool core::must_wait_for_staged(std::uint64_t weight) const {
  // A push that is larger than the limit is staged alone.
  return staged_bytes_ > 0 && staged_bytes_ + weight > options_.staged_bytes_max;
}

void core::stage_push(push_item item, std::uint32_t group) {
  queue_state& q = *item.queue;
  if (!q.is_stored && !q.is_staged) stage_queue(q, q.options);
  // With a unique key the commit decides whether the job is added, so the eviction waits for it.
  if (item.job->spec.unique.key.empty()) {
    for (job_ptr& gone : std::exchange(item.victims, {})) stage_eviction(q, std::move(gone), true);
  }
  job& j = *item.job;
  j.id = next_id_++;
  j.turn = j.id;
  const bool is_later = j.spec.run_at > j.created_at;
  j.state = is_later ? job_state::scheduled : job_state::ready;
  j.due_at = is_later ? j.spec.run_at : unix_time{};
  ++q.staged_jobs;
  q.staged_bytes += item.weight;
  staged_bytes_ += item.weight;
  change c;
  c.type = change::op::add;
  c.queue = q.number;
  c.id = j.id;
  c.job = item.job;
  c.group = group;
  const std::size_t at = stage(std::move(c));
  next_.pushes.push_back({at, std::move(item)});
}

// Evictions: jobs that are dropped for a push.

std::optional<push_item> core::take_eviction() {
  if (evictions_.empty()) return std::nullopt;
  std::optional<push_item> first = std::move(evictions_.front());
  evictions_.pop_front();
  staged_bytes_ -= first->weight;
  return first;
}

std::size_t core::evictions_from(const queue_state& q, std::size_t among) const {
  const auto end =
      evictions_.begin() + static_cast<std::ptrdiff_t>(std::min(among, evictions_.size()));
  return static_cast<std::size_t>(std::count_if(
      evictions_.begin(), end, [&](const push_item& item) { return item.queue == &q; }));
}

void core::choose_victim(queue_state& q, const job& chosen) {
  busy_.insert(chosen.id);
  unpublish(chosen);
  q.freeing_jobs += 1;
  q.freeing_bytes += jobs::weight_of(chosen.spec);
  staged_bytes_ += jobs::weight_of(chosen.spec);
}

void core::spare_victim(queue_state& q, job_ptr chosen) {
  unchoose_victim(q, *chosen);
  publish(std::move(chosen));
}

void core::unchoose_victim(queue_state& q, const job& chosen) {
  busy_.erase(chosen.id);
  q.freeing_jobs -= 1;
  q.freeing_bytes -= jobs::weight_of(chosen.spec);
  staged_bytes_ -= jobs::weight_of(chosen.spec);
}

void core::stage_eviction(queue_state& q, job_ptr gone, bool is_with_push) {
  change c;
  c.type = change::op::drop;
  c.queue = q.number;
  c.id = gone->id;
  c.from = job_state::ready;
  c.new_state = job_state::cancelled;
  c.weight = jobs::weight_of(gone->spec);
  c.job = job_for_change(gone);
  const std::size_t at = stage(std::move(c));
  next_.evictions.push_back({at, &q, std::move(gone), is_with_push});
}

void core::evicted(commit::eviction& e, answers& out) {
  unchoose_victim(*e.queue, *e.gone);
  ++counters.dropped;
  note(event_type::removed, *e.gone, "dropped");
  job_removed(e.gone->id,
              {error_code::not_found, "the job was dropped from a full queue", e.gone->id}, out);
}

// Waiting pushes.

void core::admit_waiting(answers& out) {
  for (queue_state* const q : std::exchange(stalled_, {})) {
    q->is_stalled = false;
    touch(*q);
  }
  // The head of each queue's line, as long as it fits.
  for (queue_state* const q : std::exchange(touched_, {})) {
    if (q == nullptr) continue;
    q->is_touched = false;
    while (!q->pushes.empty() && admit(static_cast<push_wait&>(*q->pushes.front()), q, out)) {
    }
  }
  while (!blocked_pushes_.empty() &&
         admit(static_cast<push_wait&>(*blocked_pushes_.front()), nullptr, out)) {
  }
}

// Admits a push at the head of the line of `in`, or of blocked_pushes_ (null). Returns true if it
// has left that line.
bool core::admit(push_wait& w, queue_state* line_queue, answers& out) {
  obstacle before = obstacle_to(w.items, line_queue);
  if (before.at != nullptr && !before.why) {
    if (before.at == line_queue) return false;
    w.leave_all();
    w.line_queue = before.at;
    w.join(before.at->pushes);
    return true;
  }
  const bool would_drop = before.why && before.why->code == error_code::queue_full && !w.is_group &&
                          drops_others(*before.at);
  if ((before.at == nullptr || would_drop) && must_wait_for_staged(weight_of(w.items))) {
    // Checked again after the next commit.
    if (line_queue != nullptr && !std::exchange(line_queue->is_stalled, true)) {
      stalled_.push_back(line_queue);
    }
    return false;
  }
  std::unique_ptr<waiting> ended = unpark(w);
  if (before.at == nullptr) {
    if (w.is_group) {
      stage_together(std::move(w.items), w.plan.get());
    } else {
      stage_push(std::move(w.items.front()));
    }
  } else if (w.is_group) {
    refuse_items(w.items, *std::move(before.why), out);
  } else if (before.why->code == error_code::queue_full) {
    arrive_at_full(std::move(w.items.front()), out);
  } else {
    refuse_item(w.items.front(), *std::move(before.why), out);
  }
  out.destroy_later(std::move(ended));
  return true;
}

void core::refuse_waiting_pushes(const error& why, answers& out) {
  std::vector<waiting*> pushes;
  for (const auto& [number, w] : waits_) {
    if (w->purpose == waiting::kind::push) pushes.push_back(w.get());
  }
  for (waiting* const w : pushes) end_wait_early(*w, why, out);
  while (std::optional<push_item> item = take_eviction()) refuse_item(*item, why, out);
}

}  // namespace sluice::jobs::detail
