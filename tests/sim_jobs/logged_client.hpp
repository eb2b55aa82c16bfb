#pragma once

// A client of a simulated server that logs its calls and their replies, and that is sometimes
// slow: then the lease that it is about to end may have expired.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sluice/base/random.hpp"
#include "tests/crash/client.hpp"
#include "tests/sim_jobs/disk.hpp"
#include "tests/sim_jobs/event_log.hpp"

namespace sluice::sim_jobs {

using crash::answer;
using crash::taken_job;

class logged_client final : public crash::client {
 public:
  logged_client(std::unique_ptr<crash::client> inner, event_log& log, std::uint64_t seed)
      : client_(std::move(inner)), log_(log), chance_(seed) {}

  std::vector<crash::push_answer> push(const std::vector<jobs::job_spec>& specs,
                                       jobs::bulk mode) override {
    auto answers = client_->push(specs, mode);
    for (const auto& a : answers) {
      log_.add("push: %d %s %s", static_cast<int>(a.outcome), number(a.id).c_str(), a.code.c_str());
    }
    return answers;
  }
  std::optional<std::vector<taken_job>> lease(std::size_t max, milliseconds wait,
                                              milliseconds lease_for) override {
    auto taken = client_->lease(max, wait, lease_for);
    if (!taken) log_.add("lease: no answer");
    for (const auto& job : taken.value_or(std::vector<taken_job>{})) {
      log_.add("lease: %s", number(job.lease.job).c_str());
    }
    return taken;
  }
  answer ack(const taken_job& job, const std::string& result) override {
    be_slow_at_times();
    return logged("ack", job.lease.job, client_->ack(job, result));
  }
  std::vector<answer> ack_many(const std::vector<taken_job>& jobs) override {
    auto answers = client_->ack_many(jobs);
    for (std::size_t i = 0; i < answers.size(); ++i) {
      (void)logged("ack of many", jobs[i].lease.job, answers[i]);
    }
    return answers;
  }
  answer fail(const taken_job& job, milliseconds retry_in) override {
    be_slow_at_times();
    return logged("fail", job.lease.job, client_->fail(job, retry_in));
  }
  answer bury(const taken_job& job) override {
    return logged("bury", job.lease.job, client_->bury(job));
  }
  answer extend(const taken_job& job, milliseconds by) override {
    return logged("extend", job.lease.job, client_->extend(job, by));
  }
  answer cancel(jobs::job_id id) override { return logged("cancel", id, client_->cancel(id)); }
  answer remove(jobs::job_id id) override { return logged("remove", id, client_->remove(id)); }
  answer retry(jobs::job_id id) override { return logged("retry", id, client_->retry(id)); }
  std::optional<std::vector<taken_job>> list(jobs::job_state state) override {
    auto found = client_->list(state);
    log_.add("list: %zu", found ? found->size() : 0);
    return found;
  }
  std::optional<std::uint64_t> unfinished() override { return client_->unfinished(); }
  bool gone() const override { return client_->gone(); }

 private:
  void be_slow_at_times() {
    if (chance_.below(slow_one_in_) == 0) pass(milliseconds(chance_.below(60)));
  }
  static std::string number(jobs::job_id id) { return std::to_string(id); }
  answer logged(const char* operation, jobs::job_id id, answer outcome) {
    log_.add("%s %s: %d", operation, number(id).c_str(), static_cast<int>(outcome));
    return outcome;
  }

  std::unique_ptr<crash::client> client_;
  event_log& log_;
  random chance_;
  const std::uint32_t slow_one_in_ = 2 + chance_.below(20);
};

}  // namespace sluice::sim_jobs
