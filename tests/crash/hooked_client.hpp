#pragma once

// A client that calls a test's hooks before and after every push.

#include <functional>
#include <memory>
#include <utility>

#include "tests/crash/client.hpp"

namespace sluice::crash {

struct push_hooks {
  std::function<void()> before;
  std::function<void(const std::vector<jobs::job_spec>&, const std::vector<push_answer>&)> after;
};

class hooked_client final : public client {
 public:
  hooked_client(std::unique_ptr<client> inner, const push_hooks& hooks)
      : inner_(std::move(inner)), hooks_(hooks) {}

  std::vector<push_answer> push(const std::vector<jobs::job_spec>& specs,
                                jobs::bulk mode) override {
    if (hooks_.before) hooks_.before();
    auto answers = inner_->push(specs, mode);
    if (hooks_.after) hooks_.after(specs, answers);
    return answers;
  }
  std::optional<std::vector<taken_job>> lease(std::size_t max, milliseconds wait,
                                              milliseconds lease_for) override {
    return inner_->lease(max, wait, lease_for);
  }
  answer ack(const taken_job& job, const std::string& result) override {
    return inner_->ack(job, result);
  }
  std::vector<answer> ack_many(const std::vector<taken_job>& jobs) override {
    return inner_->ack_many(jobs);
  }
  answer fail(const taken_job& job, milliseconds retry_in) override {
    return inner_->fail(job, retry_in);
  }
  answer bury(const taken_job& job) override { return inner_->bury(job); }
  answer extend(const taken_job& job, milliseconds by) override { return inner_->extend(job, by); }
  answer cancel(jobs::job_id id) override { return inner_->cancel(id); }
  answer remove(jobs::job_id id) override { return inner_->remove(id); }
  answer retry(jobs::job_id id) override { return inner_->retry(id); }
  std::optional<std::vector<taken_job>> list(jobs::job_state state) override {
    return inner_->list(state);
  }
  std::optional<std::uint64_t> unfinished() override { return inner_->unfinished(); }
  bool gone() const override { return inner_->gone(); }

 private:
  std::unique_ptr<client> inner_;
  const push_hooks& hooks_;
};

}  // namespace sluice::crash
