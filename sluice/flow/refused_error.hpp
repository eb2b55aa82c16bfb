#pragma once

// What a call through a circuit breaker or a bulkhead throws when the call was not made at all.
//
// The everyday way to hear a refusal is the return value of `try_enter`. `call` returns what the
// function returns, so there a refusal is an exception: it passes through futures, tasks and a
// `retry` around it like any other, and says when another try could make sense.
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
    full,       // the bulkhead's places and its line are full
    timed_out,  // no place became free before the deadline
    stopped,    // the stop_token asked first
  };

  // `who` names what refused it.
  refused_error(reason why, std::string_view who, std::chrono::nanoseconds retry_after = {});

  reason why() const noexcept { return why_; }
  // How long the circuit stays open; zero when nothing is known.
  std::chrono::nanoseconds retry_after() const noexcept { return retry_after_; }

 private:
  reason why_;
  std::chrono::nanoseconds retry_after_;
};

std::string_view to_string(refused_error::reason why) noexcept;

}  // namespace sluice
