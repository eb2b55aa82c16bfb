#pragma once

// A client of a simulated server that writes down what it asked and heard, and that is slow at
// times: then the lease that it is about to end may have run out.

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
  logged_client(std::unique_ptr<crash::client> it, event_log& log, std::uint64_t seed)
      : it_(std::move(it)), log_(log), chance_(seed) {}

  std::vector<crash::push_answer> push(const std::vector<jobs::job_spec>& specs,
                                       jobs::bulk mode) override {
    auto answers = it_->push(specs, mode);
    for (const auto& a : answers) {
      log_.add("push: %d %s %s", static_cast<int>(a.how), number(a.id).c_str(), a.code.c_str());
    }
    return answers;
  }
  std::optional<std::vector<taken_job>> lease(std::size_t max, milliseconds wait,
                                              milliseconds lease_for) override {
    auto taken = it_->lease(max, wait, lease_for);
    if (!taken) log_.add("lease: no answer");
    for (const auto& job : taken.value_or(std::vector<taken_job>{})) {
      log_.add("lease: %s", number(job.lease.job).c_str());
    }
    return taken;
  }
  answer ack(const taken_job& job, const std::string& result) override {
    be_slow_at_times();
    return said("ack", job.lease.job, it_->ack(job, result));
  }
  std::vector<answer> ack_many(const std::vector<taken_job>& jobs) override {
    auto answers = it_->ack_many(jobs);
    for (std::size_t i = 0; i < answers.size(); ++i) {
      (void)said("ack of many", jobs[i].lease.job, answers[i]);
    }
    return answers;
  }
  answer fail(const taken_job& job, milliseconds retry_in) override {
    be_slow_at_times();
    return said("fail", job.lease.job, it_->fail(job, retry_in));
  }
  answer bury(const taken_job& job) override { return said("bury", job.lease.job, it_->bury(job)); }
  answer extend(const taken_job& job, milliseconds by) override {
    return said("extend", job.lease.job, it_->extend(job, by));
  }
  answer cancel(jobs::job_id id) override { return said("cancel", id, it_->cancel(id)); }
  answer remove(jobs::job_id id) override { return said("remove", id, it_->remove(id)); }
  answer retry(jobs::job_id id) override { return said("retry", id, it_->retry(id)); }
  std::optional<std::vector<taken_job>> list(jobs::job_state state) override {
    auto found = it_->list(state);
    log_.add("list: %zu", found ? found->size() : 0);
    return found;
  }
  std::optional<std::uint64_t> unfinished() override { return it_->unfinished(); }
  bool gone() const override { return it_->gone(); }

 private:
  void be_slow_at_times() {
    if (chance_.below(slow_one_in_) == 0) pass(milliseconds(chance_.below(60)));
  }
  static std::string number(jobs::job_id id) { return std::to_string(id); }
  answer said(const char* what, jobs::job_id id, answer how) {
    log_.add("%s %s: %d", what, number(id).c_str(), static_cast<int>(how));
    return how;
  }

  std::unique_ptr<crash::client> it_;
  event_log& log_;
  random chance_;
  const std::uint32_t slow_one_in_ = 2 + chance_.below(20);
};

}  // namespace sluice::sim_jobs
