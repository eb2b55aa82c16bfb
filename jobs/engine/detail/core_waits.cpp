// Those who wait for the end of a job, or until nothing runs.
#include <utility>

#include "jobs/engine/detail/core.hpp"

namespace sluice::jobs::detail {

class core::end_wait final : public waiting {
 public:
  explicit end_wait(promise<result<job>> answer_to)
      : waiting(kind::other), to(std::move(answer_to)) {}
  void refuse(error why, answers& out) override {
    out.add(std::move(to), result<job>(std::move(why)));
  }

  promise<result<job>> to;
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

void core::await_end(job_id id, promise<result<job>> to, const wait_limits& limits, answers& out) {
  if (auto why = refuse_wait(0)) return out.add(std::move(to), result<job>(*std::move(why)));
  const std::stop_token cancel = to.stop_token();
  auto wait = std::make_unique<end_wait>(std::move(to));
  wait->on_left = [this, id] {
    if (const auto line = ends_.find(id); line != ends_.end() && line->second.empty()) {
      ends_.erase(line);
    }
  };
  hold(std::move(wait), {&ends_[id]}, limits, cancel);
}

void core::job_ended(const job& j, answers& out) {
  tell_end(j.id, j, out);
}

void core::job_gone(job_id id, const error& why, answers& out) {
  tell_end(id, why, out);
}

void core::tell_end(job_id id, const result<job>& how, answers& out) {
  // Leaving the line, the last one takes the line away.
  for (auto line = ends_.find(id); line != ends_.end(); line = ends_.find(id)) {
    auto& first = static_cast<end_wait&>(*line->second.front());
    std::unique_ptr<waiting> mine = release_wait(first);
    out.add(std::move(first.to), result<job>(how));
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
