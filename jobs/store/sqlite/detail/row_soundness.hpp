#pragma once

// Maintains the checksums of rows, in C++ and in SQL, and finds damaged rows.
//
// An INSERT of a job binds the checksum computed by job_row.cpp. An UPDATE changes it by the old
// and new values of the assigned columns. Rows of other tables have a checksum of all their values.

#include <span>
#include <string>
#include <string_view>

#include "jobs/model/job.hpp"
#include "jobs/store/sqlite/detail/connection.hpp"

namespace sluice::jobs::detail {

// The soundness of a row. `control`: the columns that the rules of the store use are sound, the
// data of the producer or worker is damaged. `none`: all columns may be damaged.
enum class soundness : std::uint8_t { unverified, sound, control, none };
soundness soundness_of(const statement& from, job_id unverified_up_to, int first = 0);

// Returns the SQL expression of the new checksum for an UPDATE of the table `jobs`, from the
// changed columns and the expressions of their new values.
struct changed_column {
  std::string_view name;
  std::string_view value;
};
std::string checksum_update(std::span<const changed_column> changed);
// Returns "a = x, b = y, checksum = ..." for these columns.
std::string update_list(std::span<const changed_column> changed);
// Return the SQL of the checksum of a row of another table, from the SQL of its values; and of the
// condition that a row has a checksum that does not match. In SQL, so that C++ need not read the
// columns.
std::string checksum_of(std::string_view values);
std::string is_damaged(std::string_view columns, std::string_view checksum = "checksum");
// Defines the SQL functions that these expressions call; must precede every statement that does.
// Returns false on failure.
[[nodiscard]] bool define_row_functions(connection& on);

// The columns of small tables in their checksum, in its order.
inline constexpr const char* key_columns = "queue, key, job, expires_at";
inline constexpr const char* edge_columns = "on_id, job, condition";
inline constexpr const char* meta_columns = "name, value";

}  // namespace sluice::jobs::detail
