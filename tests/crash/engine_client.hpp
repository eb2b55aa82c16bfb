#pragma once

// The engine in this process, as the crash tests see it.

#include <cstdint>
#include <functional>
#include <utility>

#include "jobs/engine/engine.hpp"
#include "sluice/base/seam.hpp"
#include "tests/crash/client.hpp"

namespace sluice::crash {

class engine_client final : public client {
 public:
  // As a thread that waits for its answers, or as one that commits what it asked for
  // (engine::help).
  enum class way : std::uint8_t { waits, helps };

  // `gone` says when there is nothing to be had from the engine any more.
  engine_client(jobs::engine& it, std::function<bool()> gone, way how = way::waits)
      : engine_(it), gone_(std::move(gone)), how_(how) {}

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
  void help() {
    while (how_ == way::helps && engine_.help()) seam::yield();
  }
  template <class T>
  T answer_to(future<T> asked) {
    help();
    return asked.get();
  }

  jobs::engine& engine_;
  std::function<bool()> gone_;
  way how_;
};

}  // namespace sluice::crash
