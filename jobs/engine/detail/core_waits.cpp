// Two kinds of waiting call: for the end of a job, and until no job is leased. Waiting pushes are
// in core_push.cpp, leases in core_lease.cpp, readers of events in core_events.cpp. All use `park`
// and `unpark` of core.cpp.
#include <memory>
#include <utility>

#include "jobs/engine/detail/core.hpp"

namespace sluice::jobs::detail {

class core::end_wait final : public waiting {
 public:
  explicit end_wait(end_reply answer_to) : waiting(kind::other), reply(std::move(answer_to)) {}
  void refuse(error why, answers& out) override { end_wait::refuse(reply, std::move(why), out); }
  static void refuse(end_reply& reply, error why, answers& out) {
    if (auto* const copied = std::get_if<promise<result<job>>>(&reply)) {
      out.add(std::move(*copied), result<job>(std::move(why)));
    } else {
      out.add(std::get<promise<result<job_ptr>>>(std::move(reply)),
              result<job_ptr>(std::move(why)));
    }
  }

  end_reply reply;
};

class core::drain_wait final : public waiting {
 public:
  explicit drain_wait(promise<status> answer_to)
      : waiting(kind::other), reply(std::move(answer_to)) {}
  void refuse(error why, answers& out) override {
    out.add(std::move(reply), status(why.code == error_code::timed_out ? status::timed_out
                                     : why.code == error_code::stopped ? status::stopped
                                                                       : status::closed));
  }

  promise<status> reply;
};

void core::await_end(job_id id, end_reply reply, const wait_limits& limits, answers& out) {
  if (auto why = refuse_wait(0)) return end_wait::refuse(reply, *std::move(why), out);
  const std::stop_token cancel =
      std::visit([](const auto& answer) { return answer.stop_token(); }, reply);
  auto wait = std::make_unique<end_wait>(std::move(reply));
  wait->on_left = [this, id] {
    if (const auto line = ends_.find(id); line != ends_.end() && line->second.empty()) {
      ends_.erase(line);
    }
  };
  park(std::move(wait), {&ends_[id]}, limits, cancel);
}

void core::job_ended(const job& j, answers& out) {
  if (!ends_.empty()) answer_end_waits(j.id, j, out);  // which copies the job
}

void core::job_removed(job_id id, const error& why, answers& out) {
  answer_end_waits(id, why, out);
}

void core::answer_end_waits(job_id id, const result<job>& outcome, answers& out) {
  job_ptr shared;
  // When the last waiter leaves the line, on_left removes the line.
  for (auto line = ends_.find(id); line != ends_.end(); line = ends_.find(id)) {
    auto& first = static_cast<end_wait&>(*line->second.front());
    std::unique_ptr<waiting> ended = unpark(first);
    if (!outcome) {
      end_wait::refuse(first.reply, outcome.error(), out);
    } else if (auto* const copied = std::get_if<promise<result<job>>>(&first.reply)) {
      out.add(std::move(*copied), result<job>(outcome));
    } else {
      if (shared == nullptr) shared = std::make_shared<const job>(*outcome);
      out.add(std::get<promise<result<job_ptr>>>(std::move(first.reply)), result<job_ptr>(shared));
    }
    out.destroy_later(std::move(ended));
  }
}

void core::await_drained(promise<status> reply, const wait_limits& limits, answers& out) {
  if (leases_.empty()) return out.add(std::move(reply), status(status::ok));
  park(std::make_unique<drain_wait>(std::move(reply)), {&drains_}, limits, {});
}

void core::check_drained(answers& out) {
  if (!leases_.empty()) return;
  while (!drains_.empty()) {
    auto& first = static_cast<drain_wait&>(*drains_.front());
    std::unique_ptr<waiting> ended = unpark(first);
    out.add(std::move(first.reply), status(status::ok));
    out.destroy_later(std::move(ended));
  }
}

}  // namespace sluice::jobs::detail
