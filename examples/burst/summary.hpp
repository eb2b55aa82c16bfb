#pragma once

// The summary: a table for a person, JSON for a program.

#include <string>
#include <vector>

#include "examples/burst/burst.hpp"
#include "examples/burst/terminal.hpp"

namespace burst {

// The two lines above the rows.
std::string table_head(const terminal& t);
// One row, or, where the terminal is too narrow for it, a few lines.
std::string table_row(const report& r, const terminal& t);

std::string to_json(const settings& s, const std::vector<report>& reports);

}  // namespace burst
