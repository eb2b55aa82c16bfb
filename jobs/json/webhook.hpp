#pragma once

// The document of a webhook about the end of a job: the args of the job that posts it.
//
//   {"url": "https://...", "event": {"id": 12, "queue": "mail", "kind": "send", "state": "done",
//    "attempts": 1, "ended_at": "...", "batch": 7, "result": ..., "error": {...}}}

#include <optional>
#include <string>

#include "jobs/model/job.hpp"

namespace sluice::jobs::json {

// `value` is the result of a done job, `last_error` the last error of a dead one.
std::string webhook_document(const job& j, job_state as, unix_time ended_at,
                             const std::optional<payload>& value, const attempt_error* last_error);

}  // namespace sluice::jobs::json
