#pragma once

// What is staged to be stored in one step, and who is to be told how that went.

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
  std::shared_ptr<job> it;
  std::vector<job_ptr> victims;  // that are dropped to make room for it
  queue_state* queue = nullptr;
  std::uint64_t weight = 0;
  push_reply to;
  bool is_of_list = false;  // of which all are pushed or none
};

// What a group of pushes is, beside its jobs: a batch.
struct batch_plan {
  batch_info batch;  // its id is given when it is staged
  bool stays_open = false;
  // Of each item: those of its dependencies that are other items, as (index into spec.after, item).
  std::vector<std::vector<std::pair<std::size_t, std::size_t>>> steps;
  // Of each item: a callback, and when it is called; none: a job of the batch.
  std::vector<std::optional<after_when>> callbacks;
};

// An end of a lease that is being committed.
struct end_item {
  job_id id = 0;
  std::size_t change = 0;
  job_state to = job_state::done;
  std::optional<payload> value;  // for those who wait for the end of a job that is not kept
  std::optional<attempt_error> last_error;  // likewise
  std::optional<payload> args;              // likewise, when the lease was without them
  std::uint64_t bytes = 0;                  // of what the worker said, while it is staged
  bool is_expiry = false;
  ack_reply acked;
  std::optional<promise<result<fail_receipt>>> failed;
  fail_receipt receipt;
};

struct commit {
  struct staged_push {
    std::size_t change = 0;
    push_item item;
    bool is_handed_over = false;  // a worker has it already
  };
  // A job that is dropped from a full queue.
  struct eviction {
    std::size_t change = 0;
    queue_state* queue = nullptr;
    job_ptr gone;
    bool is_with_push = false;  // the push that needs its room is in this commit
  };
  // What else is to be done after the commit, with the lock held. `why_not` null: it was committed.
  // `instead`: the job was not made ready, but this.
  struct outcome {
    const error* why_not = nullptr;
    const effect* instead = nullptr;
    const conflict* clash = nullptr;
  };
  using after = unique_function<void(const outcome& how, answers& out)>;
  struct other {
    std::size_t change = no_change;  // that it is about
    after then;
  };
  static constexpr std::size_t no_change = ~std::size_t{0};

  batch changes;
  std::vector<staged_push> pushes;
  std::vector<end_item> ends;
  std::vector<eviction> evictions;
  std::vector<other> others;
  std::vector<change> settings;      // that go before all other changes
  std::vector<queue_state*> queues;  // whose settings it stores

  bool empty() const noexcept {
    return changes.changes.empty() && settings.empty() && others.empty();
  }
};

}  // namespace sluice::jobs::detail
