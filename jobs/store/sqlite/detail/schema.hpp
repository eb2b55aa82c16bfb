#pragma once

// The tables of a store's file, and how to tell that a file is one.
//
// docs/reference/store.md says what every column means.

#include <cstdint>
#include <string>

#include "jobs/store/sqlite/detail/connection.hpp"
#include "jobs/store/sqlite/notice.hpp"

namespace sluice::jobs::detail {

inline constexpr std::int32_t application_id = 0x736C7563;  // "sluc", as file(1) shows it
inline constexpr std::int32_t format_version = 3;

// Makes the tables in an empty file, and upgrades one of an older format. Refuses one that
// belongs to another program (invalid), was made by a newer version (invalid) or is no database
// (corrupt), and has changed nothing in it then.
void_result ensure_schema(connection& on, const notice_callback& notice = {});

// A connection that only looks at a store's file, whoever else uses it. Refuses (invalid) what is
// not there, is no store, or has another format than this one.
result<connection> open_to_look(const std::string& path, std::uint64_t cache_bytes);

// Refuses a file that is shorter than it says (corrupt): what SQLite itself would notice only when
// it comes to a page that is missing. Looks at nothing else; a file that is not there is fine.
void_result check_length(const std::string& path);

}  // namespace sluice::jobs::detail
