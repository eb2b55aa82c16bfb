#pragma once

// Keeps the checksums of rows right, in C++ and in SQL, and finds damaged rows.
//
// An INSERT of a job binds the checksum that job_row.cpp made. An UPDATE changes it by the old and
// new values of the columns that it assigns. Rows of other tables have one of all their values.

#include <span>
#include <string>
#include <string_view>

#include "jobs/model/job.hpp"
#include "jobs/store/sqlite/detail/connection.hpp"

namespace sluice::jobs::detail {

// Whether a row that was read is as it was written. `control`: all that the rules of the store act
// on is sound, and the data of the producer or worker is not. `none`: nothing can be relied on.
enum class soundness : std::uint8_t { unverified, sound, control, none };
soundness soundness_of(const statement& from, job_id unverified_up_to, int first = 0);

// The SQL by which an UPDATE of the table `jobs` keeps the checksum right, for an assignment to it:
// the changed columns and the expressions of their new values.
struct changed_column {
  std::string_view name;
  std::string_view value;
};
std::string checksum_update(std::span<const changed_column> changed);
// "a = x, b = y, checksum = ..." of all of them.
std::string update_list(std::span<const changed_column> changed);
// The SQL of the checksum of a row of another table, from the SQL of its values; and whether a row
// is damaged: it has a checksum, and another one. Text, so that no C++ has to read the columns.
std::string checksum_of(std::string_view values);
std::string is_damaged(std::string_view columns, std::string_view checksum = "checksum");
// Defines the SQL functions that these expressions call; must precede every statement that does.
// Returns false if it failed.
[[nodiscard]] bool define_row_functions(connection& on);

// The columns of small tables that their checksum covers, in its order.
inline constexpr const char* key_columns = "queue, key, job, expires_at";
inline constexpr const char* edge_columns = "on_id, job, condition";
inline constexpr const char* meta_columns = "name, value";

}  // namespace sluice::jobs::detail
