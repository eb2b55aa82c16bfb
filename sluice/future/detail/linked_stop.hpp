#pragma once

// A stop_source that is also requested when one of several tokens is, or at a deadline: the source
// of the token of a group of tasks.

#include <optional>
#include <stop_token>

#include "sluice/base/deadline.hpp"
#include "sluice/base/outcome.hpp"
#include "sluice/future/detail/stop_at.hpp"
#include "sluice/sync/waiter.hpp"

namespace sluice::detail {

class linked_stop {
 public:
  // Tokens without a source cost nothing.
  explicit linked_stop(const std::stop_token& first = {}, const std::stop_token& second = {})
      : token_(source_.get_token()) {
    if (first.stop_possible()) first_.emplace(first, pass_on{source_});
    if (second.stop_possible() && second != first) second_.emplace(second, pass_on{source_});
  }
  linked_stop(const linked_stop&) = delete;
  linked_stop& operator=(const linked_stop&) = delete;

  void request_stop() noexcept { source_.request_stop(); }
  bool stop_requested() const noexcept { return source_.stop_requested(); }
  const std::stop_token& token() const noexcept { return token_; }
  const std::stop_source& source() const noexcept { return source_; }

 private:
  struct pass_on {
    std::stop_source target;  // its own share: the request may destroy the owner of the link
    void operator()() const noexcept { std::stop_source(target).request_stop(); }
  };

  std::stop_source source_;
  const std::stop_token token_;
  std::optional<std::stop_callback<pass_on>> first_;
  std::optional<std::stop_callback<pass_on>> second_;
};

// The same for one task with limits. Owned by the side that waits for the task.
class limited_stop : public linked_stop {
 public:
  limited_stop(const wait_limits& limits, const std::stop_token& inherited)
      : linked_stop(limits.stop, inherited),
        alarm_(source()),
        in_time_(alarm_.arm(limits.deadline)) {}

  // Called when the task has reached its first wait: a deadline that had passed before it began
  // requests the stop only now.
  void waits_now() noexcept {
    if (in_time_) return;
    late_ = true;
    request_stop();
  }
  // Returns the limit that stopped the task, or ok.
  status ended() noexcept {
    if (alarm_.disarm() || late_) return status::timed_out;
    return stop_requested() ? status::stopped : status::ok;
  }

 private:
  stop_at alarm_;
  const bool in_time_;
  bool late_ = false;
};

}  // namespace sluice::detail
