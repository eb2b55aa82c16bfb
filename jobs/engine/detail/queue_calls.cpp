// Calls about the next jobs of a queue, in memory or only on disk. As in store_calls.cpp: on the
// committing thread, one page per round.
#include <algorithm>
#include <deque>
#include <utility>

#include "jobs/engine/detail/engine_impl.hpp"

namespace sluice::jobs {
namespace {

constexpr std::size_t peek_page_jobs = 16;  // some may have a pending change
constexpr std::size_t kick_page_jobs = 1000;

error none_to_peek(const std::string& name, job_state state) {
  return {error_code::not_found,
          "queue '" + name + "' has no job that is " + std::string(to_string(state))};
}

}  // namespace

// Returns the jobs of one state after `after`: dead jobs by id, others by due time.
result<engine::impl::found_jobs> engine::impl::find_jobs(queue_number queue, job_state state,
                                                         place_in_queue after, std::size_t limit) {
  found_jobs found;
  if (state == job_state::dead) {
    job_filter filter;
    filter.queue = queue;
    filter.state = state;
    auto page = store_->list(filter, after.id, limit);
    if (!page) return page.error();
    found.jobs = std::move(page->jobs);
    if (page->cursor) found.next = place_in_queue{{}, *page->cursor};
  } else {
    auto page = store_->timed_after(queue, after.due, limit);
    if (!page) return page.error();
    found.jobs = std::move(page->jobs);
    if (page->cursor) found.next = place_in_queue{*page->cursor, 0};
  }
  return found;
}

void engine::impl::peek(std::string name, job_state state, promise<result<job>> reply) {
  if (state == job_state::ready) return peek_ready(std::move(name), {}, std::move(reply));
  peek_page(std::move(name), state, {}, std::move(reply));
}

// Finds the front of the window, or the first free job on disk after it.
void engine::impl::peek_ready(std::string name, position after, promise<result<job>> reply) {
  result<job> found = none_to_peek(name, job_state::ready);
  bool has_more = false;
  {
    std::unique_lock hold(mutex_);
    detail::queue_state* const q = core_.find_queue(name);
    while (q != nullptr && !q->ready.empty() && !core_.key_is_free(*q, *q->ready.front())) {
      core_.pass_over(*q, *q->ready.front());
    }
    const bool is_on_disk = q != nullptr && q->ready.empty() && q->ready.is_cut();
    if (q != nullptr && !q->ready.empty()) {
      found = *q->ready.front();
    } else if (is_on_disk) {
      const queue_number number = q->number;
      if (after < q->ready.horizon()) after = q->ready.horizon();
      hold.unlock();
      auto page = store_->ready_after(number, after, {.jobs = peek_page_jobs});
      if (!page) return answer_failed_read(page.error(), std::move(reply));
      hold.lock();
      const auto is_free = [&](const job_ptr& job) {
        return !core_.is_busy(job->id) && core_.find_lease(job->id) == nullptr &&
               core_.key_is_free(*q, *job);
      };
      const auto first = std::ranges::find_if(*page, is_free);
      has_more = first == page->end() && !page->empty();
      if (first != page->end()) found = **first;
      if (has_more) after = detail::position_of(*page->back());
    }
    if (has_more) {
      calls_.push_back([this, name = std::move(name), after, reply = std::move(reply)]() mutable {
        peek_ready(std::move(name), after, std::move(reply));
      });
    }
  }
  if (!has_more) reply.set_value(std::move(found));
}

// The counts show whether there is such a job, but not how far away it is.
void engine::impl::peek_page(std::string name, job_state state, place_in_queue after,
                             promise<result<job>> reply) {
  result<job> found = none_to_peek(name, state);
  queue_number number = 0;
  {
    const std::lock_guard hold(mutex_);
    const detail::queue_state* const q = core_.find_queue(name);
    if (q != nullptr && count_of(*q, state) > 0) number = q->number;
  }
  bool has_more = false;
  if (number != 0) {
    auto page = find_jobs(number, state, after, peek_page_jobs);
    if (!page) return answer_failed_read(page.error(), std::move(reply));
    const std::lock_guard hold(mutex_);
    const auto first =
        std::ranges::find_if(page->jobs, [&](const job& j) { return !core_.is_busy(j.id); });
    has_more = first == page->jobs.end() && page->next;
    if (first != page->jobs.end()) found = std::move(*first);
    if (has_more) {
      calls_.push_back([this, name, state, next = *page->next, reply = std::move(reply)]() mutable {
        peek_page(std::move(name), state, next, std::move(reply));
      });
    }
  }
  if (!has_more) reply.set_value(std::move(found));
}

// With mutex_ held. Retrying jobs count as scheduled.
std::uint64_t engine::impl::count_of(const detail::queue_state& q, job_state state) {
  return state == job_state::dead ? q.counts.dead : q.counts.scheduled + q.counts.retrying;
}

// Kicking.

struct engine::impl::kick_state {
  std::string name;
  promise<result<kicked_jobs>> reply;
  std::uint64_t left = 0;  // how many more may be kicked
  place_in_queue after;
  std::deque<job_id> ids;
  kicked_jobs done;

