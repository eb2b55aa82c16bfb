#pragma once

// What a webhook is told about the end of a job: the args of the job that posts it.
//
//   {"url": "https://...", "event": {"id": 12, "queue": "mail", "kind": "send", "state": "done",
//    "attempts": 1, "ended_at": "...", "batch": 7, "result": ..., "error": {...}}}

#include <optional>
#include <string>

#include "jobs/model/job.hpp"

namespace sluice::jobs::json {

// `value` is the result of one that was done, `why` the last error of one that is dead.
std::string webhook_document(const job& it, job_state as, unix_time ended_at,
                             const std::optional<payload>& value, const attempt_error* why);

}  // namespace sluice::jobs::json
