#pragma once

// Parses and formats sizes: "64KB", "16MiB", "1GB", or a number of bytes. K, M, G and T are powers
// of 1024, with and without the i.

#include <cstdint>
#include <string>
#include <string_view>

#include "jobs/model/result.hpp"

namespace sluice::jobs {

result<std::uint64_t> parse_size(std::string_view text);
// Uses the largest unit that gives a whole number: "16MB".
std::string format_size(std::uint64_t bytes);

}  // namespace sluice::jobs
