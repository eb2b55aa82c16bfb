// Calls about a whole batch, one page per round, so that other commits are not delayed.
#include <algorithm>
#include <utility>

#include "jobs/engine/detail/engine_impl.hpp"

namespace sluice::jobs {
namespace {

constexpr std::size_t batch_page_jobs = 500;

error no_such_batch(job_id id) {
  return {error_code::not_found,
          "batch " + std::to_string(id) + " does not exist, or its retention period has passed",
          id};
}

// Returns the jobs of a batch, each after its dependencies, then its callbacks.
std::vector<job_spec> specs_of(batch_spec& spec, const std::vector<std::size_t>& order,
                               detail::batch_plan& plan) {
  std::vector<std::size_t> place(spec.jobs.size());
  for (std::size_t i = 0; i < order.size(); ++i) place[order[i]] = i;
  std::unordered_map<std::string_view, std::size_t> steps;
  for (std::size_t i = 0; i < spec.jobs.size(); ++i) {
    if (!spec.jobs[i].step.empty()) steps.emplace(spec.jobs[i].step, place[i]);
  }
  plan.steps.resize(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    std::vector<dependency>& after = spec.jobs[order[i]].after;
    for (std::size_t at = 0; at < after.size(); ++at) {
      if (after[at].step.empty()) continue;
      plan.steps[i].emplace_back(at, steps.at(after[at].step));
      after[at].on = 0;
    }
  }
  std::vector<job_spec> specs;
  for (const std::size_t at : order) specs.push_back(std::move(spec.jobs[at]));
  plan.callbacks.resize(specs.size());
  const auto add_callback = [&](std::optional<job_spec>& callback, after_when when) {
    if (!callback) return;
    specs.push_back(*std::move(callback));
    plan.steps.emplace_back();
    plan.callbacks.emplace_back(when);
  };
  // Callbacks that are released at the same time run in this order.
  add_callback(spec.on_end, after_when::end);
  add_callback(spec.on_success, after_when::success);
  add_callback(spec.on_failure, after_when::failure);
  return specs;
}

result<batch_receipt> receipt_of(const detail::batch_plan& plan,
                                 const std::vector<std::size_t>& order,
                                 const std::vector<result<push_receipt>>& pushed) {
  // The job that caused the rejection has an error of its own; the others only refer to it.
  const error* why = nullptr;
  for (const result<push_receipt>& one : pushed) {
    if (one) continue;
    if (why == nullptr || why->message.starts_with("another job")) why = &one.error();
  }
  if (why != nullptr) return *why;
  batch_receipt receipt;
  receipt.id = plan.batch.id;
  receipt.jobs.resize(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) receipt.jobs[order[i]] = pushed[i]->id;
  for (std::size_t i = order.size(); i < pushed.size(); ++i) {
    const after_when when = *plan.callbacks[i];
    (when == after_when::success ? receipt.on_success
     : when == after_when::end   ? receipt.on_end
                                 : receipt.on_failure) = pushed[i]->id;
  }
  return receipt;
}

}  // namespace

future<result<batch_receipt>> engine::push_batch(batch_spec spec, wait_limits limits) {
  using answer = result<batch_receipt>;
  const auto refuse = [](error why) { return make_ready_future(answer(std::move(why))); };
  if (auto valid = validate(spec); !valid) return refuse(valid.error());
  if (spec.jobs.size() > impl_->options_.bulk_max) {
    return refuse({error_code::too_large,
                   "more than " + std::to_string(impl_->options_.bulk_max) +
                       " jobs at once: leave the batch open, and push the others into it"});
  }
  auto order = order_of_steps(spec.jobs);
  if (!order) return refuse(order.error());
  auto plan = std::make_shared<detail::batch_plan>();
  plan->batch.name = spec.name;
  plan->batch.keep_done = spec.keep_done;
  plan->batch.keep_failed = spec.keep_failed;
  plan->stays_open = spec.open;
  std::vector<job_spec> specs = specs_of(spec, *order, *plan);
  if (specs.empty()) return impl_->push_empty_batch(std::move(plan));
  using pushes = std::vector<result<push_receipt>>;
  const std::size_t count = specs.size();
  future<pushes> pushed =
      impl_->ask<pushes>(count, [&](detail::core& c, promise<pushes> reply, detail::answers& out) {
        c.push_together(std::move(specs), std::move(reply), limits, out, plan);
      });
  return std::move(pushed).then([plan, order = *std::move(order)](const pushes& all) {
    return receipt_of(*plan, order, all);
  });
}

future<result<batch_receipt>> engine::impl::push_empty_batch(
    std::shared_ptr<detail::batch_plan> plan) {
  using answer = result<batch_receipt>;
  return ask<answer>([&](detail::core& c, promise<answer> reply, detail::answers& out) {
    c.push_empty_batch(plan, std::move(reply), out);
  });
}

void engine::impl::close_batch(job_id id, promise<result<batch_info>> reply) {
  auto found = store_->get_batch(id);
  if (!found) return answer_failed_read(found.error(), std::move(reply));
  detail::answers out;
  {
    const std::lock_guard hold(mutex_);
    if (!*found) {
      out.add(std::move(reply), result<batch_info>(no_such_batch(id)));
    } else {
      change c;
      c.type = change::op::close_batch;
      c.id = id;
      core_.stage(std::move(c));
      core_.stage_after([this, id, reply = std::move(reply)](const detail::commit::outcome& outcome,
                                                             detail::answers& replies) mutable {
        if (outcome.failure != nullptr) {
          return replies.add(std::move(reply), result<batch_info>(*outcome.failure));
        }
        // Reads its new state on the committing thread.
        calls_.push_back([this, id, reply = std::move(reply)]() mutable {
          auto closed = store_->get_batch(id);
          if (!closed) return answer_failed_read(closed.error(), std::move(reply));
          reply.set_value(*closed ? result<batch_info>(**std::move(closed)) : no_such_batch(id));
        });
      });
    }
  }
  out.deliver();
}

struct engine::impl::batch_change {
  job_id id = 0;
  batch_act act = batch_act::cancel;
  promise<result<std::uint64_t>> reply;
  job_id after = 0;
  job_id up_to = 0;  // jobs that are pushed later are not part of it
  // Of a cancel: for each remaining page, the id after which it begins. Works from the last page to
  // the first: dependent jobs come after their dependencies and are cancelled before them, so that
  // none is released only to be cancelled.
  std::vector<job_id> pages;
  std::uint64_t count = 0;

