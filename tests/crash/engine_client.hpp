#pragma once

// The engine in this process as a client of the crash tests.

#include <cstdint>
#include <functional>
#include <utility>

#include "jobs/engine/engine.hpp"
#include "sluice/base/seam.hpp"
#include "tests/crash/client.hpp"

namespace sluice::crash {

class engine_client final : public client {
 public:
  // Whether calls wait for the committer, or commit in their own thread (engine::commit_here).
  enum class way : std::uint8_t { waits, commits };

  // `gone` returns true once the engine cannot serve any more.
  engine_client(jobs::engine& engine, std::function<bool()> gone, way commits = way::waits)
      : engine_(engine), gone_(std::move(gone)), way_(commits) {}

  std::vector<push_answer> push(const std::vector<jobs::job_spec>& specs, jobs::bulk mode) override;
  std::optional<std::vector<taken_job>> lease(std::size_t max, milliseconds wait,
                                              milliseconds lease_for) override;
  answer ack(const taken_job& job, const std::string& result) override;
  std::vector<answer> ack_many(const std::vector<taken_job>& jobs) override;
  answer fail(const taken_job& job, milliseconds retry_in) override;
  answer bury(const taken_job& job) override;
  answer extend(const taken_job& job, milliseconds by) override;
  answer cancel(jobs::job_id id) override;
  answer remove(jobs::job_id id) override;
  answer retry(jobs::job_id id) override;
  std::optional<std::vector<taken_job>> list(jobs::job_state state) override;
  std::optional<std::uint64_t> unfinished() override;
  bool gone() const override { return gone_(); }

 private:
  void commit_here() {
    while (way_ == way::commits && engine_.commit_here()) seam::yield();
  }
  template <class T>
  T answer_to(future<T> request) {
    commit_here();
    return request.get();
  }

  jobs::engine& engine_;
  std::function<bool()> gone_;
  way way_;
};

}  // namespace sluice::crash
