#pragma once

// Base64 (RFC 4648): the standard alphabet, with padding.

#include <optional>
#include <string>
#include <string_view>

namespace sluice::jobs::json {

void append_base64(std::string& out, std::string_view bytes);
// Returns none if `text` is not base64. Padding may be missing; unused bits must be zero.
std::optional<std::string> from_base64(std::string_view text);

}  // namespace sluice::jobs::json
