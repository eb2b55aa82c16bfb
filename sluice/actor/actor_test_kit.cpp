#include "sluice/actor/actor_test_kit.hpp"

#include <algorithm>

#include "sluice/actor/detail/error_text.hpp"

namespace sluice {
actor_test_kit::actor_test_kit(actor_system_options o) : system_(on_, prepared(std::move(o))) {}

actor_system_options actor_test_kit::prepared(actor_system_options o) {
  o.time = &time_;
  if (!o.on_failure) {
    o.on_failure = [this](const actor_failure& f) {
      failures_.with([&](auto& all) {
        all.push_back(std::string(f.name) + ": " + detail::error_text(f.error));
      });
    };
  }
  return o;
}

actor_test_kit::~actor_test_kit() {
  system_.stop();
  // An actor on another executor may be the last to end: then this executor is idle for a moment.
  while (system_.join(deadline::after(std::chrono::nanoseconds(0))) != status::ok) {
    (void)on_.run_next(deadline::after(std::chrono::milliseconds(1)));
  }
  (void)on_.run_all();
}

std::size_t actor_test_kit::settle() {
  const std::size_t ran = on_.run_some(settle_max);
  if (ran == settle_max && on_.pending() > 0) {
    throw actor_test_error("the actors do not settle: they have run " + std::to_string(settle_max) +
                           " turns, and more are ready");
  }
  return ran;
}

void actor_test_kit::advance(std::chrono::nanoseconds by) {
  (void)advance_until(by, [] { return false; });
}

bool actor_test_kit::advance_until(std::chrono::nanoseconds at_most,
                                   unique_function<bool()> is_true) {
  const time_point end = time_.now() + at_most;
  for (;;) {
    settle();
    if (is_true()) return true;
    if (time_.now() >= end) return false;
    time_.advance(std::min(time_.earliest(), end) - time_.now());
  }
}

std::vector<std::string> actor_test_kit::failures() const {
  return failures_.with([](const auto& all) { return all; });
}

}  // namespace sluice
