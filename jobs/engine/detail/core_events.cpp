// Events and their waiting readers, and the jobs that the server itself adds.
#include <utility>

#include "jobs/engine/detail/core.hpp"
#include "jobs/json/webhook.hpp"

namespace sluice::jobs::detail {
namespace {

constexpr std::size_t page_max = 1000;

}  // namespace

// A reader that waits until there is an event.
class core::event_wait final : public waiting {
 public:
  event_wait(event_request asked, event_page so_far, promise<result<event_page>> answer_to)
      : waiting(kind::other),
        request(std::move(asked)),
        page(std::move(so_far)),
        reply(std::move(answer_to)) {}
  void refuse(error why, answers& out) override {
    if (why.code == error_code::timed_out) {
      return out.add(std::move(reply), result<event_page>(page));
    }
    out.add(std::move(reply), result<event_page>(std::move(why)));
  }

  event_request request;
  event_page page;  // without events, up to the last one checked
  promise<result<event_page>> reply;
};

void core::add_event(job_event e) {
  if (options_.events_kept == 0) return;
  e.number = next_event_++;
  e.at = time_.now();
  ++counters.events;
  if (events_.size() >= options_.events_kept) events_.pop_front();
  events_.push_back(std::move(e));
}

void core::note(event_type type, const job& j, std::string_view text) {
  if (options_.events_kept == 0) return;
  job_event e;
  e.type = type;
  e.job = j.id;
  e.queue = j.spec.queue;
  const bool begins = type == event_type::started || type == event_type::retrying ||
                      type == event_type::done || type == event_type::dead;
  e.attempt = j.attempts + (begins ? 1 : 0);
  e.batch = j.spec.batch;
  e.text = text;
  add_event(std::move(e));
}

void core::note_batch(const batch_info& b) {
  job_event e;
  e.type = b.state() == batch_state::done ? event_type::batch_done : event_type::batch_failed;
  e.job = b.id;
  e.batch = b.id;
  e.text = b.name;
  add_event(std::move(e));
}

bool core::fits(const event_request& request, const job_event& e) const {
  if (!request.queue.empty() && request.queue != e.queue) return false;
  if (request.job != 0 && request.job != e.job) return false;
  if (request.batch != 0 && request.batch != e.batch) return false;
  return request.types.empty() || std::ranges::find(request.types, e.type) != request.types.end();
}

// Returns the events after `request.after`, and advances it.
event_page core::read_events(event_request& request) const {
  event_page page;
  page.epoch = epoch_;
  const std::uint64_t first = events_.empty() ? next_event_ : events_.front().number;
  std::uint64_t from = *request.after + 1;
  if (request.epoch != 0 && request.epoch != epoch_) {
    page.missed = true;
    from = first;
  } else if (from < first || from > next_event_) {
    page.missed = true;
    from = first;
  }
  std::uint64_t at = from;
  for (; at < next_event_ && page.events.size() < request.limit; ++at) {
    const job_event& e = events_[at - first];
    if (fits(request, e)) page.events.push_back(e);
  }
  page.next = at - 1;
  request.after = page.next;
  request.epoch = epoch_;
  return page;
}

void core::await_events(event_request request, promise<result<event_page>> reply,
                        const wait_limits& limits, answers& out) {
  const auto answer = [&](result<event_page> with) { out.add(std::move(reply), std::move(with)); };
  if (request.limit == 0 || request.limit > page_max) {
    return answer(error{error_code::invalid, "limit must be from 1 to 1000"});
  }
  if (closed_) return answer(error{error_code::shutting_down, "the server is shutting down"});
  if (!request.after) {
    request.after = next_event_ - 1;
    request.epoch = epoch_;
  }
  event_page page = read_events(request);
  if (!page.events.empty() || page.missed || limits.deadline.passed()) {
    return answer(std::move(page));
  }
  if (auto why = refuse_wait(request.queue.size())) return answer(*std::move(why));
  const std::stop_token cancel = reply.stop_token();
  auto wait = std::make_unique<event_wait>(std::move(request), std::move(page), std::move(reply));
  wait->bytes = wait->request.queue.size();
  park(std::move(wait), {&event_waits_}, limits, cancel);
}

// Answers waiting readers if events were added since the last check.
void core::answer_event_waits(answers& out) {
  if (event_waits_.empty() || events_checked_ + 1 == next_event_) return;
  events_checked_ = next_event_ - 1;
  for (auto at = event_waits_.begin(); at != event_waits_.end();) {
    auto& w = static_cast<event_wait&>(**at++);
    event_page page = read_events(w.request);
    if (page.events.empty() && !page.missed) {
      w.page = std::move(page);
      continue;
    }
    std::unique_ptr<waiting> ended = unpark(w);
    out.add(std::move(w.reply), result<event_page>(std::move(page)));
    out.destroy_later(std::move(ended));
  }
}

// Webhooks.

std::optional<core::own_job> core::stage_own(job_spec spec) {
  queue_state* const q = make_queue(spec.queue);
  if (q == nullptr) return std::nullopt;
  if (!q->is_stored && !q->is_staged) stage_queue(*q, q->options);
  own_job own;
  own.job = std::make_shared<job>();
  own.job->spec = std::move(spec);
  own.job->created_at = time_.now();
  own.job->id = next_id_++;
  own.job->turn = own.job->id;
  change c;
  c.type = change::op::add;
  c.queue = q->number;
  c.id = own.job->id;
  c.job = own.job;
  // Keeps the queue in memory until the commit.
  ++q->staged_jobs;
  own.change = stage(std::move(c));
  stage_after(
      [this, q, job = own.job](const commit::outcome& outcome, answers&) {
        --q->staged_jobs;
        if (outcome.failure != nullptr || outcome.conflict != nullptr) {
          job->id = 0;
          return;
        }
        ++counters.pushed;
        if (outcome.held_as != nullptr) {
          job->state = outcome.held_as->new_state;
          job->blockers = outcome.held_as->blockers;
        }
        note(event_type::pushed, *job);
        if (job->state == job_state::ready) publish(job);
      },
      own.change);
  return own;
}

void core::drop_own_job(const job_ptr& own) {
  if (own == nullptr || own->id == 0) return;
  unpublish(*own);
  change c;
  c.type = change::op::drop;
  c.queue = find_queue(own->spec.queue)->number;
  c.id = own->id;
  c.from = own->state;
  c.new_state = job_state::cancelled;
  c.weight = jobs::weight_of(own->spec);
  const std::size_t at = stage(std::move(c));
  mark_busy(own->id);
  stage_after(
      [this, own](const commit::outcome& outcome, answers& replies) {
        clear_busy(own->id);
        if (outcome.failure == nullptr) {
          note(event_type::removed, *own, "deleted");
          touch(*find_queue(own->spec.queue));
          job_removed(own->id, {error_code::not_found, "the job was deleted", own->id}, replies);
        } else if (outcome.failure->code != error_code::corrupt ||
                   outcome.failure->job != own->id) {
          publish(own);
        }
      },
      at);
}

job_ptr core::stage_webhook(const job& j, job_state as, const std::optional<payload>& value,
                            const attempt_error* why) {
  if (j.spec.webhook.empty()) return nullptr;
  job_spec spec;
  spec.queue = webhook_queue;
  spec.kind = "sluice.webhook";
  spec.args.data = json::webhook_document(j, as, time_.now(), value, why);
  spec.retry = {.attempts_max = 12, .first = milliseconds(5000)};
  const std::optional<own_job> own = stage_own(std::move(spec));
  if (!own) return nullptr;
  ++counters.webhooks;
  return own->job;
}

}  // namespace sluice::jobs::detail
