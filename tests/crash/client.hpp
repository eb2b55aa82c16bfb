#pragma once

// What the tests ask of a job server, over HTTP or in process, with answers in the words of the
// ledger: yes, surely not, or no answer.

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

// Whether an error leaves open what was done. After a failed write or sync the change may turn out
// to have reached the disk, so only a reopened store knows.
answer answer_for(jobs::error_code code) noexcept;

struct push_answer {
  answer how = answer::none;
  bool duplicate = false;
  jobs::job_id id = 0;  // of what was accepted
  std::string code;     // of a refusal, as the server names it
};

struct taken_job {
  jobs::lease_ref lease;
  std::string contents;
  token it = 0;
  std::string result{};
  std::uint32_t attempt = 0;  // which one this lease is for; 0: not known
  lease_number number = 0;    // in the ledger
  std::string name{};         // by which it is ended, where that is not its number
  // Where the job says it, not the one who asks: how long a lease on it lasts, and from an
  // extension on. Zero: as it was asked for.
  milliseconds lasts{0};
  milliseconds extends_by{0};
  unix_time held_until{};  // surely
};

// A batch: what came of its callbacks, which are there with it or not at all, and of each job.
struct batch_answer {
  answer callbacks = answer::none;
  std::vector<push_answer> jobs;
};

class client {
 public:
  virtual ~client() = default;

  // One answer for each. One spec goes as a single push, more of them in bulk.
  virtual std::vector<push_answer> push(const std::vector<jobs::job_spec>& specs,
                                        jobs::bulk mode) = 0;
  // Jobs, and what is called when all of them have ended and when all are done.
  virtual batch_answer push_batch(const std::vector<jobs::job_spec>& specs,
                                  const jobs::job_spec& on_end, const jobs::job_spec& on_success);
  // None: there was no answer. Empty: nothing came in time.
  virtual std::optional<std::vector<taken_job>> lease(std::size_t max, milliseconds wait,
                                                      milliseconds lease_for) = 0;
  // Without a result when that is empty.
  virtual answer ack(const taken_job& job, const std::string& result) = 0;
  virtual std::vector<answer> ack_many(const std::vector<taken_job>& jobs) = 0;
  virtual answer fail(const taken_job& job, milliseconds retry_in) = 0;
  virtual answer bury(const taken_job& job) = 0;
  virtual answer extend(const taken_job& job, milliseconds by) = 0;
  virtual answer cancel(jobs::job_id id) = 0;
  virtual answer remove(jobs::job_id id) = 0;
  virtual answer retry(jobs::job_id id) = 0;
  // All in that state; their leases mean nothing.
  virtual std::optional<std::vector<taken_job>> list(jobs::job_state state) = 0;
  // Jobs that have not ended; none: there was no answer.
  virtual std::optional<std::uint64_t> unfinished() = 0;

  // There is nobody at the other end any more.
  virtual bool gone() const = 0;
};

// All of a job that must come back as it was given.
std::string contents_of(const jobs::job_spec& spec);
// The token in its arguments; zero: there is none.
token token_of(std::string_view args);

// What a client makes of a receipt, of a job, and tells a server about a failure.
push_answer answer_of(const jobs::result<jobs::push_receipt>& made);
taken_job taken(const jobs::job& it, jobs::lease_ref lease);
jobs::failure failure_asked_for();

}  // namespace sluice::crash
