#pragma once

// The source of a worker's jobs and the receiver of its reports: the port that an engine in the
// same program and a remote server implement.
//
// Use `work_from(engine)` or `work_from(client)`; tests implement their own.
//
// Guarantees of every source: all functions may be called from any thread and do not block; delays
// are in the future. Every future becomes ready with a value. `lease` never returns an empty list;
// if its limits end it (timed_out, stopped), no job was leased. The engine or client must outlive
// the source.

#include <memory>
#include <string>
#include <vector>

#include "jobs/model/requests.hpp"
#include "jobs/model/result.hpp"
#include "sluice/future/future.hpp"
#include "sluice/sync/waiter.hpp"

namespace sluice::jobs {

class client;
class engine;

class work_source {
 public:
  virtual ~work_source() = default;

  virtual future<result<std::vector<leased_job>>> lease(lease_request request,
                                                        wait_limits limits) = 0;
  virtual future<result<extension>> extend(lease_ref lease, milliseconds by) = 0;
  // Reports the progress of an attempt, and lines of its log.
  virtual future<void_result> report(lease_ref lease, progress update) = 0;
  virtual future<void_result> log(lease_ref lease, std::vector<std::string> lines) = 0;
  // Returns one result for each item, in order.
  virtual future<std::vector<void_result>> ack_many(std::vector<ack_item> items) = 0;
  virtual future<result<fail_receipt>> fail(lease_ref lease, failure why) = 0;
  virtual future<void_result> release(lease_ref lease, give_back options) = 0;
};

std::unique_ptr<work_source> work_from(engine& e);
std::unique_ptr<work_source> work_from(client& c);

}  // namespace sluice::jobs
