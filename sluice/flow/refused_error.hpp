#pragma once

// Thrown by a call through a circuit breaker or a bulkhead if the function was not called at all.
//
// Normally a refusal is the return value of `try_enter`. `call` returns the function's result, so
// there a refusal is an exception: it passes through futures, tasks and a `retry` around it like
// any other, and holds the time after which another try makes sense.
//
//     catch (const refused_error& e) { reply(503, e.retry_after()); }

#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

namespace sluice {

class refused_error : public std::runtime_error {
 public:
  enum class reason : std::uint8_t {
    open,       // the circuit is open
    full,       // the bulkhead's places and its waiting list are full
    timed_out,  // no place became free before the deadline
    stopped,    // the stop_token ended the wait
  };

  // `source` is the name of the object that refused the call.
  refused_error(reason why, std::string_view source, std::chrono::nanoseconds retry_after = {});

  reason why() const noexcept { return why_; }
  // How long the circuit stays open; zero if not known.
  std::chrono::nanoseconds retry_after() const noexcept { return retry_after_; }

 private:
  reason why_;
  std::chrono::nanoseconds retry_after_;
};

std::string_view to_string(refused_error::reason why) noexcept;

}  // namespace sluice
