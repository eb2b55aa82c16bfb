#include "jobs/store/sqlite/detail/row_soundness.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "jobs/store/sqlite/detail/history_json.hpp"
#include "jobs/store/sqlite/detail/job_columns.hpp"
#include "jobs/store/sqlite/detail/row_checksum.hpp"

namespace sluice::jobs::detail {

soundness soundness_of(const statement& from, job_id unverified_up_to, int first) {
  if (from.is_null(first + c_checksum)) {
    const bool is_older = unsigned_of(from.number(first + c_id)) <= unverified_up_to;
    return is_older ? soundness::unverified : soundness::none;
  }
  row_checksum sum;
  std::int64_t weighed = 0;
  for (int c = 0; c < c_checksum; ++c) {
    sum.column(c, from, first + c, group_of(c));
    if (is_weighed(c)) weighed += static_cast<std::int64_t>(from.view(first + c).size());
  }
  sum.number(weighed_bytes, weighed);
  const std::int64_t stored = from.number(first + c_checksum);
  using group = row_checksum::group;
  if (!row_checksum::is_same(stored, sum.value(), group::control)) return soundness::none;
  const bool is_sound = row_checksum::is_same(stored, sum.value(), group::payload);
  return is_sound ? soundness::sound : soundness::control;
}

std::string checksum_update(std::span<const changed_column> changed) {
  const auto value_of = [&](std::string_view column) {
    const auto at = std::ranges::find(changed, column, &changed_column::name);
    return at == changed.end() ? column : at->value;
  };
  std::string all;
  std::string pairs;
  for (int c = 0; c < c_checksum; ++c) {
    const std::string_view name = job_columns[static_cast<std::size_t>(c)];
    all += (c > 0 ? ", " : "") + std::string(value_of(name));
    if (std::ranges::find(changed, name, &changed_column::name) == changed.end()) continue;
    pairs += ", " + std::to_string(c) + ", " + std::string(name) + ", ";
    pairs += value_of(name);
  }
  return "CASE WHEN checksum IS NULL THEN sluice_row_checksum(" + all +
         ") ELSE sluice_changed_checksum(checksum" + pairs + ") END";
}

std::string update_list(std::span<const changed_column> changed) {
  std::string list;
  for (const changed_column& c : changed) {
    list += std::string(c.name) + " = " + std::string(c.value) + ", ";
  }
  return list + "checksum = " + checksum_update(changed);
}

std::string checksum_of(std::string_view values) {
  return "sluice_checksum(" + std::string(values) + ")";
}

std::string is_damaged(std::string_view columns, std::string_view checksum) {
  return "(" + std::string(checksum) + " IS NOT NULL AND " + std::string(checksum) + " <> " +
         checksum_of(columns) + ")";
}

namespace {

// Arguments: the values of a row of any table.
void sql_checksum(sqlite3_context* context, int count, sqlite3_value** values) noexcept {
  row_checksum sum;
  for (int i = 0; i < count; ++i) sum.column(i, values[i]);
  sqlite3_result_int64(context, sum.value());
}

// Arguments: the columns of a job without the checksum, in their order.
void sql_row_checksum(sqlite3_context* context, int count, sqlite3_value** columns) noexcept {
  row_checksum sum;
  std::int64_t weighed = 0;
  for (int c = 0; c < count; ++c) {
    sum.column(c, columns[c], group_of(c));
    if (is_weighed(c)) weighed += sqlite3_value_bytes(columns[c]);
  }
  sum.number(weighed_bytes, weighed);
  sqlite3_result_int64(context, sum.value());
}

// Arguments: the old checksum, and for each changed column its number, old and new value.
void sql_changed_checksum(sqlite3_context* context, int count, sqlite3_value** values) noexcept {
  row_checksum sum(sqlite3_value_int64(values[0]));
  for (int i = 1; i + 2 < count; i += 3) {
    const int c = sqlite3_value_int(values[i]);
    sum.column(c, values[i + 1], group_of(c));
    sum.column(c, values[i + 2], group_of(c));
  }
  sqlite3_result_int64(context, sum.value());
}

// Arguments: the history of a job or NULL; the history of one attempt, or NULL to add none.
void sql_add_attempt(sqlite3_context* context, int, sqlite3_value** values) noexcept {
  if (sqlite3_value_type(values[1]) == SQLITE_NULL) return sqlite3_result_value(context, values[0]);
  if (sqlite3_value_type(values[0]) == SQLITE_NULL) return sqlite3_result_value(context, values[1]);
  const auto text_of = [](sqlite3_value* value) {
    const auto* data = static_cast<const char*>(sqlite3_value_blob(value));
    const auto size = static_cast<std::size_t>(sqlite3_value_bytes(value));
    return data == nullptr ? std::string_view() : std::string_view(data, size);
  };
  try {
    auto history = history_from_json(text_of(values[0]));
    for (attempt_record& one : history_from_json(text_of(values[1]))) {
      add_attempt(history, std::move(one));
    }
    const std::string text = history_to_json(history);
    sqlite3_result_text64(context, text.data(), text.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
  } catch (const std::bad_alloc&) {
    sqlite3_result_error_nomem(context);
  }
}

}  // namespace

bool define_row_functions(connection& on) {
  using function = void (*)(sqlite3_context*, int, sqlite3_value**);
  const auto define = [&](const char* name, int arguments, function body) {
    constexpr int flags = SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_DIRECTONLY;
    return sqlite3_create_function_v2(on.handle(), name, arguments, flags, nullptr, body, nullptr,
                                      nullptr, nullptr) == SQLITE_OK;
  };
  return define("sluice_checksum", -1, sql_checksum) &&
         define("sluice_row_checksum", c_checksum, sql_row_checksum) &&
         define("sluice_changed_checksum", -1, sql_changed_checksum) &&
         define("sluice_add_attempt", 2, sql_add_attempt);
}

}  // namespace sluice::jobs::detail
