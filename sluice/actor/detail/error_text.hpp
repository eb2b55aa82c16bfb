#pragma once

// The text of an exception, for logs and reports.

#include <exception>
#include <string>

namespace sluice::detail {

// Returns what() of a std::exception, and a fixed text for anything else.
std::string error_text(const std::exception_ptr& error);

}  // namespace sluice::detail
