#pragma once

// The tables of a store's file, and how to tell that a file is one.
//
// docs/reference/store.md says what every column means.

#include <cstdint>

#include "jobs/store/sqlite/detail/connection.hpp"

namespace sluice::jobs::detail {

inline constexpr std::int32_t application_id = 0x736C7563;  // "sluc", as file(1) shows it
inline constexpr std::int32_t format_version = 1;

// Makes the tables in an empty file. Refuses one that belongs to another program (invalid), was
// made by a newer version (invalid) or is no database (corrupt), and has changed nothing in it
// then.
void_result ensure_schema(connection& on);

// Refuses a file that is shorter than it says (corrupt): what SQLite itself would notice only when
// it comes to a page that is missing. Looks at nothing else; a file that is not there is fine.
void_result check_length(const std::string& path);

}  // namespace sluice::jobs::detail
