#pragma once

// A call that waits for a job.

#include <utility>
#include <vector>

#include "jobs/engine/detail/core.hpp"

namespace sluice::jobs::detail {

class core::lease_wait final : public waiting {
 public:
  lease_wait(lease_request asked, promise<result<std::vector<leased_job>>> answer_to,
             time_point called)
      : waiting(kind::lease),
        request(std::move(asked)),
        reply(std::move(answer_to)),
        began(called) {}
  void refuse(error why, answers& out) override {
    out.add(std::move(reply), result<std::vector<leased_job>>(std::move(why)));
  }

  lease_request request;
  promise<result<std::vector<leased_job>>> reply;
  const time_point began;
};

}  // namespace sluice::jobs::detail
