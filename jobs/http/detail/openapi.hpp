#pragma once

// The OpenAPI document, compiled into the server.

#include <string_view>

namespace sluice::jobs::http {

std::string_view openapi_text() noexcept;

}  // namespace sluice::jobs::http
