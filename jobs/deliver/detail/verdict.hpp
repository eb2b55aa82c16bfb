#pragma once

// What becomes of a job when its request has ended. docs/reference/delivery.md has it as a table.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "jobs/deliver/detail/outgoing.hpp"
#include "jobs/model/requests.hpp"
#include "jobs/model/time.hpp"

namespace sluice::jobs::detail {

struct say_done {
  std::optional<payload> result{};
  std::string dropped{};  // why there is none, though the answer had one
};

struct verdict {
  // What is said to the engine.
  std::variant<say_done, failure, give_back> word{};
  // What it says about the receiver: whether it works.
  enum class receiver : std::uint8_t { works, fails, unknown } is = receiver::unknown;
  milliseconds pause{0};  // the receiver asked not to be called for so long
};

verdict judge(outgoing_end end, const web_url& to, unix_time now);

// "120", or a date of HTTP. None when it is neither, or has passed; a day at most.
std::optional<milliseconds> parse_retry_after(std::string_view text, unix_time now);

}  // namespace sluice::jobs::detail