  void made_ready(job_id id) {
    ++done.count;
    ids.push_back(id);
    if (ids.size() > kicked_jobs::ids_max) ids.pop_front();
  }
  kicked_jobs all() {
    done.ids.assign(ids.begin(), ids.end());
    return std::move(done);
  }
};

void engine::impl::kick(std::string name, std::uint64_t max, promise<result<kicked_jobs>> reply) {
  auto k = std::make_shared<kick_state>();
  k->reply = std::move(reply);
  bool is_there = false;
  {
    const std::lock_guard hold(mutex_);
    const detail::queue_state* const q = core_.find_queue(name);
    is_there = q != nullptr && q->is_stored;
    if (is_there) {
      if (q->counts.dead == 0) k->done.from = job_state::scheduled;
      // At most the present number: jobs that arrive meanwhile do not prolong the call.
      k->left = std::min(max, count_of(*q, k->done.from));
    }
  }
  if (!is_there) return k->reply.set_value(detail::core::no_such_queue(name));
  k->name = std::move(name);
  kick_step(std::move(k));
}

void engine::impl::kick_step(std::shared_ptr<kick_state> k) {
  if (k->left == 0) return k->reply.set_value(k->all());
  queue_number number = 0;
  {
    const std::lock_guard hold(mutex_);
    number = core_.find_queue(k->name)->number;
  }
  const auto limit = static_cast<std::size_t>(std::min<std::uint64_t>(k->left, kick_page_jobs));
  auto page = find_jobs(number, k->done.from, k->after, limit);
  if (!page) return answer_failed_read(page.error(), std::move(k->reply));
  const std::lock_guard hold(mutex_);
  for (job& j : page->jobs) {
    // A cancelled job may still be leased; a busy job has a pending change.
    if (core_.is_busy(j.id) || core_.find_lease(j.id) != nullptr) continue;
    if (j.is_damaged) continue;
    --k->left;
    const job_id id = j.id;
    stage_retry(std::move(j), [k, id](const result<job>& changed, detail::answers&) {
      if (changed) k->made_ready(id);
    });
  }
  if (page->next) k->after = *page->next;
  if (!page->next) k->left = 0;
  core_.stage_after([this, k](const detail::commit::outcome& outcome, detail::answers& replies) {
    if (outcome.failure != nullptr) {
      replies.add(std::move(k->reply), result<kicked_jobs>(*outcome.failure));
    } else if (k->left == 0) {
      replies.add(std::move(k->reply), result<kicked_jobs>(k->all()));
    } else {
      calls_.push_back([this, k] { kick_step(k); });
    }
  });
}

}  // namespace sluice::jobs
