#pragma once

// Why a future has no value, when the reason is not an exception of the user's: what `get` throws
// and `recover` sees.
//
//     try { use(f.get()); }
//     catch (const future_error& e) { if (e.why() == future_error::cancelled) return; throw; }

#include <cstdint>
#include <stdexcept>

namespace sluice {

class future_error : public std::runtime_error {
 public:
  enum reason : std::uint8_t {
    broken_promise,  // its promise was destroyed, or its function dropped, without a result
    cancelled,       // somebody asked it to stop, and it did
    timed_out,       // with_timeout: the time was over first
    rejected,        // the executor did not take its function
    cycle,           // it would have had to wait for itself
  };

  explicit future_error(reason why);
  // With what is known besides, as in "the executor was closed".
  future_error(reason why, const char* detail);
  reason why() const noexcept { return why_; }

 private:
  reason why_;
};

const char* to_string(future_error::reason why) noexcept;

}  // namespace sluice
