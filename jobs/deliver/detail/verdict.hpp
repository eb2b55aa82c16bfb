#pragma once

// The outcome of a job after its request. docs/reference/delivery.md has the table.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "jobs/deliver/detail/outgoing.hpp"
#include "jobs/model/requests.hpp"
#include "jobs/model/time.hpp"

namespace sluice::jobs::detail {

struct delivery_ack {
  std::optional<payload> result{};
  std::string dropped{};  // why the response's result is not stored
};

struct verdict {
  // The report to the engine.
  std::variant<delivery_ack, failure, give_back> report{};
  // The state of the receiver.
  enum class receiver_state : std::uint8_t { works, fails, unknown };
  receiver_state receiver = receiver_state::unknown;
  milliseconds pause{0};  // requested by the receiver
};

verdict judge(outgoing_end end, const web_url& url, unix_time now);

// Parses "120" or an HTTP date. Returns nullopt if it is neither or has passed; at most a day.
std::optional<milliseconds> parse_retry_after(std::string_view text, unix_time now);

}  // namespace sluice::jobs::detail
