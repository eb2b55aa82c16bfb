#include "sluice/executor/queued_executor.hpp"

namespace sluice {
namespace {

queue_options<submission> to_queue(std::size_t capacity, overflow policy, std::string&& name,
                                   std::function<void(submission&&)>&& on_drop) {
  return {.capacity = capacity,
          .overflow = policy == overflow::caller_runs ? overflow::reject : policy,
          .name = std::move(name),
          .on_drop = std::move(on_drop)};
}

}  // namespace

queued_executor::queued_executor(const char* type, intake_options o,
                                 std::optional<priority_order> order)
    : intake_(type, to_queue(o.capacity, o.overflow, std::move(o.name), std::move(o.on_drop)),
              order),
      on_error_(std::move(o.on_error)),
      caller_runs_(o.overflow == overflow::caller_runs) {}

status queued_executor::accept(submission& f, const wait_limits* limits) {
  check_named(static_cast<bool>(f), "sluice::executor", intake_.name().c_str(),
              "a function to run");
  const status how = limits != nullptr ? intake_.push_within(f, *limits)
                                       : intake_.try_push(std::move(f));
  return settle(f, how);
}

status queued_executor::turned_away(submission& f, status how) {
  return how == status::full && caller_runs_ ? run_by_caller(f) : how;
}

status queued_executor::run_by_caller(submission& f) {
  static constinit thread_local int nesting = 0;
  if (nesting == caller_nesting_max) return status::full;
  ran_by_caller();
  ++nesting;
  {
    const running here(*this);
    submission mine = std::move(f);
    run_submission(mine);
  }
  --nesting;
  return status::ok;
}

bool queued_executor::run_submission(submission& f) noexcept {
  try {
    f();
    return true;
  } catch (...) {
    failures_.fetch_add(1, relaxed);
    if (!on_error_) {
      report_to_stderr(name(), std::current_exception());
    } else {
      try {
        on_error_(std::current_exception());
      } catch (...) {
        report_to_stderr(name(), std::current_exception());
      }
    }
    return false;
  }
}

}  // namespace sluice
