#pragma once

// A function to be run by an executor, with a priority.
//
// Made from any callable, or from a priority and a callable. A larger priority is more urgent; only
// an executor with priorities uses it:
//
//     if (!pool.submit([] { thumbnail(); })) return;  // closed
//     const status s = pool.submit({9, [] { password_mail(); }});
//
// Guarantees: moves never throw. Cost: 64 bytes, no allocation for a callable of up to 40 bytes.

#include <concepts>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "sluice/base/unique_function.hpp"

namespace sluice {

class submission {
 public:
  submission() noexcept = default;
  template <class F>
    requires(!std::same_as<std::remove_cvref_t<F>, submission> &&
             std::is_invocable_v<std::decay_t<F>&>)
  submission(F&& f) : run(std::forward<F>(f)) {}
  template <class F>
    requires std::is_invocable_v<std::decay_t<F>&>
  submission(std::int32_t urgency, F&& f) : run(std::forward<F>(f)), priority(urgency) {}

  void operator()() { run(); }
  explicit operator bool() const noexcept { return static_cast<bool>(run); }

  unique_function<void()> run;
  std::int32_t priority = 0;
  // Used by the executor for its counters. Cleared before the submission is returned to the user,
  // who may submit it to another executor.
  enum class kind : std::uint32_t { submitted, timed, posted };
  kind mark = kind::submitted;
  std::int64_t stamp = 0;  // if timed: when it was accepted, in ns
  void clear_mark() noexcept {
    mark = kind::submitted;
    stamp = 0;
  }
};

}  // namespace sluice
