#include "jobs/store/sqlite/detail/batch_finder.hpp"

#include <string>

#include "jobs/store/sqlite/detail/gate_tables.hpp"
#include "jobs/store/sqlite/detail/row_soundness.hpp"

namespace sluice::jobs::detail {
namespace {

// One row more than requested shows whether there is another page.
std::int64_t one_more(std::size_t limit) {
  constexpr std::size_t most = std::size_t{1} << 30;
  return static_cast<std::int64_t>(limit < most ? limit : most) + 1;
}

}  // namespace

bool batch_finder::prepare(connection& on) {
  on_ = &on;
  const std::string select = "SELECT " + std::string(batch_columns) + ", " +
                             is_damaged(batch_columns) + " FROM batches WHERE id ";
  return get_.prepare(on, select + "= ?1") &&
         list_.prepare(on, select + "> ?1 ORDER BY id LIMIT ?2") &&
         logs_.prepare(on, "SELECT number, attempt, at, text, " + is_damaged(log_columns) +
                               " FROM logs WHERE job = ?1 AND number > ?2 "
                               "ORDER BY number LIMIT ?3");
}

result<std::optional<batch_info>> batch_finder::get(job_id id) {
  const reset_at_end ended(get_);
  const int rc = get_.number(1, signed_of(id)).step();
  if (rc == SQLITE_DONE) return std::optional<batch_info>();
  if (rc != SQLITE_ROW) return on_->failure("reading a batch");
  if (get_.number(batch_columns_count) == 0) {
    return std::optional<batch_info>(read_batch_row(get_));
  }
  damage_->batch(id);
  return error{error_code::corrupt,
               "batch " + std::to_string(id) +
                   " is damaged in the store: its row does not match its checksum",
               id};
}

result<batch_page> batch_finder::list(job_id after, std::size_t limit) {
  const reset_at_end ended(list_);
  list_.number(1, signed_of(after)).number(2, one_more(limit));
  batch_page page;
  job_id last = after;
  for (std::size_t read = 0;; ++read) {
    const int rc = list_.step();
    if (rc == SQLITE_DONE) return page;
    if (rc != SQLITE_ROW) return on_->failure("listing batches");
    if (read >= limit) {
      page.cursor = last;
      return page;
    }
    last = unsigned_of(list_.number(0));
    if (list_.number(batch_columns_count) != 0) {
      damage_->batch(last);
    } else {
      page.batches.push_back(read_batch_row(list_));
    }
  }
}

result<log_page> batch_finder::logs(job_id id, std::uint64_t after, std::size_t limit) {
  const reset_at_end ended(logs_);
  logs_.number(1, signed_of(id)).number(2, signed_of(after));
  logs_.number(3, one_more(limit));
  log_page page;
  std::uint64_t bytes = 0;
  while (true) {
    const int rc = logs_.step();
    if (rc == SQLITE_DONE) return page;
    if (rc != SQLITE_ROW) return on_->failure("reading the logs of a job");
    if (page.lines.size() >= limit || bytes >= page_limit{}.bytes) {
      page.cursor = page.lines.empty() ? after : page.lines.back().number;
      return page;
    }
    log_line& line = page.lines.emplace_back();
    line.number = unsigned_of(logs_.number(0));
    if (logs_.number(4) != 0) {
      line.text = "(this line is damaged in the store)";
      damage_->log_of(id);
      continue;
    }
    line.attempt = static_cast<std::uint32_t>(logs_.number(1));
    line.at = {logs_.number(2)};
    line.text = logs_.string(3);
    bytes += line.text.size();
  }
}

}  // namespace sluice::jobs::detail
