#pragma once

// The interface of the crash tests to a job server, over HTTP or in process. Answers are those of
// the ledger: yes, certainly not, or no answer.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "jobs/model/job.hpp"
#include "jobs/model/requests.hpp"
#include "tests/crash/ledger.hpp"

namespace sluice::crash {

using jobs::milliseconds;

// Returns `none` for errors that leave the outcome open, and `no` otherwise. After a failed write
// or sync the change may have reached the disk, so only a reopened store shows the outcome.
answer answer_for(jobs::error_code code) noexcept;

struct push_answer {
  answer outcome = answer::none;
  bool duplicate = false;
  jobs::job_id id = 0;  // of the accepted job
  std::string code;     // the server's error code, if it rejected the push
};

struct taken_job {
  jobs::lease_ref lease;
  std::string contents;
  token id = 0;
  std::string result{};
  std::uint32_t attempt = 0;  // of this lease; 0: not known
  lease_number number = 0;    // in the ledger
  std::string name{};         // the job's name in acks, if the protocol does not use its number
  // The duration of its lease, and of an extension, where the job and not the request determines
  // them. Zero: as requested.
  milliseconds lasts{0};
  milliseconds extends_by{0};
  unix_time held_until{};  // at least
};

// The outcome of a batch: of its callbacks, which are stored with it or not at all, and its jobs.
struct batch_answer {
  answer callbacks = answer::none;
  std::vector<push_answer> jobs;
};

class client {
 public:
  virtual ~client() = default;

  // Returns one answer for each spec. Sends one spec as a single push, several in bulk.
  virtual std::vector<push_answer> push(const std::vector<jobs::job_spec>& specs,
                                        jobs::bulk mode) = 0;
  // Pushes jobs with a callback for the end of all of them and one for the success of all.
  virtual batch_answer push_batch(const std::vector<jobs::job_spec>& specs,
                                  const jobs::job_spec& on_end, const jobs::job_spec& on_success);
  // Returns nullopt if there was no answer, and no jobs if none came in time.
  virtual std::optional<std::vector<taken_job>> lease(std::size_t max, milliseconds wait,
                                                      milliseconds lease_for) = 0;
  // Acks without a result if it is empty.
  virtual answer ack(const taken_job& job, const std::string& result) = 0;
  virtual std::vector<answer> ack_many(const std::vector<taken_job>& jobs) = 0;
  virtual answer fail(const taken_job& job, milliseconds retry_in) = 0;
  virtual answer bury(const taken_job& job) = 0;
  virtual answer extend(const taken_job& job, milliseconds by) = 0;
  virtual answer cancel(jobs::job_id id) = 0;
  virtual answer remove(jobs::job_id id) = 0;
  virtual answer retry(jobs::job_id id) = 0;
  // Returns all jobs in that state; their leases are not valid.
  virtual std::optional<std::vector<taken_job>> list(jobs::job_state state) = 0;
  // Returns the number of jobs that have not ended; nullopt if there was no answer.
  virtual std::optional<std::uint64_t> unfinished() = 0;

  // Returns true once the server is gone.
  virtual bool gone() const = 0;
};

// Returns the part of a job that must come back unchanged.
std::string contents_of(const jobs::job_spec& spec);
// Returns the token in a job's arguments; zero if it has none.
token token_of(std::string_view args);

// Conversions from a receipt and a job; and the failure that clients report.
push_answer answer_of(const jobs::result<jobs::push_receipt>& receipt);
taken_job taken(const jobs::job& job, jobs::lease_ref lease);
jobs::failure requested_failure();

}  // namespace sluice::crash
