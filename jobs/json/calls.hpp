#pragma once

// What a request to the HTTP API says beside what stands in its path: plain values.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "jobs/model/requests.hpp"

namespace sluice::jobs::json {

// POST /v1/jobs: a job, an array of jobs, or {"jobs": [...], "mode": "each" | "all_or_nothing"}.
struct push_call {
  std::vector<job_spec> jobs{};
  bulk mode = bulk::each;
  bool says_mode = false;  // it was given, not left out
  bool one = false;        // a job by itself: answered by itself
};

// POST /v1/leases
struct lease_call {
  lease_request what{};
  milliseconds wait{0};
};

// POST /v1/jobs/{id}/extend
struct extend_call {
  std::uint64_t lease = 0;
  milliseconds by{0};  // zero: as the job or its queue says
};

// POST /v1/jobs/{id}/ack
struct ack_call {
  std::uint64_t lease = 0;
  std::optional<payload> result{};
};

// POST /v1/jobs/{id}/fail
struct fail_call {
  std::uint64_t lease = 0;
  failure why{};
};

// POST /v1/jobs/{id}/release
struct release_call {
  std::uint64_t lease = 0;
  give_back how{};
};

// POST /v1/acks
struct acks_call {
  std::vector<ack_item> acks{};
};

// The answer to POST /v1/queues/{name}/purge.
struct purge_receipt {
  std::uint64_t purged = 0;
};

// An application/problem+json document (RFC 9457).
struct problem {
  int status = 500;
  std::string title{};
  error why{};
};

}  // namespace sluice::jobs::json
