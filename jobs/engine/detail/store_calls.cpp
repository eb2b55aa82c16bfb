// Calls about jobs that may be anywhere, in memory or only on disk: they read the store first, on
// the committing thread, so that nothing changes between what they read and what they stage.
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
          "there is no job " + std::to_string(id) +
              ": it never was, or it has ended and its retention is over",
          id};
}

error wrong_state(const job& j, const std::string& what) {
  return {error_code::wrong_state, "job " + std::to_string(j.id) + " " + what, j.id};
}

change change_of(const job& j, queue_number queue, change::op what) {
  change c;
  c.what = what;
  c.queue = queue;
  c.id = j.id;
  c.from = j.state;
  c.to = jobs::has_ended(j.state) ? j.state : job_state::cancelled;  // of a drop
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

// Marks the jobs dead whose rows a read found damaged, so that no later read meets them. A leased
// one was read before the damage: it ends as its worker reports.
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

template <class T, class What>
void engine::impl::with_job(job_id id, promise<result<T>> to, What what) {
  auto found = store_->get(id);
  mark_damaged();
  detail::answers out;
  {
    const std::lock_guard hold(mutex_);
    if (!found) {
      read_failed(found.error(), out);
      out.add(std::move(to), result<T>(found.error()));
    } else if (!*found) {
      out.add(std::move(to), result<T>(no_such_job(id)));
    } else {
      detail::lease_state* const l = core_.find_lease(id);
      if (core_.is_busy(id) || (l != nullptr && l->is_ending)) {
        // What is on its way decides first; it is committed in this round.
        calls_.push_back([this, id, to = std::move(to), what = std::move(what)]() mutable {
          with_job(id, std::move(to), std::move(what));
        });
      } else {
        what(**found, l, std::move(to), out);
      }
    }
  }
  announce();
  out.deliver();
}

// A change of it was not done: it is as before, unless it is not there.
void engine::impl::publish_unless_gone(const job_ptr& it, const error& why) {
  const bool is_gone = why.code == error_code::corrupt && why.job == it->id;
  if (it->state == job_state::ready && !is_gone && !it->is_damaged) core_.publish(it);
}

void engine::impl::cancel(job_id id, promise<result<job>> to) {
  with_job(
      id, std::move(to),
      [this](job& j, detail::lease_state* l, promise<result<job>> answer, detail::answers& out) {
        if (jobs::has_ended(j.state)) {
          return out.add(std::move(answer),
                         result<job>(wrong_state(
                             j, "has ended already: it is " + std::string(to_string(j.state)))));
        }
        stage_end(j, l, {job_state::cancelled, {}},
                  [answer = std::move(answer)](result<job> how, detail::answers& then) mutable {
                    then.add(std::move(answer), std::move(how));
                  });
      });
}

void engine::impl::kill(job_id id, failure why, promise<result<job>> to) {
  with_job(id, std::move(to),
           [this, why = std::move(why)](job& j, detail::lease_state* l, promise<result<job>> answer,
                                        detail::answers& out) mutable {
             const auto refuse = [&](const std::string& what) {
               out.add(std::move(answer), result<job>(wrong_state(j, what)));
             };
             if (l != nullptr) return refuse("is running: its worker says how it ends");
             if (jobs::has_ended(j.state)) {
               return refuse("has ended already: it is " + std::string(to_string(j.state)));
             }
             attempt_error last{j.attempts + 1, time_.now(), std::move(why.type),
                                std::move(why.message), std::move(why.backtrace)};
             stage_end(
                 j, nullptr, {job_state::dead, std::move(last)},
                 [answer = std::move(answer)](result<job> how, detail::answers& then) mutable {
                   then.add(std::move(answer), std::move(how));
                 });
           });
}

// How long a job is kept that ends without a worker. One that is killed is there to be looked at,
// also if it says of itself that nothing is kept of it.
milliseconds engine::impl::keep_after(const detail::queue_state& q, const job_spec& spec,
                                      job_state as) const {
  const milliseconds keep = core_.keep_of(q, spec, as, false);
  return as == job_state::dead && keep == milliseconds(0) ? q.options.keep_dead : keep;
}

// Of one that has not ended. With the lock held, on the committer.
void engine::impl::stage_end(job j, detail::lease_state* l, ending as, when_changed told) {
  detail::queue_state& q = *core_.find_queue(j.spec.queue);
  const auto before = std::make_shared<job>(j);
  if (j.state == job_state::ready && l == nullptr) core_.unpublish(j);
  if (l != nullptr && l->how_far) j.progress = l->how_far;
  const milliseconds keep = keep_after(q, j.spec, as.state);
  const bool has_ended = jobs::has_ended(j.state);
  change c = change_of(j, q.number, change::op::move);
  c.it = detail::core::said_of(before);
  if (j.is_damaged) j = damaged_view(std::move(j), time_.now());
  const job_ptr tells =
      has_ended ? nullptr : core_.stage_webhook(j, as.state, {}, as.why ? &*as.why : nullptr);
  j.state = as.state;
  j.ended_at = time_.now();
  j.due_at = time_.after(keep);
  c.to = j.state;
  if (keep == milliseconds(0)) {
    c.what = change::op::drop;
  } else {
    c.how = std::make_unique<change::moved>();
    c.how->ended_at = j.ended_at;
    c.how->due_at = j.due_at;
    c.how->free_key = !j.spec.unique.key.empty();
    c.how->progress = j.progress;
    c.how->error = as.why;
  }
  if (as.why && !j.is_damaged) j.errors.push_back(*std::move(as.why));
  if (j.errors.size() > limits::errors_max) j.errors.erase(j.errors.begin());
  const std::size_t at = core_.stage(std::move(c));
  core_.mark_busy(j.id);
  core_.stage_after(
      [this, before, j, tells, told = std::move(told)](const detail::commit::outcome& how,
                                                       detail::answers& then) mutable {
        core_.not_busy(j.id);
        // It was skipped in this commit: nobody is told that it has ended.
        if (how.clash != nullptr) core_.take_back(tells);
        if (how.why_not != nullptr) {
          if (core_.find_lease(j.id) == nullptr) publish_unless_gone(before, *how.why_not);
          return told(*how.why_not, then);
        }
        ended_without_worker(j, then);
        told(std::move(j), then);
      },
      at);
}

// It is stored as cancelled or dead.
void engine::impl::ended_without_worker(const job& j, detail::answers& then) {
  if (detail::lease_state* const lease = core_.find_lease(j.id)) core_.mark_cancelled(*lease);
  core_.touch(*core_.find_queue(j.spec.queue));
  core_.note_due(j.due_at);
  const bool is_dead = j.state == job_state::dead;
  ++(is_dead ? core_.counters.died : core_.counters.cancelled);
  core_.note(is_dead ? event_type::dead : event_type::cancelled, j,
             is_dead ? std::string_view(j.errors.back().type) : std::string_view());
  core_.job_ended(j, then);
}

void engine::impl::retry(job_id id, promise<result<job>> to) {
  with_job(
      id, std::move(to),
      [this](job& j, detail::lease_state* l, promise<result<job>> answer, detail::answers& out) {
        const auto refuse = [&](const std::string& why) {
          out.add(std::move(answer), result<job>(wrong_state(j, why)));
        };
        if (j.is_damaged) return refuse(damaged_job);
        if (l != nullptr) return refuse("is still held by its worker");
        if (j.state == job_state::ready) return refuse("is ready already");
        if (j.state == job_state::held) return refuse("is held until its turn has come");
        if (j.state == job_state::done) return refuse("is done; push a new one to do it again");
        stage_retry(j,
                    [answer = std::move(answer)](result<job> how, detail::answers& then) mutable {
                      then.add(std::move(answer), std::move(how));
                    });
      });
}

void engine::impl::stage_retry(job j, when_changed told) {
  stage_ready(std::move(j),
              [this, told = std::move(told)](result<job> how, detail::answers& then) mutable {
                if (how && how->state == job_state::ready) {
                  core_.publish(std::make_shared<job>(*how));
                }
                told(std::move(how), then);
              });
}

// Of one that is dead, cancelled, scheduled or retrying. With the lock held, on the committer.
// `told` is called with the job as it is then, held or ready; nobody else has it yet.
void engine::impl::stage_ready(job j, when_changed told) {
  detail::queue_state& q = *core_.find_queue(j.spec.queue);
  change c = change_of(j, q.number, change::op::move);
  c.it = detail::core::said_of(std::make_shared<job>(j));
  c.to = job_state::ready;
  c.how = std::make_unique<change::moved>();
  const bool had_ended = jobs::has_ended(j.state);
  if (had_ended) {
    j.attempts = 0;
    c.how->attempts = 0;
    c.how->ended_at = unix_time{};
  }
  j.state = job_state::ready;
  j.turn = core_.next_turn();
  j.due_at = {};
  j.ended_at = {};
  j.has_place = false;
  c.how->turn = j.turn;
  const std::size_t at = core_.stage(std::move(c));
  core_.mark_busy(j.id);
  core_.stage_after(
      [this, j, told = std::move(told)](const detail::commit::outcome& how,
                                        detail::answers& then) mutable {
        core_.not_busy(j.id);
        if (how.why_not != nullptr) return told(*how.why_not, then);
        if (how.instead != nullptr) j.state = how.instead->to;
        core_.note(event_type::retried, j);
        told(std::move(j), then);
      },
      at);
}

void engine::impl::lease_job(job_id id, lease_request what, promise<result<leased_job>> to) {
  using answer = result<leased_job>;
  with_job(id, std::move(to),
           [this, what = std::move(what)](job& j, detail::lease_state* l, promise<answer> reply,
                                          detail::answers& out) mutable {
             const auto refuse = [&](const std::string& why) {
               out.add(std::move(reply), answer(wrong_state(j, why)));
             };
             if (j.is_damaged) return refuse(damaged_job);
             if (j.state == job_state::held) return refuse("is held until its turn has come");
             if (j.state == job_state::done || j.state == job_state::cancelled) {
               return refuse("has ended already: it is " + std::string(to_string(j.state)));
             }
             if (l != nullptr) return refuse("is running");
             if (auto why = core_.refuse_lease(*core_.find_queue(j.spec.queue), j)) {
               return out.add(std::move(reply), answer(*std::move(why)));
             }
             if (j.state == job_state::ready) {
               return out.add(std::move(reply),
                              core_.lease_this(std::make_shared<job>(std::move(j)), what));
             }
             stage_ready(std::move(j), [this, what = std::move(what), reply = std::move(reply)](
                                           result<job> how, detail::answers& then) mutable {
               if (!how) return then.add(std::move(reply), answer(how.error()));
               if (how->state != job_state::ready) {
                 return then.add(std::move(reply),
                                 answer(wrong_state(*how, "is held until its turn has come")));
               }
               const auto ready = std::make_shared<job>(*std::move(how));
               answer leased = core_.lease_this(ready, what);
               if (!leased) core_.publish(ready);  // as many run by now as may
               then.add(std::move(reply), std::move(leased));
             });
           });
}

// A job that is to be forgotten. Where a damaged one is counted, only the store can find out.
change engine::impl::drop_of(const job_ptr& it) {
  change c;
  if (it->is_damaged) {
    c.what = change::op::drop_damaged;
    c.id = it->id;
    return c;
  }
  c = change_of(*it, core_.find_queue(it->spec.queue)->number, change::op::drop);
  c.it = detail::core::said_of(it);
  return c;
}

// The queue of a damaged job may not be known.
void engine::impl::touch_queue_of(const job& gone) {
  if (detail::queue_state* const q = core_.find_queue(gone.spec.queue)) core_.touch(*q);
}

void engine::impl::remove(job_id id, promise<void_result> to) {
  with_job(
      id, std::move(to),
      [this](job& j, detail::lease_state* l, promise<void_result> answer, detail::answers& out) {
        if (l != nullptr) {
          return out.add(std::move(answer),
                         void_result(wrong_state(j,
                                                 "is running: cancel it first, and wait until its "
                                                 "worker has let go")));
        }
        const auto before = std::make_shared<job>(j);
        if (j.state == job_state::ready) core_.unpublish(j);
        const std::size_t at = core_.stage(drop_of(before));
        core_.mark_busy(j.id);
        core_.stage_after(
            [this, before, answer = std::move(answer)](const detail::commit::outcome& how,
                                                       detail::answers& then) mutable {
              core_.not_busy(before->id);
              if (how.why_not != nullptr) {
                publish_unless_gone(before, *how.why_not);
                return then.add(std::move(answer), void_result(*how.why_not));
              }
              core_.note(event_type::removed, *before, "deleted");
              touch_queue_of(*before);
              core_.job_gone(before->id, {error_code::not_found, "the job was deleted", before->id},
                             then);
              then.add(std::move(answer), void_result(done{}));
            },
            at);
      });
}

void engine::impl::wait(job_id id, promise<result<job>> to, wait_limits limits) {
  with_job(id, std::move(to),
           [this, limits = std::move(limits)](job& j, detail::lease_state*,
                                              promise<result<job>> answer, detail::answers& out) {
             if (jobs::has_ended(j.state)) {
               return out.add(std::move(answer), result<job>(std::move(j)));
             }
             core_.await_end(j.id, std::move(answer), limits, out);
           });
}

// A job that was given back, and whose args were not kept in memory. For its worker that is done,
// whatever becomes of it here.
void engine::impl::reload(const job_ptr& trimmed, detail::ack_reply to) {
  auto found = store_->get(trimmed->id);
  detail::answers out;
  {
    const std::lock_guard hold(mutex_);
    const job_id id = trimmed->id;
    // A window may have been read in between, and the job taken again.
    const bool is_free = core_.find_lease(id) == nullptr && !core_.is_busy(id);
    if (!found) {
      store_failed(found.error(), out);
      core_.read_again(*trimmed, out);
    } else if (*found && (*found)->state == job_state::ready && is_free) {
      core_.unpublish(**found);
      core_.publish_again(std::make_shared<job>(**std::move(found)), out);
    }
    to.give(done{}, out);
  }
  announce();
  out.deliver();
}

void engine::impl::configure(std::string name, queue_patch patch, promise<result<queue_info>> to) {
  detail::answers out;
  {
    const std::lock_guard hold(mutex_);
    const auto refuse = [&](error why) {
      out.add(std::move(to), result<queue_info>(std::move(why)));
    };
    detail::queue_state* q = nullptr;
    queue_options wanted;
    if (auto named = validate_queue_name(name); !named) {
      refuse(named.error());
    } else if (q = core_.make_queue(name); q == nullptr) {
      refuse(core_.too_many_queues());
    } else if (q->is_staged) {
      calls_.push_back([this, name, patch, to = std::move(to)]() mutable {
        configure(std::move(name), patch, std::move(to));
      });
    } else {
      wanted = patched(q->options, patch);
      if (auto valid = core_.check_options(wanted); !valid) {
        refuse(valid.error());
        core_.drop_unused(*q);
      } else {
        core_.stage_queue(*q, wanted);
        core_.stage_after([this, q, wanted, to = std::move(to)](const detail::commit::outcome& how,
                                                                detail::answers& then) mutable {
          if (how.why_not != nullptr) {
            return then.add(std::move(to), result<queue_info>(*how.why_not));
          }
          core_.queue_changed(*q, std::exchange(q->options, wanted));
          has_changed_queue_ = true;
          then.add(std::move(to), result<queue_info>(core_.info_of(*q)));
        });
      }
    }
  }
  out.deliver();
}

// Purging, a page a round, so that others get their commits in between.

struct engine::impl::purge_state {
  std::string name;
  promise<result<std::uint64_t>> to;
  job_id after = 0;
  job_id up_to = 0;  // what is pushed later stays
  std::uint64_t count = 0;
};

void engine::impl::purge(std::string name, promise<result<std::uint64_t>> to) {
  auto p = std::make_shared<purge_state>();
  p->name = std::move(name);
  p->to = std::move(to);
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
  if (!filter.queue) return p->to.set_value(detail::core::no_such_queue(p->name));
  auto page = store_->list(filter, p->after, purge_page_jobs);
  if (!page) return answer_failed_read(page.error(), std::move(p->to));
  const std::lock_guard hold(mutex_);
  for (job& j : page->jobs) {
    if (j.id > p->up_to || core_.is_busy(j.id) || core_.find_lease(j.id) != nullptr) continue;
    stage_purge(p, std::make_shared<job>(std::move(j)));
  }
  const bool is_last = !page->cursor || *page->cursor >= p->up_to;
  p->after = page->cursor.value_or(0);
  core_.stage_after([this, p, is_last](const detail::commit::outcome& how, detail::answers& then) {
    if (how.why_not != nullptr) {
      then.add(std::move(p->to), result<std::uint64_t>(*how.why_not));
    } else if (is_last) {
      then.add(std::move(p->to), result<std::uint64_t>(p->count));
    } else {
      calls_.push_back([this, p] { purge_step(p); });
    }
  });
}

// With the lock held.
void engine::impl::stage_purge(const std::shared_ptr<purge_state>& p, const job_ptr& gone) {
  if (gone->state == job_state::ready) core_.unpublish(*gone);
  const std::size_t at = core_.stage(drop_of(gone));
  core_.mark_busy(gone->id);
  core_.stage_after(
      [this, p, gone](const detail::commit::outcome& how, detail::answers& then) {
        core_.not_busy(gone->id);
        if (how.why_not != nullptr) return publish_unless_gone(gone, *how.why_not);
        ++p->count;
        core_.note(event_type::removed, *gone, "purged");
        touch_queue_of(*gone);
        core_.job_gone(gone->id, {error_code::not_found, "the job was deleted", gone->id}, then);
      },
      at);
}

// Looking, on a thread and with a reader of its own.

future<result<job>> engine::impl::read_job(job_id id) {
  promise<result<job>> to;
  auto answer = to.get_future();
  auto taken = reads_.try_submit([this, id, to = std::move(to)]() mutable {
    auto found = reader_->get(id);
    if (!found) {
      reader_failed(found.error());
      return to.set_value(result<job>(found.error()));
    }
    {
      const std::lock_guard hold(mutex_);
      const detail::lease_state* const l = core_.find_lease(id);
      // A worker has it already; it is being stored, or was just now.
      const bool is_new = l != nullptr && !l->is_trimmed && !l->is_ending && !l->is_cancelled;
      if (is_new && !*found) *found = *l->it;
      if (l != nullptr && *found && (*found)->state == job_state::ready) {
        (*found)->state = job_state::running;
        if (l->how_far) (*found)->progress = l->how_far;
      }
    }
    to.set_value(*found ? result<job>(**std::move(found)) : result<job>(no_such_job(id)));
  });
  return taken ? std::move(answer) : make_ready_future(result<job>(no_more_reads()));
}

future<result<job_page>> engine::impl::read_list(list_request what) {
  const auto refuse = [](error why) { return make_ready_future(result<job_page>(std::move(why))); };
  if (what.limit == 0 || what.limit > list_limit_max) {
    return refuse(
        {error_code::invalid, "limit must be from 1 to " + std::to_string(list_limit_max)});
  }
  if (!what.queue.empty()) {
    if (auto named = validate_queue_name(what.queue); !named) return refuse(named.error());
  }
  if (what.state == job_state::running) {
    promise<result<job_page>> to;
    auto answer = to.get_future();
    auto taken = reads_.try_submit([this, what, to = std::move(to)]() mutable {
      to.set_value(result<job_page>(running_page(what)));
    });
    return taken ? std::move(answer) : refuse(no_more_reads());
  }
  job_filter filter;
  filter.state = what.state;
  filter.kind = what.kind;
  filter.batch = what.batch;
  if (!what.queue.empty()) {
    const std::lock_guard hold(mutex_);
    const detail::queue_state* const q = core_.find_queue(what.queue);
    if (q == nullptr || q->number == 0) return make_ready_future(result<job_page>(job_page{}));
    filter.queue = q->number;
  }
  promise<result<job_page>> to;
  auto answer = to.get_future();
  auto taken = reads_.try_submit(
      [this, filter, after = what.after, limit = what.limit, to = std::move(to)]() mutable {
        auto page = reader_->list(filter, after, limit);
        if (!page) reader_failed(page.error());
        if (page) {
          const std::lock_guard hold(mutex_);
          for (job& j : page->jobs) {
            const detail::lease_state* const l = core_.find_lease(j.id);
            if (j.state != job_state::ready || l == nullptr) continue;
            j.state = job_state::running;
            if (l->how_far) j.progress = l->how_far;
          }
          if (filter.state == job_state::ready) {
            std::erase_if(page->jobs, [](const job& j) { return j.state == job_state::running; });
          }
        }
        to.set_value(std::move(page));
      });
  return taken ? std::move(answer) : refuse(no_more_reads());
}

// On the thread for reading: the committer has to know.
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
  if (is_over_) return {error_code::shutting_down, "the server has shut down"};
  return {error_code::overloaded, "too many calls read already; try again later"};
}

