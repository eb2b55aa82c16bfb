#pragma once

#include <exception>
#include <string>

namespace sluice::detail {

// What an exception says, in words.
std::string error_text(const std::exception_ptr& error);

}  // namespace sluice::detail
