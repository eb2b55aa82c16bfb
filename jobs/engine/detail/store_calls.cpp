// Calls about jobs in any place, in memory or only on disk. They read the store first, on the
// committing thread, so that nothing changes between the read and the staged change.
#include <algorithm>
#include <utility>

#include "jobs/engine/detail/engine_impl.hpp"
#include "sluice/base/check.hpp"

namespace sluice::jobs {
namespace {

constexpr std::size_t purge_page_jobs = 1000;
constexpr std::size_t list_limit_max = 1000;

constexpr const char* damaged_job =
    "is damaged in the store and cannot run again: push a new one, and delete this one";

error no_such_job(job_id id) {
  return {error_code::not_found,
          "job " + std::to_string(id) + " does not exist, or its retention period has passed", id};
}

error wrong_state(const job& j, const std::string& problem) {
  return {error_code::wrong_state, "job " + std::to_string(j.id) + " " + problem, j.id};
}

change change_of(const job& j, queue_number queue, change::op op) {
  change c;
  c.type = op;
  c.queue = queue;
  c.id = j.id;
  c.from = j.state;
  c.new_state = jobs::has_ended(j.state) ? j.state : job_state::cancelled;  // of a drop
  c.weight = weight_of(j.spec);
  return c;
}

queue_options patched(queue_options o, const queue_patch& p) {
  o.capacity_jobs = p.capacity_jobs.value_or(o.capacity_jobs);
  o.capacity_bytes = p.capacity_bytes.value_or(o.capacity_bytes);
  o.when_full = p.when_full.value_or(o.when_full);
  o.paused = p.paused.value_or(o.paused);
  o.lease_for = p.lease_for.value_or(o.lease_for);
  o.keep_done = p.keep_done.value_or(o.keep_done);
  o.keep_results = p.keep_results.value_or(o.keep_results);
  o.keep_dead = p.keep_dead.value_or(o.keep_dead);
  o.rate = p.rate.value_or(o.rate);
  o.rate_burst = p.rate_burst.value_or(o.rate_burst);
  o.concurrency = p.concurrency.value_or(o.concurrency);
  o.weight = p.weight.value_or(o.weight);
  o.key_concurrency = p.key_concurrency.value_or(o.key_concurrency);
  o.key_rate = p.key_rate.value_or(o.key_rate);
  o.key_burst = p.key_burst.value_or(o.key_burst);
  o.deliver.url = p.deliver_url.value_or(o.deliver.url);
  o.deliver.concurrency = p.deliver_concurrency.value_or(o.deliver.concurrency);
  o.deliver.timeout = p.deliver_timeout.value_or(o.deliver.timeout);
  return o;
}

}  // namespace

// Marks jobs dead whose rows a read found damaged, so that later reads skip them. A leased job was
// read before the damage: its worker's report ends it.
void engine::impl::mark_damaged() {
  std::vector<job> damaged = store_->take_damaged();
  if (damaged.empty()) return;
  const std::lock_guard hold(mutex_);
  for (job& j : damaged) {
    if (core_.is_busy(j.id) || core_.find_lease(j.id) != nullptr) continue;
    if (core_.find_queue(j.spec.queue) == nullptr) continue;
    attempt_error why = damaged_error(j, time_.now());
    stage_end(std::move(j), nullptr, {job_state::dead, std::move(why)},
              [](const result<job>&, detail::answers&) {});
  }
}

template <class T, class Act>
void engine::impl::with_job(job_id id, promise<result<T>> reply, Act act) {
  auto found = store_->get(id);
  mark_damaged();
  detail::answers out;
  {
    const std::lock_guard hold(mutex_);
    if (!found) {
      read_failed(found.error(), out);
      out.add(std::move(reply), result<T>(found.error()));
    } else if (!*found) {
      out.add(std::move(reply), result<T>(no_such_job(id)));
    } else {
      detail::lease_state* const l = core_.find_lease(id);
      if (core_.is_busy(id) || (l != nullptr && l->is_ending)) {
        // A pending change comes first; it is committed in this round.
        calls_.push_back([this, id, reply = std::move(reply), act = std::move(act)]() mutable {
          with_job(id, std::move(reply), std::move(act));
        });
      } else {
        act(**found, l, std::move(reply), out);
      }
    }
  }
  announce();
  out.deliver();
}

// Puts the job back into its window after its change failed, unless the store reports that it no
// longer exists.
void engine::impl::publish_unless_removed(const job_ptr& job, const error& why) {
  const bool is_gone = why.code == error_code::corrupt && why.job == job->id;
  if (job->state == job_state::ready && !is_gone && !job->is_damaged) core_.publish(job);
}

void engine::impl::cancel(job_id id, promise<result<job>> reply) {
  with_job(
      id, std::move(reply),
      [this](job& j, detail::lease_state* l, promise<result<job>> answer, detail::answers& out) {
        if (jobs::has_ended(j.state)) {
          return out.add(std::move(answer),
                         result<job>(wrong_state(
                             j, "has ended already: it is " + std::string(to_string(j.state)))));
        }
        stage_end(
            j, l, {job_state::cancelled, {}},
            [answer = std::move(answer)](result<job> changed, detail::answers& replies) mutable {
              replies.add(std::move(answer), std::move(changed));
            });
      });
}

void engine::impl::kill(job_id id, failure why, promise<result<job>> reply) {
  with_job(id, std::move(reply),
           [this, why = std::move(why)](job& j, detail::lease_state* l, promise<result<job>> answer,
                                        detail::answers& out) mutable {
             const auto refuse = [&](const std::string& problem) {
               out.add(std::move(answer), result<job>(wrong_state(j, problem)));
             };
             if (l != nullptr) return refuse("is running, and its worker ends it");
             if (jobs::has_ended(j.state)) {
               return refuse("has ended already: it is " + std::string(to_string(j.state)));
             }
             attempt_error last{j.attempts + 1, time_.now(), std::move(why.type),
                                std::move(why.message), std::move(why.backtrace)};
             stage_end(j, nullptr, {job_state::dead, std::move(last)},
                       [answer = std::move(answer)](result<job> changed,
                                                    detail::answers& replies) mutable {
                         replies.add(std::move(answer), std::move(changed));
                       });
           });
}

// Returns the retention of a job that ends without a worker. A killed job is kept for inspection,
// even if its own keep_for is zero.
milliseconds engine::impl::keep_after(const detail::queue_state& q, const job_spec& spec,
                                      job_state as) const {
  const milliseconds keep = core_.keep_of(q, spec, as, false);
  return as == job_state::dead && keep == milliseconds(0) ? q.options.keep_dead : keep;
}

// Precondition: the job has not ended, or is damaged. With mutex_ held, on the committing thread.
void engine::impl::stage_end(job j, detail::lease_state* l, ending as, when_changed reply) {
  detail::queue_state& q = *core_.find_queue(j.spec.queue);
  const auto before = std::make_shared<job>(j);
  if (j.state == job_state::ready && l == nullptr) core_.unpublish(j);
  if (l != nullptr && l->progress) j.progress = l->progress;
  const milliseconds keep = keep_after(q, j.spec, as.state);
  const bool has_ended = jobs::has_ended(j.state);
  change c = change_of(j, q.number, change::op::move);
  c.job = detail::core::job_for_change(before);
  if (j.is_damaged) j = damaged_view(std::move(j), time_.now());
  const job_ptr webhook_job =
      has_ended ? nullptr : core_.stage_webhook(j, as.state, {}, as.why ? &*as.why : nullptr);
  j.state = as.state;
  j.ended_at = time_.now();
  j.due_at = time_.after(keep);
  c.new_state = j.state;
  if (keep == milliseconds(0)) {
    c.type = change::op::drop;
  } else {
    c.fields = std::make_unique<change::moved>();
    c.fields->ended_at = j.ended_at;
    c.fields->due_at = j.due_at;
    c.fields->free_key = !j.spec.unique.key.empty();
    c.fields->progress = j.progress;
    c.fields->error = as.why;
  }
  if (as.why && !j.is_damaged) j.errors.push_back(*std::move(as.why));
  if (j.errors.size() > limits::errors_max) j.errors.erase(j.errors.begin());
  const std::size_t at = core_.stage(std::move(c));
  core_.mark_busy(j.id);
  core_.stage_after(
      [this, before, j, webhook_job, reply = std::move(reply)](
          const detail::commit::outcome& outcome, detail::answers& replies) mutable {
        core_.clear_busy(j.id);
        // It was skipped in this commit: no webhook reports an end.
        if (outcome.conflict != nullptr) core_.drop_own_job(webhook_job);
        if (outcome.failure != nullptr) {
          if (core_.find_lease(j.id) == nullptr) publish_unless_removed(before, *outcome.failure);
          return reply(*outcome.failure, replies);
        }
        ended_without_worker(j, replies);
        reply(std::move(j), replies);
      },
      at);
}

// Called when the job is stored as cancelled or dead.
void engine::impl::ended_without_worker(const job& j, detail::answers& replies) {
  if (detail::lease_state* const lease = core_.find_lease(j.id)) core_.mark_cancelled(*lease);
  core_.touch(*core_.find_queue(j.spec.queue));
  core_.note_due(j.due_at);
  const bool is_dead = j.state == job_state::dead;
  ++(is_dead ? core_.counters.died : core_.counters.cancelled);
  core_.note(is_dead ? event_type::dead : event_type::cancelled, j,
             is_dead ? std::string_view(j.errors.back().type) : std::string_view());
  core_.job_ended(j, replies);
}

void engine::impl::retry(job_id id, promise<result<job>> reply) {
  with_job(
      id, std::move(reply),
      [this](job& j, detail::lease_state* l, promise<result<job>> answer, detail::answers& out) {
        const auto refuse = [&](const std::string& why) {
          out.add(std::move(answer), result<job>(wrong_state(j, why)));
        };
        if (j.is_damaged) return refuse(damaged_job);
        if (l != nullptr) return refuse("is still leased by its worker");
        if (j.state == job_state::ready) return refuse("is ready already");
        if (j.state == job_state::held) {
          return refuse("is held until its dependencies and its key permit it");
        }
        if (j.state == job_state::done) return refuse("is done; push a new one to do it again");
        stage_retry(
            j, [answer = std::move(answer)](result<job> changed, detail::answers& replies) mutable {
              replies.add(std::move(answer), std::move(changed));
            });
      });
}

void engine::impl::stage_retry(job j, when_changed reply) {
  stage_ready(std::move(j), [this, reply = std::move(reply)](result<job> changed,
                                                             detail::answers& replies) mutable {
    if (changed && changed->state == job_state::ready) {
      core_.publish(std::make_shared<job>(*changed));
    }
    reply(std::move(changed), replies);
  });
}

// Makes a dead, cancelled, scheduled or retrying job ready. With mutex_ held, on the committing
// thread. `reply` is called with the job in its new state, held or ready, before it is published.
void engine::impl::stage_ready(job j, when_changed reply) {
  detail::queue_state& q = *core_.find_queue(j.spec.queue);
  change c = change_of(j, q.number, change::op::move);
  c.job = detail::core::job_for_change(std::make_shared<job>(j));
  c.new_state = job_state::ready;
  c.fields = std::make_unique<change::moved>();
  const bool had_ended = jobs::has_ended(j.state);
  if (had_ended) {
    j.attempts = 0;
    c.fields->attempts = 0;
    c.fields->ended_at = unix_time{};
  }
  j.state = job_state::ready;
  j.turn = core_.next_sequence();
  j.due_at = {};
  j.ended_at = {};
  j.has_place = false;
  c.fields->turn = j.turn;
  const std::size_t at = core_.stage(std::move(c));
  core_.mark_busy(j.id);
  core_.stage_after(
      [this, j, reply = std::move(reply)](const detail::commit::outcome& outcome,
                                          detail::answers& replies) mutable {
        core_.clear_busy(j.id);
        if (outcome.failure != nullptr) return reply(*outcome.failure, replies);
        if (outcome.held_as != nullptr) j.state = outcome.held_as->new_state;
        core_.note(event_type::retried, j);
        reply(std::move(j), replies);
      },
      at);
}

void engine::impl::lease_job(job_id id, lease_request request, promise<result<leased_job>> reply) {
  using answer = result<leased_job>;
  with_job(
      id, std::move(reply),
      [this, request = std::move(request)](job& j, detail::lease_state* l, promise<answer> caller,
                                           detail::answers& out) mutable {
        const auto refuse = [&](const std::string& why) {
          out.add(std::move(caller), answer(wrong_state(j, why)));
        };
        if (j.is_damaged) return refuse(damaged_job);
        if (j.state == job_state::held) {
          return refuse("is held until its dependencies and its key permit it");
        }
        if (j.state == job_state::done || j.state == job_state::cancelled) {
          return refuse("has ended already: it is " + std::string(to_string(j.state)));
        }
        if (l != nullptr) return refuse("is running");
        if (auto why = core_.refuse_lease(*core_.find_queue(j.spec.queue), j)) {
          return out.add(std::move(caller), answer(*std::move(why)));
        }
        if (j.state == job_state::ready) {
          return out.add(std::move(caller),
                         core_.lease_this(std::make_shared<job>(std::move(j)), request));
        }
        stage_ready(std::move(j), [this, request = std::move(request), caller = std::move(caller)](
                                      result<job> changed, detail::answers& replies) mutable {
          if (!changed) return replies.add(std::move(caller), answer(changed.error()));
          if (changed->state != job_state::ready) {
            return replies.add(
                std::move(caller),
                answer(
                    wrong_state(*changed, "is held until its dependencies and its key permit it")));
          }
          const auto ready = std::make_shared<job>(*std::move(changed));
          answer leased = core_.lease_this(ready, request);
          if (!leased) core_.publish(ready);  // a limit was reached meanwhile
          replies.add(std::move(caller), std::move(leased));
        });
      });
}

// Returns the change that deletes a job. Only the store knows in which count a damaged job is.
change engine::impl::drop_of(const job_ptr& job) {
  change c;
  if (job->is_damaged) {
    c.type = change::op::drop_damaged;
    c.id = job->id;
    return c;
  }
  c = change_of(*job, core_.find_queue(job->spec.queue)->number, change::op::drop);
  c.job = detail::core::job_for_change(job);
  return c;
}

// The queue of a damaged job may be unknown.
void engine::impl::touch_queue_of(const job& gone) {
  if (detail::queue_state* const q = core_.find_queue(gone.spec.queue)) core_.touch(*q);
}

void engine::impl::remove(job_id id, promise<void_result> reply) {
  with_job(
      id, std::move(reply),
      [this](job& j, detail::lease_state* l, promise<void_result> answer, detail::answers& out) {
        if (l != nullptr) {
          return out.add(std::move(answer),
                         void_result(wrong_state(j,
                                                 "is running: cancel it first, and wait until its "
                                                 "lease has ended")));
        }
        const auto before = std::make_shared<job>(j);
        if (j.state == job_state::ready) core_.unpublish(j);
        const std::size_t at = core_.stage(drop_of(before));
        core_.mark_busy(j.id);
        core_.stage_after(
            [this, before, answer = std::move(answer)](const detail::commit::outcome& outcome,
                                                       detail::answers& replies) mutable {
              core_.clear_busy(before->id);
              if (outcome.failure != nullptr) {
                publish_unless_removed(before, *outcome.failure);
                return replies.add(std::move(answer), void_result(*outcome.failure));
              }
              core_.note(event_type::removed, *before, "deleted");
              touch_queue_of(*before);
              core_.job_removed(
                  before->id, {error_code::not_found, "the job was deleted", before->id}, replies);
              replies.add(std::move(answer), void_result(done{}));
            },
            at);
      });
}

template <class T>
void engine::impl::wait(job_id id, promise<result<T>> reply, wait_limits limits) {
  with_job(id, std::move(reply),
           [this, limits = std::move(limits)](job& j, detail::lease_state*,
                                              promise<result<T>> answer, detail::answers& out) {
             if (!jobs::has_ended(j.state)) {
               return core_.await_end(j.id, std::move(answer), limits, out);
             }
             if constexpr (std::is_same_v<T, job>) {
               out.add(std::move(answer), result<T>(std::move(j)));
             } else {
               out.add(std::move(answer), result<T>(nullptr));
             }
           });
}
template void engine::impl::wait(job_id id, promise<result<job>> reply, wait_limits limits);
template void engine::impl::wait(job_id id, promise<result<job_ptr>> reply, wait_limits limits);

// Reads a returned job whose args were not kept in memory. The worker's call succeeds in any case.
void engine::impl::reload(const job_ptr& trimmed, detail::ack_reply reply) {
  auto found = store_->get(trimmed->id);
  detail::answers out;
  {
    const std::lock_guard hold(mutex_);
    const job_id id = trimmed->id;
    // A window may have been read meanwhile, and the job leased again.
    const bool is_free = core_.find_lease(id) == nullptr && !core_.is_busy(id);
    if (!found) {
      store_failed(found.error(), out);
      core_.read_again(*trimmed, out);
    } else if (*found && (*found)->state == job_state::ready && is_free) {
      core_.unpublish(**found);
      core_.publish_again(std::make_shared<job>(**std::move(found)), out);
    }
    reply.give(done{}, out);
  }
  announce();
  out.deliver();
}

void engine::impl::configure(std::string name, queue_patch patch,
                             promise<result<queue_info>> reply) {
  detail::answers out;
  {
    const std::lock_guard hold(mutex_);
    const auto refuse = [&](error why) {
      out.add(std::move(reply), result<queue_info>(std::move(why)));
    };
    detail::queue_state* q = nullptr;
    queue_options wanted;
    if (auto named = validate_queue_name(name); !named) {
      refuse(named.error());
    } else if (q = core_.make_queue(name); q == nullptr) {
      refuse(core_.too_many_queues());
    } else if (q->is_staged) {
      calls_.push_back([this, name, patch, reply = std::move(reply)]() mutable {
        configure(std::move(name), patch, std::move(reply));
      });
    } else {
      wanted = patched(q->options, patch);
      if (auto valid = core_.check_options(wanted); !valid) {
        refuse(valid.error());
        core_.drop_unused(*q);
      } else {
        core_.stage_queue(*q, wanted);
        core_.stage_after(
            [this, q, wanted, reply = std::move(reply)](const detail::commit::outcome& outcome,
                                                        detail::answers& replies) mutable {
              if (outcome.failure != nullptr) {
                return replies.add(std::move(reply), result<queue_info>(*outcome.failure));
              }
              core_.queue_changed(*q, std::exchange(q->options, wanted));
              has_changed_queue_ = true;
              replies.add(std::move(reply), result<queue_info>(core_.info_of(*q)));
            });
      }
    }
  }
  out.deliver();
}

// Purging, one page per round, so that other commits are not delayed.

struct engine::impl::purge_state {
  std::string name;
  promise<result<std::uint64_t>> reply;
  job_id after = 0;
  job_id up_to = 0;  // jobs pushed later stay
  std::uint64_t count = 0;
};

void engine::impl::purge(std::string name, promise<result<std::uint64_t>> reply) {
  auto p = std::make_shared<purge_state>();
  p->name = std::move(name);
  p->reply = std::move(reply);
  {
    const std::lock_guard hold(mutex_);
    p->up_to = core_.last_id();
  }
  purge_step(std::move(p));
}

void engine::impl::purge_step(std::shared_ptr<purge_state> p) {
  job_filter filter;
  {
    const std::lock_guard hold(mutex_);
    const detail::queue_state* const q = core_.find_queue(p->name);
    if (q != nullptr && q->is_stored) filter.queue = q->number;
  }
  if (!filter.queue) return p->reply.set_value(detail::core::no_such_queue(p->name));
  auto page = store_->list(filter, p->after, purge_page_jobs);
  if (!page) return answer_failed_read(page.error(), std::move(p->reply));
  const std::lock_guard hold(mutex_);
  for (job& j : page->jobs) {
    if (j.id > p->up_to || core_.is_busy(j.id) || core_.find_lease(j.id) != nullptr) continue;
    stage_purge(p, std::make_shared<job>(std::move(j)));
  }
  const bool is_last = !page->cursor || *page->cursor >= p->up_to;
  p->after = page->cursor.value_or(0);
  core_.stage_after(
      [this, p, is_last](const detail::commit::outcome& outcome, detail::answers& replies) {
        if (outcome.failure != nullptr) {
          replies.add(std::move(p->reply), result<std::uint64_t>(*outcome.failure));
        } else if (is_last) {
          replies.add(std::move(p->reply), result<std::uint64_t>(p->count));
        } else {
          calls_.push_back([this, p] { purge_step(p); });
        }
      });
}

// With mutex_ held.
void engine::impl::stage_purge(const std::shared_ptr<purge_state>& p, const job_ptr& gone) {
  if (gone->state == job_state::ready) core_.unpublish(*gone);
  const std::size_t at = core_.stage(drop_of(gone));
  core_.mark_busy(gone->id);
  core_.stage_after(
      [this, p, gone](const detail::commit::outcome& outcome, detail::answers& replies) {
        core_.clear_busy(gone->id);
        if (outcome.failure != nullptr) return publish_unless_removed(gone, *outcome.failure);
        ++p->count;
        core_.note(event_type::removed, *gone, "purged");
        touch_queue_of(*gone);
        core_.job_removed(gone->id, {error_code::not_found, "the job was deleted", gone->id},
                          replies);
      },
      at);
}

// Reads, on a thread and with a reader of their own.

future<result<job>> engine::impl::read_job(job_id id) {
  promise<result<job>> reply;
  auto answer = reply.get_future();
  auto taken = reads_.try_submit([this, id, reply = std::move(reply)]() mutable {
    auto found = reader_->get(id);
    if (!found) {
      reader_failed(found.error());
      return reply.set_value(result<job>(found.error()));
    }
    {
      const std::lock_guard hold(mutex_);
      const detail::lease_state* const l = core_.find_lease(id);
      // Leased before its commit, which is pending or has just ended.
      const bool is_new = l != nullptr && !l->is_trimmed && !l->is_ending && !l->is_cancelled;
      if (is_new && !*found) *found = *l->job;
      if (l != nullptr && *found && (*found)->state == job_state::ready) {
        (*found)->state = job_state::running;
        if (l->progress) (*found)->progress = l->progress;
      }
    }
    reply.set_value(*found ? result<job>(**std::move(found)) : result<job>(no_such_job(id)));
  });
  return taken ? std::move(answer) : make_ready_future(result<job>(no_more_reads()));
}

future<result<job_page>> engine::impl::read_list(list_request request) {
  const auto refuse = [](error why) { return make_ready_future(result<job_page>(std::move(why))); };
  if (request.limit == 0 || request.limit > list_limit_max) {
    return refuse(
        {error_code::invalid, "limit must be from 1 to " + std::to_string(list_limit_max)});
  }
  if (!request.queue.empty()) {
    if (auto named = validate_queue_name(request.queue); !named) return refuse(named.error());
  }
  if (request.state == job_state::running) {
    promise<result<job_page>> reply;
    auto answer = reply.get_future();
    auto taken = reads_.try_submit([this, request, reply = std::move(reply)]() mutable {
      reply.set_value(result<job_page>(running_page(request)));
    });
    return taken ? std::move(answer) : refuse(no_more_reads());
  }
  job_filter filter;
  filter.state = request.state;
  filter.kind = request.kind;
  filter.batch = request.batch;
  if (!request.queue.empty()) {
    const std::lock_guard hold(mutex_);
    const detail::queue_state* const q = core_.find_queue(request.queue);
    if (q == nullptr || q->number == 0) return make_ready_future(result<job_page>(job_page{}));
    filter.queue = q->number;
  }
  promise<result<job_page>> reply;
  auto answer = reply.get_future();
  auto taken = reads_.try_submit([this, filter, after = request.after, limit = request.limit,
                                  reply = std::move(reply)]() mutable {
    auto page = reader_->list(filter, after, limit);
    if (!page) reader_failed(page.error());
    if (page) {
      const std::lock_guard hold(mutex_);
      for (job& j : page->jobs) {
        const detail::lease_state* const l = core_.find_lease(j.id);
        if (j.state != job_state::ready || l == nullptr) continue;
        j.state = job_state::running;
        if (l->progress) j.progress = l->progress;
      }
      if (filter.state == job_state::ready) {
        std::erase_if(page->jobs, [](const job& j) { return j.state == job_state::running; });
      }
    }
    reply.set_value(std::move(page));
  });
  return taken ? std::move(answer) : refuse(no_more_reads());
}

// On the reading thread: passes the error to the committer.
void engine::impl::reader_failed(const error& why) {
  if (why.code != error_code::corrupt || why.job != 0) return;
  call([&](detail::core&, detail::answers& out) {
    calls_.push_back([this, why] {
      detail::answers later;
      {
        const std::lock_guard hold(mutex_);
        read_failed(why, later);
      }
      announce();
      later.deliver();
    });
    out.wake_committer = true;
  });
}

error engine::impl::no_more_reads() const {
  const std::lock_guard hold(mutex_);
  if (has_shut_down_) return {error_code::shutting_down, "the server has shut down"};
  return {error_code::overloaded, "too many reads are queued; try again later"};
}

// The store does not know which jobs are running.
job_page engine::impl::running_page(const list_request& request) {
  struct running_job {
    job_ptr job;
    bool is_trimmed = false;  // its args are on disk only
    std::optional<jobs::progress> progress{};
  };
  std::vector<running_job> found;
  {
    const std::lock_guard hold(mutex_);
    for (const auto& [id, l] : core_.leases()) {
      const bool fits = l.job->id > request.after && !l.is_cancelled &&
                        (request.queue.empty() || l.job->spec.queue == request.queue) &&
                        (request.kind.empty() || l.job->spec.kind == request.kind) &&
                        (request.batch == 0 || l.job->spec.batch == request.batch);
      if (fits) found.push_back({l.job, l.is_trimmed, l.progress});
    }
  }
  std::ranges::sort(found, {}, [](const running_job& one) { return one.job->id; });
  job_page page;
  if (found.size() > request.limit) {
    found.resize(request.limit);
    page.cursor = found.back().job->id;
  }
  for (const running_job& one : found) {
    auto whole = one.is_trimmed ? reader_->get(one.job->id) : result<std::optional<job>>(*one.job);
    if (!whole || !*whole) continue;  // it has ended meanwhile
    page.jobs.push_back(**std::move(whole));
    page.jobs.back().state = job_state::running;
    if (one.progress) page.jobs.back().progress = one.progress;
  }
  return page;
}

}  // namespace sluice::jobs