  bool is_last(const job_page& page) const { return !page.cursor || *page.cursor >= up_to; }
  // Advances to the next page. Returns false if this was the last.
  bool advance(const job_page& page) {
    if (act == batch_act::cancel) {
      pages.pop_back();
      if (pages.empty()) return false;
      after = pages.back();
      return true;
    }
    if (is_last(page)) return false;
    after = *page.cursor;
    return true;
  }
};

void engine::impl::change_batch(job_id id, batch_act act, promise<result<std::uint64_t>> reply) {
  auto found = store_->get_batch(id);
  if (!found) return answer_failed_read(found.error(), std::move(reply));
  if (!*found) return reply.set_value(result<std::uint64_t>(no_such_batch(id)));
  auto b = std::make_shared<batch_change>();
  b->id = id;
  b->act = act;
  b->reply = std::move(reply);
  {
    const std::lock_guard hold(mutex_);
    b->up_to = core_.last_id();
  }
  act == batch_act::cancel ? find_pages(std::move(b)) : batch_step(std::move(b));
}

void engine::impl::find_pages(std::shared_ptr<batch_change> b) {
  job_filter filter;
  filter.batch = b->id;
  auto page = store_->list(filter, b->after, batch_page_jobs);
  if (!page) return answer_failed_read(page.error(), std::move(b->reply));
  b->pages.push_back(b->after);
  {
    const std::lock_guard hold(mutex_);
    if (!b->is_last(*page)) {
      b->after = *page->cursor;
      calls_.push_back([this, b] { find_pages(b); });
      return;
    }
    change c;  // the batch accepts no further jobs
    c.type = change::op::close_batch;
    c.id = b->id;
    core_.stage(std::move(c));
  }
  batch_step(std::move(b));
}

void engine::impl::batch_step(std::shared_ptr<batch_change> b) {
  job_filter filter;
  filter.batch = b->id;
  auto page = store_->list(filter, b->after, batch_page_jobs);
  if (!page) return answer_failed_read(page.error(), std::move(b->reply));
  const std::lock_guard hold(mutex_);
  bool has_pending = false;
  const auto counted = [b](const result<job>& changed, detail::answers&) {
    if (changed) ++b->count;
  };
  if (b->act == batch_act::cancel) std::ranges::reverse(page->jobs);
  for (job& j : page->jobs) {
    detail::lease_state* const l = core_.find_lease(j.id);
    if (j.id > b->up_to) continue;
    if (core_.is_busy(j.id) || (l != nullptr && l->is_ending)) {
      has_pending = true;
    } else if (b->act == batch_act::cancel && !jobs::has_ended(j.state)) {
      stage_end(std::move(j), l, {job_state::cancelled, {}}, counted);
    } else if (b->act == batch_act::retry && l == nullptr && !j.is_damaged &&
               (j.state == job_state::dead || j.state == job_state::cancelled)) {
      stage_retry(std::move(j), counted);
    }
  }
  const bool is_last = !has_pending && !b->advance(*page);
  core_.stage_after(
      [this, b, is_last](const detail::commit::outcome& outcome, detail::answers& replies) {
        if (outcome.failure != nullptr) {
          replies.add(std::move(b->reply), result<std::uint64_t>(*outcome.failure));
        } else if (is_last) {
          replies.add(std::move(b->reply), result<std::uint64_t>(b->count));
        } else {
          calls_.push_back([this, b] { batch_step(b); });
        }
      });
}

}  // namespace sluice::jobs
