// Those who wait for the end of a job, or until nothing runs.
#include <memory>
#include <utility>

#include "jobs/engine/detail/core.hpp"

namespace sluice::jobs::detail {

class core::end_wait final : public waiting {
 public:
  explicit end_wait(end_reply answer_to) : waiting(kind::other), to(std::move(answer_to)) {}
  void refuse(error why, answers& out) override { end_wait::refuse(to, std::move(why), out); }
  static void refuse(end_reply& to, error why, answers& out) {
    if (auto* const copied = std::get_if<promise<result<job>>>(&to)) {
      out.add(std::move(*copied), result<job>(std::move(why)));
    } else {
      out.add(std::get<promise<result<job_ptr>>>(std::move(to)), result<job_ptr>(std::move(why)));
    }
  }

  end_reply to;
};

class core::drain_wait final : public waiting {
 public:
  explicit drain_wait(promise<status> answer_to) : waiting(kind::other), to(std::move(answer_to)) {}
  void refuse(error why, answers& out) override {
    out.add(std::move(to), status(why.code == error_code::timed_out ? status::timed_out
                                  : why.code == error_code::stopped ? status::stopped
                                                                    : status::closed));
  }

  promise<status> to;
};

void core::await_end(job_id id, end_reply to, const wait_limits& limits, answers& out) {
  if (auto why = refuse_wait(0)) return end_wait::refuse(to, *std::move(why), out);
  const std::stop_token cancel =
      std::visit([](const auto& answer) { return answer.stop_token(); }, to);
  auto wait = std::make_unique<end_wait>(std::move(to));
  wait->on_left = [this, id] {
    if (const auto line = ends_.find(id); line != ends_.end() && line->second.empty()) {
      ends_.erase(line);
    }
  };
  hold(std::move(wait), {&ends_[id]}, limits, cancel);
}

void core::job_ended(const job& j, answers& out) {
  if (!ends_.empty()) tell_end(j.id, j, out);  // which copies the job
}

void core::job_gone(job_id id, const error& why, answers& out) {
  tell_end(id, why, out);
}

void core::tell_end(job_id id, const result<job>& how, answers& out) {
  job_ptr shared;
  // Leaving the line, the last one takes the line away.
  for (auto line = ends_.find(id); line != ends_.end(); line = ends_.find(id)) {
    auto& first = static_cast<end_wait&>(*line->second.front());
    std::unique_ptr<waiting> mine = release_wait(first);
    if (!how) {
      end_wait::refuse(first.to, how.error(), out);
    } else if (auto* const copied = std::get_if<promise<result<job>>>(&first.to)) {
      out.add(std::move(*copied), result<job>(how));
    } else {
      if (shared == nullptr) shared = std::make_shared<const job>(*how);
      out.add(std::get<promise<result<job_ptr>>>(std::move(first.to)), result<job_ptr>(shared));
    }
    out.bury(std::move(mine));
  }
}

void core::await_drained(promise<status> to, const wait_limits& limits, answers& out) {
  if (leases_.empty()) return out.add(std::move(to), status(status::ok));
  hold(std::make_unique<drain_wait>(std::move(to)), {&drains_}, limits, {});
}

void core::check_drained(answers& out) {
  if (!leases_.empty()) return;
  while (!drains_.empty()) {
    auto& first = static_cast<drain_wait&>(*drains_.front());
    std::unique_ptr<waiting> mine = release_wait(first);
    out.add(std::move(first.to), status(status::ok));
    out.bury(std::move(mine));
  }
}

}  // namespace sluice::jobs::detail
