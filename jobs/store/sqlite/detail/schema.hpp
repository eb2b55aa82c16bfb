#pragma once

// The tables of a store's file, and the checks that a file is a store.
//
// docs/reference/store.md describes every column.

#include <cstdint>
#include <string>

#include "jobs/store/sqlite/detail/connection.hpp"
#include "jobs/store/sqlite/notice.hpp"

namespace sluice::jobs::detail {

inline constexpr std::int32_t application_id = 0x736C7563;  // "sluc", as file(1) shows it
inline constexpr std::int32_t format_version = 3;

// Creates the tables in an empty file, or upgrades a file of an older format. Fails without a
// change for a file of another program (invalid) or a newer version (invalid), and for a file that
// is not a database (corrupt).
void_result ensure_schema(connection& on, const notice_callback& notice = {});

// Opens a read-only connection to a store's file, also while other programs use it. Fails with
// `invalid` if the file does not exist, is not a store, or has another format.
result<connection> open_to_look(const std::string& path, std::uint64_t cache_bytes);

// Fails with `corrupt` if a file is shorter than its header states: SQLite would notice only when
// it reads a missing page. Checks nothing else; succeeds if the file does not exist.
void_result check_length(const std::string& path);

}  // namespace sluice::jobs::detail
