#include "sluice/flow/retry.hpp"

#include <algorithm>
#include <string>

#include "sluice/base/detail/callback.hpp"
#include "sluice/flow/refused_error.hpp"
#include "sluice/future/future_error.hpp"
#include "sluice/sync/event.hpp"

namespace sluice {
namespace {

std::string what_of(const std::exception_ptr& error) {
  if (error == nullptr) return "none, the function was not called";
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& e) {
    return e.what();
  } catch (...) {
    return "not a std::exception";
  }
}

std::string message(retry_error::reason why, std::uint32_t attempts,
                    const std::exception_ptr& last) {
  return "sluice: gave up after " + std::to_string(attempts) +
         (attempts == 1 ? " attempt: " : " attempts: ") + std::string(to_string(why)) +
         "; the last error: " + what_of(last);
}

// Returns the duration of a refusal; zero for other errors or if it is not known.
std::chrono::nanoseconds refused_for(const std::exception_ptr& error) noexcept {
  try {
    std::rethrow_exception(error);
  } catch (const refused_error& e) {
    return e.retry_after();
  } catch (...) {
    return {};
  }
}

}  // namespace

std::string_view to_string(retry_error::reason why) noexcept {
  switch (why) {
    case retry_error::reason::attempts:
      return "no attempts are left";
    case retry_error::reason::elapsed:
      return "elapsed_max has passed";
    case retry_error::reason::budget:
      return "the retry budget is used up";
    case retry_error::reason::timed_out:
      return "timed out";
    case retry_error::reason::stopped:
      return "stopped";
  }
  return "unknown";
}

retry_error::retry_error(reason why, std::uint32_t attempts, std::exception_ptr last)
    : std::runtime_error(message(why, attempts, last)),
      why_(why),
      attempts_(attempts),
      last_(std::move(last)) {}

// ---- the waits

retry_delays::retry_delays(const retry_policy& policy)
    : first_(static_cast<double>(policy.first_delay.count())),
      growth_(policy.growth),
      most_(static_cast<double>(policy.delay_max.count())),
      jitter_(policy.jitter),
      random_(policy.seed.has_value() ? *policy.seed : thread_random().next()),
      grown_(first_),
      last_(first_) {
  check(first_ >= 0 && first_ <= most_, "sluice::retry",
        "a first_delay that is not negative and up to delay_max");
  check(growth_ >= 1, "sluice::retry", "a growth of at least 1");
  check(policy.elapsed_max.count() >= 0, "sluice::retry", "an elapsed_max that is not negative");
  check(policy.attempts_max > 0 || policy.elapsed_max.count() > 0, "sluice::retry",
        "a limit: attempts_max or elapsed_max");
}

double retry_delays::spread(double lower, double upper) noexcept {
  const double unit = static_cast<double>(random_.next() >> 11) * 0x1p-53;  // 0 to 1
  return lower + unit * (upper - lower);
}

std::chrono::nanoseconds retry_delays::next() {
  const double d = std::min(grown_, most_);
  grown_ = std::min(grown_ * growth_, most_);
  switch (jitter_) {
    case jitter::none:
      last_ = d;
      break;
    case jitter::full:
      last_ = spread(0, d);
      break;
    case jitter::equal:
      last_ = spread(d / 2, d);
      break;
    case jitter::decorrelated:
      last_ = std::min(most_, spread(first_, last_ * 3));
      break;
  }
  return std::chrono::nanoseconds(static_cast<std::int64_t>(last_));
}

// ---- one call

namespace detail {

retry_run::retry_run(const retry_policy& policy, wait_limits limits)
    : policy_(policy),
      limits_(std::move(limits)),
      clock_(policy.clock != nullptr ? *policy.clock : real_clock()),
      delays_(policy),
      began_(clock_.now()) {}

void retry_run::begin() {
  if (limits_.stop.stop_requested()) give_up(retry_error::reason::stopped);
  if (policy_.budget != nullptr) policy_.budget->call();
}

bool retry_run::is_retried(const std::exception_ptr& error) const {
  if (policy_.retry_if) return policy_.retry_if(error);
  try {
    std::rethrow_exception(error);
  } catch (const future_error& e) {
    return e.why() != future_error::cancelled;
  } catch (...) {
    return true;
  }
}

time_point retry_run::latest() const noexcept {
  const auto& until = limits_.deadline;
  if (until.is_never()) return time_point::max();
  clock& on = until.on() != nullptr ? *until.on() : real_clock();
  if (&on == &clock_) return until.when();
  // The deadline is on another clock: convert its remaining time.
  const auto left = until.passed() ? time_point::duration::zero() : until.when() - on.now();
  const auto now = clock_.now();
  return left >= time_point::max() - now ? time_point::max() : now + left;
}

deadline retry_run::failed(const std::exception_ptr& error) {
  ++attempts_;
  last_ = error;
  if (!is_retried(error)) std::rethrow_exception(error);
  if (limits_.stop.stop_requested()) give_up(retry_error::reason::stopped);
  if (attempts_ == policy_.attempts_max) give_up(retry_error::reason::attempts);
  const auto delay = std::max(delays_.next(), refused_for(error));
  const auto now = clock_.now();
  const auto when = delay >= time_point::max() - now ? time_point::max() : now + delay;
  if (policy_.elapsed_max.count() > 0 && when - began_ > policy_.elapsed_max) {
    give_up(retry_error::reason::elapsed);
  }
  if (when >= latest()) give_up(retry_error::reason::timed_out);
  // Last, so that the budget is charged only for a retry that happens.
  if (policy_.budget != nullptr && !policy_.budget->try_retry()) {
    give_up(retry_error::reason::budget);
  }
  if (policy_.on_retry) {
    detail::call_back("on_retry", {}, policy_.on_retry, retry_event{attempts_, delay, error});
  }
  return policy_.clock != nullptr ? deadline::at(when, clock_) : deadline::at(when);
}

void retry_run::waited(status ended) const {
  if (ended == status::stopped) give_up(retry_error::reason::stopped);
}

void retry_run::wait(const std::exception_ptr& error) {
  const auto until = failed(error);
  event never;
  waited(never.wait({until, limits_.stop}));
}

void retry_run::give_up(retry_error::reason why) const {
  throw retry_error(why, attempts_, last_);
}

either_stop::either_stop(std::stop_token a, std::stop_token b) {
  if (!a.stop_possible() || !b.stop_possible()) {
    token_ = a.stop_possible() ? std::move(a) : std::move(b);
    return;
  }
  const std::stop_source both;
  token_ = both.get_token();
  first_.emplace(std::move(a), stopper{both});
  second_.emplace(std::move(b), stopper{both});
}

}  // namespace detail
}  // namespace sluice
