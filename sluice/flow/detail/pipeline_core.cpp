#include "sluice/flow/detail/pipeline_core.hpp"

#include <mutex>

#include "sluice/base/check.hpp"
#include "sluice/base/detail/callback.hpp"
#include "sluice/executor/strand.hpp"

namespace sluice {
namespace {

std::string text_of_current() {
  try {
    throw;
  } catch (const std::exception& e) {
    return e.what();
  } catch (...) {
    return "not a std::exception";
  }
}

// Returns the executor whose threads run its work: a strand has none of its own.
const executor* threads_of(const executor& e) noexcept {
  const executor* on = &e;
  while (const auto* const one_at_a_time = dynamic_cast<const strand*>(on)) {
    on = &one_at_a_time->underlying();
  }
  return on;
}

}  // namespace

pipeline_error::pipeline_error(std::string_view stage)
    : std::runtime_error("sluice: stage '" + std::string(stage) + "' threw: " + text_of_current()),
      stage_(stage) {}

namespace detail {

// ---- stage_base

stage_base::stage_base(std::string name, stage_options o)
    : name_(std::move(name)), options_(std::move(o)), working_(options_.parallelism) {
  const auto must = [this](bool holds, const char* expected) {
    check_named(holds, "sluice::pipeline", name_.c_str(), expected);
  };
  must(options_.parallelism > 0, "a parallelism of at least 1");
  must(options_.capacity > 0, "a capacity of at least 1");
  must(options_.window == 0 || (options_.ordered && options_.window >= options_.parallelism),
       "a window only when ordered, and at least as large as the parallelism");
}

stage_stats stage_base::stats() const {
  return {.name = name_,
          .in = in_.load(relaxed),
          .out = out_.load(relaxed),
          .skipped = skipped_.load(relaxed),
          .undelivered = undelivered_.load(relaxed),
          .active = active_.load(relaxed),
          .queued = queued(),
          .capacity = capacity(),
          .busy = std::chrono::nanoseconds(busy_ns_.load(relaxed)),
          .blocked = std::chrono::nanoseconds(blocked_ns_.load(relaxed)),
          .idle = std::chrono::nanoseconds(idle_ns_.load(relaxed))};
}

void stage_base::failed(pipeline_core& core) noexcept {
  if (core.token().stop_requested()) {  // it threw because of the stop
    undelivered_.fetch_add(1, relaxed);
    return;
  }
  if (options_.errors == stage_errors::stop) {
    undelivered_.fetch_add(1, relaxed);
    core.fail(std::make_exception_ptr(pipeline_error(name_)));
    return;
  }
  skipped_.fetch_add(1, relaxed);
  if (!options_.on_error) return;
  const pipeline_error error(name_);
  try {
    options_.on_error(error);
  } catch (...) {
    report_exception("a function of stage", name_, error.nested_ptr());
    report_exception("on_error of stage", name_, std::current_exception());
  }
}

bool stage_base::worker_leaves() noexcept {
  // acq_rel: the last worker has seen all results that the others have passed on.
  return working_.fetch_sub(1, acq_rel) == 1;
}

// ---- pipeline_core

pipeline_core::pipeline_core(executor& on, pipeline_options o)
    : executor_(on),
      use_(&on, executor_user::pipeline),
      clock_(o.clock != nullptr ? *o.clock : real_clock()),
      options_(std::move(o)),
      token_(stop_.get_token()) {}

pipeline_core::~pipeline_core() {
  check(workers_.load(relaxed) == 0, "sluice::pipeline", "to have ended at its destruction");
}

void pipeline_core::start() {
  wait_report::set_name(&ended_, stages_.front()->name() + ".." + stages_.back()->name());
  // All are created before the first begins: if there is no memory for one, no worker runs yet that
  // would have to be ended.
  std::vector<stage_worker> made;
  for (const auto& each : stages_) each->make_workers(*this, made);
  workers_.store(made.size(), relaxed);  // no worker has been started yet
  for (auto& each : made) each.start();
  if (options_.stop.stop_possible()) on_stop_.emplace(options_.stop, stopper{*this});
}

void pipeline_core::fail(std::exception_ptr error) noexcept {
  {
    const std::lock_guard hold(guard_);
    if (error_ == nullptr) error_ = std::move(error);
  }
  request_stop();
}

void pipeline_core::request_stop() noexcept {
  close();
  stop_.request_stop();
}

void pipeline_core::worker_ended() noexcept {
  // acq_rel: the last worker has seen what the others did, and publishes it with the event. Setting
  // it is the last access: a waiter for it may destroy the pipeline.
  if (workers_.fetch_sub(1, acq_rel) == 1) ended_.set();
}

void pipeline_core::rethrow_error() {
  std::exception_ptr error;
  {
    const std::lock_guard hold(guard_);
    error = error_;
    was_thrown_ = true;
  }
  if (error != nullptr) std::rethrow_exception(error);
}

void pipeline_core::report_unread_error() noexcept {
  std::exception_ptr error;
  {
    const std::lock_guard hold(guard_);
    if (!was_thrown_) error = error_;
  }
  if (error != nullptr) executor_.report_error(error);
}

void pipeline_core::must_not_be_inside(const char* call) const noexcept {
  executor* const here = executor::current();
  check_named(here == nullptr || threads_of(*here) != threads_of(executor_), "sluice::pipeline",
              call, "no blocking wait on a thread that its stages need: await async_join there");
}

std::size_t pipeline_core::unprocessed() const noexcept {
  std::size_t count = 0;
  for (const auto& each : stages_) {
    const auto now = each->stats();
    count += now.queued + static_cast<std::size_t>(now.undelivered);
  }
  return count;
}

std::vector<stage_stats> pipeline_core::stats() const {
  std::vector<stage_stats> all;
  all.reserve(stages_.size());
  for (const auto& each : stages_) all.push_back(each->stats());
  return all;
}

}  // namespace detail
}  // namespace sluice
