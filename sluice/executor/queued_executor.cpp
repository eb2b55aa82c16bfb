#include "sluice/executor/queued_executor.hpp"

#include "sluice/base/detail/callback.hpp"

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
    : executor(o.users),
      intake_(type,
              to_queue(o.capacity, o.overflow, std::move(o.name), guarded(std::move(o.on_drop))),
              order),
      on_error_(std::move(o.on_error)),
      caller_runs_(o.overflow == overflow::caller_runs) {}

// An exception of `on_drop` goes to `on_error`, not to the submitter.
std::function<void(submission&&)> queued_executor::guarded(
    std::function<void(submission&&)>&& on_drop) {
  if (!on_drop) return {};
  return [this, on_drop = std::move(on_drop)](submission&& dropped) {
    detail::call_back_or_report(on_error_, "on_drop of executor", name(), on_drop,
                                std::move(dropped));
  };
}

status queued_executor::accept(submission& f, const wait_limits* limits) {
  check_named(static_cast<bool>(f), "sluice::executor", intake_.name().c_str(),
              "a function to run");
  const status pushed = limits != nullptr ? intake_.push(std::move(f), *limits)
                                          : intake_.try_push(std::move(f));
  return after_push(f, pushed);
}

status queued_executor::after_failed_push(submission& f, status pushed) {
  return pushed == status::full && caller_runs_ ? run_by_caller(f) : pushed;
}

status queued_executor::run_by_caller(submission& f) {
  static constinit thread_local int nesting = 0;
  if (nesting == caller_nesting_max) return status::full;
  ran_by_caller();
  ++nesting;
  {
    const running here(*this);
    submission taken = std::move(f);
    run_submission(taken);
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
    queued_executor::report_error(std::current_exception());
    return false;
  }
}

void queued_executor::report_error(const std::exception_ptr& error) noexcept {
  detail::report_to(on_error_, "a function submitted to executor", name(), error);
}

}  // namespace sluice
