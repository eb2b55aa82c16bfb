#pragma once

// Bytes in a text that carries only characters: RFC 4648, the plain alphabet, with padding.

#include <optional>
#include <string>
#include <string_view>

namespace sluice::jobs::json {

void append_base64(std::string& out, std::string_view bytes);
// None when it is not base64. Padding may be left out; bits that stand for nothing must be zero.
std::optional<std::string> from_base64(std::string_view text);

}  // namespace sluice::jobs::json
