#pragma once

// The OpenAPI document of this server, as it was when the server was built.

#include <string_view>

namespace sluice::jobs::http {

std::string_view openapi_text() noexcept;

}  // namespace sluice::jobs::http
