#pragma once

// The changes staged for one transaction, and the callers to answer after it.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "jobs/engine/detail/answers.hpp"
#include "jobs/engine/detail/queue_state.hpp"
#include "jobs/model/batch.hpp"
#include "jobs/model/job.hpp"
#include "jobs/model/requests.hpp"
#include "jobs/store/store.hpp"
#include "sluice/base/unique_function.hpp"

namespace sluice::jobs::detail {

// A push, from its arrival to its commit.
struct push_item {
  std::shared_ptr<jobs::job> job;
  std::vector<job_ptr> victims;  // evicted for it
  queue_state* queue = nullptr;
  std::uint64_t weight = 0;
  push_reply reply;
  bool is_of_list = false;  // pushed all or none
};

// A group of pushes that is a batch.
struct batch_plan {
  batch_info batch;  // its id is assigned when it is staged
  bool stays_open = false;
  // Per item: its dependencies on other items, as (index into spec.after, item).
  std::vector<std::vector<std::pair<std::size_t, std::size_t>>> steps;
  // Per item: nullopt for a job of the batch; for a callback, the event that calls it.
  std::vector<std::optional<after_when>> callbacks;
};

// The end of a lease in a commit.
struct end_item {
  job_id id = 0;
  std::size_t change = 0;
  job_state new_state = job_state::done;
  std::optional<payload> value;             // for waiters, if the job is not kept
  std::optional<attempt_error> last_error;  // likewise
  std::optional<payload> args;              // likewise, if the lease was without them
  std::uint64_t bytes = 0;                  // of the worker's result or failure, while it is staged
  bool is_expiry = false;
  ack_reply acked;
  std::optional<promise<result<fail_receipt>>> failed;
  fail_receipt receipt;
};

struct commit {
  struct staged_push {
    std::size_t change = 0;
    push_item item;
    bool is_handed_over = false;  // leased to a worker before this commit
  };
  // A job that is dropped from a full queue.
  struct eviction {
    std::size_t change = 0;
    queue_state* queue = nullptr;
    job_ptr gone;
    bool is_with_push = false;  // the push that needs its capacity is in this commit
  };
  // A continuation after the commit, called with the lock held. `failure` null: it was committed.
  // `held_as`: the job was not made ready, but put into this state.
  struct outcome {
    const error* failure = nullptr;
    const effect* held_as = nullptr;
    const jobs::conflict* conflict = nullptr;
  };
  using after = unique_function<void(const outcome& outcome, answers& out)>;
  struct other {
    std::size_t change = no_change;  // to which it belongs
    after continuation;
  };
  static constexpr std::size_t no_change = ~std::size_t{0};

  jobs::transaction transaction;
  std::vector<staged_push> pushes;
  std::vector<end_item> ends;
  std::vector<eviction> evictions;
  std::vector<other> others;
  std::vector<change> settings;      // applied before all other changes
  std::vector<queue_state*> queues;  // with settings in this commit

  bool empty() const noexcept {
    return transaction.changes.empty() && settings.empty() && others.empty();
  }
};

}  // namespace sluice::jobs::detail
