// What happened, for those who want to hear of it, and what is posted about it.
#include <utility>

#include "jobs/engine/detail/core.hpp"
#include "jobs/json/webhook.hpp"

namespace sluice::jobs::detail {
namespace {

constexpr std::size_t page_max = 1000;

}  // namespace

// A page of events, for one who waits until there is one.
class core::event_wait final : public waiting {
 public:
  event_wait(event_request asked, event_page so_far, promise<result<event_page>> answer_to)
      : waiting(kind::other),
        what(std::move(asked)),
        page(std::move(so_far)),
        to(std::move(answer_to)) {}
  void refuse(error why, answers& out) override {
    if (why.code == error_code::timed_out) return out.add(std::move(to), result<event_page>(page));
    out.add(std::move(to), result<event_page>(std::move(why)));
  }

  event_request what;
  event_page page;  // without events, up to where it has looked
  promise<result<event_page>> to;
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

bool core::fits(const event_request& what, const job_event& e) const {
  if (!what.queue.empty() && what.queue != e.queue) return false;
  if (what.job != 0 && what.job != e.job) return false;
  if (what.batch != 0 && what.batch != e.batch) return false;
  return what.types.empty() || std::ranges::find(what.types, e.type) != what.types.end();
}

// Those after `what.after`, which it moves on.
event_page core::read_events(event_request& what) const {
  event_page page;
  page.epoch = epoch_;
  const std::uint64_t first = events_.empty() ? next_event_ : events_.front().number;
  std::uint64_t from = *what.after + 1;
  if (what.epoch != 0 && what.epoch != epoch_) {
    page.missed = true;
    from = first;
  } else if (from < first || from > next_event_) {
    page.missed = true;
    from = first;
  }
  std::uint64_t at = from;
  for (; at < next_event_ && page.events.size() < what.limit; ++at) {
    const job_event& e = events_[at - first];
    if (fits(what, e)) page.events.push_back(e);
  }
  page.next = at - 1;
  what.after = page.next;
  what.epoch = epoch_;
  return page;
}

void core::await_events(event_request what, promise<result<event_page>> to,
                        const wait_limits& limits, answers& out) {
  const auto answer = [&](result<event_page> with) { out.add(std::move(to), std::move(with)); };
  if (what.limit == 0 || what.limit > page_max) {
    return answer(error{error_code::invalid, "limit must be from 1 to 1000"});
  }
  if (closed_) return answer(error{error_code::shutting_down, "the server is shutting down"});
  if (!what.after) {
    what.after = next_event_ - 1;
    what.epoch = epoch_;
  }
  event_page page = read_events(what);
  if (!page.events.empty() || page.missed || limits.deadline.passed()) {
    return answer(std::move(page));
  }
  if (auto why = refuse_wait(what.queue.size())) return answer(*std::move(why));
  const std::stop_token cancel = to.stop_token();
  auto wait = std::make_unique<event_wait>(std::move(what), std::move(page), std::move(to));
  wait->bytes = wait->what.queue.size();
  hold(std::move(wait), {&event_waits_}, limits, cancel);
}

// Those who wait, when something has happened since they were looked at.
void core::tell_events(answers& out) {
  if (event_waits_.empty() || told_events_ + 1 == next_event_) return;
  told_events_ = next_event_ - 1;
  for (auto at = event_waits_.begin(); at != event_waits_.end();) {
    auto& w = static_cast<event_wait&>(**at++);
    event_page page = read_events(w.what);
    if (page.events.empty() && !page.missed) {
      w.page = std::move(page);
      continue;
    }
    std::unique_ptr<waiting> mine = release_wait(w);
    out.add(std::move(w.to), result<event_page>(std::move(page)));
    out.bury(std::move(mine));
  }
}

// Webhooks.

std::optional<core::own_job> core::stage_own(job_spec spec) {
  queue_state* const q = make_queue(spec.queue);
  if (q == nullptr) return std::nullopt;
  if (!q->is_stored && !q->is_staged) stage_queue(*q, q->options);
  own_job mine;
  mine.it = std::make_shared<job>();
  mine.it->spec = std::move(spec);
  mine.it->created_at = time_.now();
  mine.it->id = next_id_++;
  mine.it->turn = mine.it->id;
  change c;
  c.what = change::op::add;
  c.queue = q->number;
  c.id = mine.it->id;
  c.it = mine.it;
  // Its queue must not go while this is on its way.
  ++q->staged_jobs;
  mine.change = stage(std::move(c));
  stage_after(
      [this, q, it = mine.it](const commit::outcome& how, answers&) {
        --q->staged_jobs;
        if (how.why_not != nullptr || how.clash != nullptr) {
          it->id = 0;
          return;
        }
        ++counters.pushed;
        if (how.instead != nullptr) {
          it->state = how.instead->to;
          it->blockers = how.instead->blockers;
        }
        note(event_type::pushed, *it);
        if (it->state == job_state::ready) publish(it);
      },
      mine.change);
  return mine;
}

void core::take_back(const job_ptr& own) {
  if (own == nullptr || own->id == 0) return;
  unpublish(*own);
  change c;
  c.what = change::op::drop;
  c.queue = find_queue(own->spec.queue)->number;
  c.id = own->id;
  c.from = own->state;
  c.to = job_state::cancelled;
  c.weight = jobs::weight_of(own->spec);
  const std::size_t at = stage(std::move(c));
  mark_busy(own->id);
  stage_after(
      [this, own](const commit::outcome& how, answers& then) {
        not_busy(own->id);
        if (how.why_not == nullptr) {
          note(event_type::removed, *own, "deleted");
          touch(*find_queue(own->spec.queue));
          job_gone(own->id, {error_code::not_found, "the job was deleted", own->id}, then);
        } else if (how.why_not->code != error_code::corrupt || how.why_not->job != own->id) {
          publish(own);
        }
      },
      at);
}

job_ptr core::stage_webhook(const job& j, job_state as, const std::optional<payload>& value,
                            const attempt_error* why) {
  if (j.spec.webhook.empty()) return nullptr;
  job_spec tell;
  tell.queue = webhook_queue;
  tell.kind = "sluice.webhook";
  tell.args.data = json::webhook_document(j, as, time_.now(), value, why);
  tell.retry = {.attempts_max = 12, .first = milliseconds(5000)};
  const std::optional<own_job> told = stage_own(std::move(tell));
  if (!told) return nullptr;
  ++counters.webhooks;
  return told->it;
}

}  // namespace sluice::jobs::detail
