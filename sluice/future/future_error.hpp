#pragma once

// The errors of futures that are not exceptions of the user: thrown by `get`, passed to `recover`.
//
//     try { use(f.get()); }
//     catch (const future_error& e) { if (e.why() == future_error::cancelled) return; throw; }

#include <cstdint>
#include <stdexcept>

namespace sluice {

class future_error : public std::runtime_error {
 public:
  enum reason : std::uint8_t {
    broken_promise,  // the promise was destroyed, or the function dropped, without a result
    cancelled,       // ended because its stop_token was requested
    timed_out,       // with_timeout: the time ended first
    rejected,        // the executor refused the function
    cycle,           // it would have had to wait for itself
  };

  explicit future_error(reason why);
  // With a detail, such as "the executor was closed".
  future_error(reason why, const char* detail);
  reason why() const noexcept { return why_; }

 private:
  reason why_;
};

const char* to_string(future_error::reason why) noexcept;

}  // namespace sluice
