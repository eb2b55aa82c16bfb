#pragma once

// Where a worker gets its jobs and says what became of them: the port behind which an engine in the
// same program and a server somewhere else look alike.
//
// `work_from(engine)` and `work_from(client)` are the two that there are; a test brings its own.
//
// Guarantees that every source gives: any thread may call anything, and no call waits: what takes
// time is in the future. A future always becomes ready, with a value. `lease` never gives an empty
// list; when its limits end it (timed_out, stopped), nothing was leased that the caller does not
// hear of. Whatever was made from must outlive the source.

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

  virtual future<result<std::vector<leased_job>>> lease(lease_request what, wait_limits limits) = 0;
  virtual future<result<extension>> extend(lease_ref lease, milliseconds by) = 0;
  // How far an attempt is, and lines of its log.
  virtual future<void_result> report(lease_ref lease, progress how_far) = 0;
  virtual future<void_result> log(lease_ref lease, std::vector<std::string> lines) = 0;
  // One result for each, in order.
  virtual future<std::vector<void_result>> ack_many(std::vector<ack_item> items) = 0;
  virtual future<result<fail_receipt>> fail(lease_ref lease, failure why) = 0;
  virtual future<void_result> release(lease_ref lease, give_back how) = 0;
};

std::unique_ptr<work_source> work_from(engine& here);
std::unique_ptr<work_source> work_from(client& there);

}  // namespace sluice::jobs
