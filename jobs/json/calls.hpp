#pragma once

// The bodies of requests to the HTTP API and of their responses: plain values.

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
  bool has_mode = false;   // the request has a mode
  bool is_single = false;  // the request is one job, and so is the response
};

// POST /v1/leases
struct lease_call {
  lease_request request{};
  milliseconds wait{0};
};

// POST /v1/jobs/{id}/extend
struct extend_call {
  std::uint64_t lease = 0;
  milliseconds by{0};  // zero: the value of the job or its queue
  std::optional<jobs::progress> progress{};
};

// POST /v1/jobs/{id}/progress
struct progress_call {
  std::uint64_t lease = 0;
  jobs::progress progress{};
};

// POST /v1/jobs/{id}/logs
struct log_call {
  std::uint64_t lease = 0;
  std::vector<std::string> lines{};
};

// POST /v1/jobs/{id}/ack
struct ack_call {
  std::uint64_t lease = 0;
  std::optional<payload> result{};
};

// POST /v1/jobs/{id}/fail
struct fail_call {
  std::uint64_t lease = 0;
  jobs::failure failure{};
};

// POST /v1/jobs/{id}/release
struct release_call {
  std::uint64_t lease = 0;
  give_back release{};
};

// POST /v1/acks
struct acks_call {
  std::vector<ack_item> acks{};
};

// The response of POST /v1/queues/{name}/purge.
struct purge_receipt {
  std::uint64_t purged = 0;
};

// The response of POST /v1/batches/{id}/cancel.
struct cancel_receipt {
  std::uint64_t cancelled = 0;
};

// The response of POST /v1/batches/{id}/retry.
struct retry_receipt {
  std::uint64_t retried = 0;
};

// POST /v1/crons/check, and its response.
struct cron_check {
  std::string schedule{};
  std::string zone = "UTC";
};
struct cron_times {
  std::string describes{};  // for people
  std::vector<unix_time> upcoming{};
};

// An application/problem+json document (RFC 9457).
struct problem {
  int status = 500;
  std::string title{};
  jobs::error error{};
};

}  // namespace sluice::jobs::json