// The store does not know which jobs run.
job_page engine::impl::running_page(const list_request& what) {
  struct running_job {
    job_ptr it;
    bool is_trimmed = false;  // its args are on disk only
    std::optional<progress> how_far{};
  };
  std::vector<running_job> found;
  {
    const std::lock_guard hold(mutex_);
    for (const auto& [id, l] : core_.leases()) {
      const bool fits = l.it->id > what.after && !l.is_cancelled &&
                        (what.queue.empty() || l.it->spec.queue == what.queue) &&
                        (what.kind.empty() || l.it->spec.kind == what.kind) &&
                        (what.batch == 0 || l.it->spec.batch == what.batch);
      if (fits) found.push_back({l.it, l.is_trimmed, l.how_far});
    }
  }
  std::ranges::sort(found, {}, [](const running_job& one) { return one.it->id; });
  job_page page;
  if (found.size() > what.limit) {
    found.resize(what.limit);
    page.cursor = found.back().it->id;
  }
  for (const running_job& one : found) {
    auto whole = one.is_trimmed ? reader_->get(one.it->id) : result<std::optional<job>>(*one.it);
    if (!whole || !*whole) continue;  // it has ended meanwhile
    page.jobs.push_back(**std::move(whole));
    page.jobs.back().state = job_state::running;
    if (one.how_far) page.jobs.back().progress = one.how_far;
  }
  return page;
}

}  // namespace sluice::jobs
