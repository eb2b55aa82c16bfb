#include "sluice/flow/circuit_breaker.hpp"

#include <algorithm>
#include <mutex>

#include "sluice/base/detail/callback.hpp"
#include "sluice/future/future_error.hpp"

namespace sluice {

std::string_view to_string(circuit_state s) noexcept {
  switch (s) {
    case circuit_state::closed:
      return "closed";
    case circuit_state::open:
      return "open";
    case circuit_state::half_open:
      return "half open";
  }
  return "unknown";
}

circuit_breaker::circuit_breaker(options o)
    : options_(std::move(o)),
      clock_(options_.clock != nullptr ? *options_.clock : real_clock()),
      window_(options_.window_calls, options_.window_time, clock_.now()),
      next_open_for_(options_.open_for) {
  const auto must = [this](bool holds, const char* expected) {
    check_named(holds, "sluice::circuit_breaker", options_.name.c_str(), expected);
  };
  must(options_.consecutive_failures > 0 || options_.failure_share > 0,
       "consecutive_failures or failure_share to be set, so that it can trip");
  must(options_.failure_share >= 0 && options_.failure_share <= 1,
       "a failure_share between 0 and 1");
  must(options_.calls_min > 0, "a calls_min of at least 1");
  must(options_.window_time.count() > 0 || options_.calls_min <= options_.window_calls ||
           options_.failure_share == 0,
       "a window that holds calls_min calls");
  must(options_.slow_after.count() >= 0, "a slow_after that is not negative");
  must(options_.open_for.count() > 0 && options_.open_for <= options_.open_for_max,
       "an open_for longer than zero and up to open_for_max");
  must(options_.open_growth >= 1, "an open_growth of at least 1");
  must(options_.probes > 0, "at least one probe");
}

circuit_breaker::~circuit_breaker() {
  const std::lock_guard hold(mutex_);
  check_named(permits_ == 0, "sluice::circuit_breaker", options_.name.c_str(),
              "no open permit at its destruction");
}

// ---- under the lock

void circuit_breaker::move_to(circuit_state new_state, std::chrono::nanoseconds open_for) {
  if (options_.on_change) unreported_.push_back({state_, new_state, open_for});
  state_ = new_state;
  ++generation_;
  in_a_row_ = 0;
  window_.clear();
  probes_out_ = 0;
  probes_good_ = 0;
  if (new_state == circuit_state::open) {
    const auto now = clock_.now();
    open_until_ = open_for >= time_point::max() - now ? time_point::max() : now + open_for;
    ++stats_.trips;
  }
}

void circuit_breaker::open_again() {
  const auto open_for = next_open_for_;
  const auto longer = static_cast<double>(open_for.count()) * options_.open_growth;
  const auto most = options_.open_for_max;
  next_open_for_ = longer >= static_cast<double>(most.count())
                       ? most
                       : std::chrono::nanoseconds(static_cast<std::int64_t>(longer));
  move_to(circuit_state::open, open_for);
}

bool circuit_breaker::too_many_failures() const noexcept {
  if (options_.consecutive_failures > 0 && in_a_row_ >= options_.consecutive_failures) return true;
  return options_.failure_share > 0 && window_.calls() >= options_.calls_min &&
         static_cast<double>(window_.failures()) >=
             options_.failure_share * static_cast<double>(window_.calls());
}

std::chrono::nanoseconds circuit_breaker::left_open() const noexcept {
  if (state_ != circuit_state::open) return {};
  return std::max(open_until_ - clock_.now(), std::chrono::nanoseconds::zero());
}

void circuit_breaker::count(circuit_verdict v, bool slow) {
  if (v == circuit_verdict::ignored) {
    if (state_ == circuit_state::half_open) --probes_out_;
    return;
  }
  const bool failed = v == circuit_verdict::failure || slow;
  if (state_ == circuit_state::half_open) {
    if (failed) {
      open_again();
    } else if (++probes_good_ == options_.probes) {
      next_open_for_ = options_.open_for;
      move_to(circuit_state::closed);
    }
    return;
  }
  in_a_row_ = failed ? in_a_row_ + 1 : 0;
  if (options_.failure_share > 0) window_.add(failed, clock_.now());
  if (failed && too_many_failures()) open_again();
}

// ---- calls

circuit_breaker::permit circuit_breaker::try_enter() {
  bool changed = false;
  const auto enter = [&]() -> permit {
    const std::lock_guard hold(mutex_);
    const auto now = clock_.now();
    if (state_ == circuit_state::open && now >= open_until_) {
      move_to(circuit_state::half_open);
      changed = true;
    }
    if (state_ == circuit_state::open) {
      ++stats_.refused;
      return permit(open_until_ - now);
    }
    if (state_ == circuit_state::half_open) {
      // A successful probe keeps its place: at most `probes` are made in all.
      if (probes_out_ == options_.probes) {
        ++stats_.refused;
        return permit(std::chrono::nanoseconds::zero());
      }
      ++probes_out_;
    }
    ++permits_;
    return permit(*this, generation_, now);
  };
  auto result = enter();
  if (changed) notify();
  return result;
}

circuit_breaker::permit circuit_breaker::enter_or_throw() {
  auto entered = try_enter();
  if (!entered) throw refusal(entered);
  return entered;
}

refused_error circuit_breaker::refusal(const permit& refused) const {
  return {refused_error::reason::open, options_.name.empty() ? "circuit_breaker" : options_.name,
          refused.retry_after()};
}

circuit_verdict circuit_breaker::judge(const std::exception_ptr& error) const {
  if (options_.judge) return options_.judge(error);
  try {
    std::rethrow_exception(error);
  } catch (const future_error& e) {
    return e.why() == future_error::cancelled ? circuit_verdict::ignored : circuit_verdict::failure;
  } catch (...) {
    return circuit_verdict::failure;
  }
}

void circuit_breaker::record(std::uint64_t generation, time_point began,
                             circuit_verdict v) noexcept {
  {
    const std::lock_guard hold(mutex_);
    --permits_;
    const bool slow = options_.slow_after.count() > 0 && v != circuit_verdict::ignored &&
                      clock_.now() - began >= options_.slow_after;
    stats_.slow += slow ? 1 : 0;
    if (v == circuit_verdict::ignored) {
      ++stats_.abandoned;
    } else if (v == circuit_verdict::failure || slow) {
      ++stats_.failures;
    } else {
      ++stats_.successes;
    }
    if (generation != generation_) {
      ++stats_.late;
      return;
    }
    count(v, slow);
    if (unreported_.empty()) return;
  }
  notify();
}

void circuit_breaker::trip(std::chrono::nanoseconds open_for) {
  {
    const std::lock_guard hold(mutex_);
    move_to(circuit_state::open, open_for);
  }
  notify();
}

void circuit_breaker::reset() {
  {
    const std::lock_guard hold(mutex_);
    next_open_for_ = options_.open_for;
    move_to(circuit_state::closed);
  }
  notify();
}

void circuit_breaker::notify() noexcept {
  for (;;) {
    std::vector<circuit_change> now;
    {
      const std::lock_guard hold(mutex_);
      if (notifying_ || unreported_.empty()) return;  // the notifying thread checks again
      notifying_ = true;
      now.swap(unreported_);
    }
    for (const auto& change : now) {
      detail::call_back("on_change of circuit_breaker", options_.name, options_.on_change, change);
    }
    const std::lock_guard hold(mutex_);
    notifying_ = false;
  }
}

circuit_state circuit_breaker::state() const {
  const std::lock_guard hold(mutex_);
  return state_;
}

std::chrono::nanoseconds circuit_breaker::open_for() const {
  const std::lock_guard hold(mutex_);
  return left_open();
}

circuit_stats circuit_breaker::stats() const {
  const std::lock_guard hold(mutex_);
  return stats_;
}

}  // namespace sluice
