#include "jobs/store/sqlite/detail/settings_rows.hpp"

#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "jobs/store/sqlite/detail/job_row.hpp"

namespace sluice::jobs::detail {
namespace {

// The settings of a queue in the order of binding and reading, from its number on.
constexpr std::array<std::string_view, 20> queue_columns = {"number",
                                                            "name",
                                                            "capacity_jobs",
                                                            "capacity_bytes",
                                                            "when_full",
                                                            "paused",
                                                            "lease_for",
                                                            "keep_done",
                                                            "keep_results",
                                                            "keep_dead",
                                                            "rate",
                                                            "rate_burst",
                                                            "concurrency",
                                                            "weight",
                                                            "key_concurrency",
                                                            "key_rate",
                                                            "key_burst",
                                                            "deliver_url",
                                                            "deliver_concurrency",
                                                            "deliver_timeout"};

constexpr const char* cron_columns =
    "name, schedule, zone, missed, paused, next_at, last_at, last_job, runs, missed_runs, "
    "queue_name";
constexpr int cron_columns_count = 11;

overflow overflow_from(std::string_view word) {
  for (const overflow o : {overflow::block, overflow::reject, overflow::drop_newest,
                           overflow::drop_oldest, overflow::latest}) {
    if (to_string(o) == word) return o;
  }
  return queue_options{}.when_full;
}

std::string cron_column_list() {
  return std::string(cron_columns) + ", " + column_list(job_columns.size() - 1, "job_");
}

queue_options read_options(const statement& from) {
  const auto natural = [&](int at) { return unsigned_of(from.number(at)); };
  const auto small = [&](int at) { return static_cast<std::uint32_t>(from.number(at)); };
  const auto duration = [&](int at) { return milliseconds(from.number(at)); };
  return {.capacity_jobs = natural(2),
          .capacity_bytes = natural(3),
          .when_full = overflow_from(from.view(4)),
          .paused = from.number(5) != 0,
          .lease_for = duration(6),
          .keep_done = duration(7),
          .keep_results = duration(8),
          .keep_dead = duration(9),
          .rate = from.real(10),
          .rate_burst = small(11),
          .concurrency = small(12),
          .weight = small(13),
          .key_concurrency = small(14),
          .key_rate = from.real(15),
          .key_burst = small(16),
          .deliver = {.url = from.string(17), .concurrency = small(18), .timeout = duration(19)}};
}

cron_entry read_cron(const statement& from) {
  cron_entry e;
  e.spec.name = from.string(0);
  e.spec.schedule = from.string(1);
  e.spec.zone = from.string(2);
  e.spec.missed = missed_runs_from(from.view(3)).value_or(missed_runs::one);
  e.spec.paused = from.number(4) != 0;
  e.next_at = {from.number(5)};
  e.last_at = {from.number(6)};
  e.last_job = unsigned_of(from.number(7));
  e.runs = unsigned_of(from.number(8));
  e.missed = unsigned_of(from.number(9));
  job template_of_runs;
  if (read_row(from, cron_columns_count, template_of_runs)) {
    e.spec.job = std::move(template_of_runs.spec);
  }
  e.spec.job.queue = from.string(10);
  return e;
}

}  // namespace

std::string queue_column_list() {
  std::string list;
  for (const std::string_view column : queue_columns) {
    if (!list.empty()) list += ", ";
    list += column;
  }
  return list;
}

std::string damaged_cron() {
  return is_damaged(cron_column_list(), "job_checksum");
}

bool settings_rows::prepare(connection& on) {
  std::string updates;
  for (std::size_t i = 1; i < queue_columns.size(); ++i) {
    updates += std::string(queue_columns[i]) + " = ?" + std::to_string(i + 1) + ", ";
  }
  const std::string of_queue = parameter_list(queue_columns.size());
  const std::string of_cron = parameter_list(cron_columns_count + job_columns.size() - 1);
  return set_queue_.prepare(
             on, "INSERT INTO queues (" + queue_column_list() + ", checksum) VALUES (" + of_queue +
                     ", " + checksum_of(of_queue) + ") ON CONFLICT (number) DO UPDATE SET " +
                     updates + "checksum = " + checksum_of(of_queue)) &&
         set_cron_.prepare(on, "INSERT OR REPLACE INTO crons (" + std::string(cron_columns) + ", " +
                                   column_list(job_columns.size(), "job_") + ") VALUES (" +
                                   of_cron + ", " + checksum_of(of_cron) + ")") &&
         drop_cron_.prepare(on, "DELETE FROM crons WHERE name = ?1");
}

bool settings_rows::set_queue(queue_number number, const change::queue_settings& settings) {
  const auto& [name, o] = settings;
  return set_queue_.number(1, number)
      .text(2, name)
      .number(3, signed_of(o.capacity_jobs))
      .number(4, signed_of(o.capacity_bytes))
      .text(5, to_string(o.when_full))
      .number(6, o.paused ? 1 : 0)
      .number(7, o.lease_for.count())
      .number(8, o.keep_done.count())
      .number(9, o.keep_results.count())
      .number(10, o.keep_dead.count())
      .real(11, o.rate)
      .number(12, o.rate_burst)
      .number(13, o.concurrency)
      .number(14, o.weight)
      .number(15, o.key_concurrency)
      .real(16, o.key_rate)
      .number(17, o.key_burst)
      .text(18, o.deliver.url)
      .number(19, o.deliver.concurrency)
      .number(20, o.deliver.timeout.count())
      .run();
}

bool settings_rows::set_cron(const cron_entry& e) {
  row_texts texts;
  job template_of_runs;
  template_of_runs.spec = e.spec.job;
  bind_job(set_cron_, template_of_runs, 0, texts, cron_columns_count);
  return set_cron_.text(1, e.spec.name)
      .text(2, e.spec.schedule)
      .text(3, e.spec.zone)
      .text(4, to_string(e.spec.missed))
      .number(5, e.spec.paused ? 1 : 0)
      .number_or_null(6, e.next_at.ms, e.next_at == unix_time{})
      .number_or_null(7, e.last_at.ms, e.last_at == unix_time{})
      .number_or_null(8, signed_of(e.last_job), e.last_job == 0)
      .number(9, signed_of(e.runs))
      .number(10, signed_of(e.missed))
      .text(11, e.spec.job.queue)
      .run();
}

bool settings_rows::drop_cron(const cron_entry& e) {
  return drop_cron_.text(1, e.spec.name).run();
}

void_result load_queues(connection& on, std::vector<store::saved_queue>& into) {
  statement all;
  constexpr std::string_view doing = "reading its queues";
  if (!all.prepare(on, "SELECT " + queue_column_list() +
                           ", scheduled, held, ready, retrying, done, dead, cancelled, bytes "
                           "FROM queues ORDER BY number")) {
    return on.failure(doing);
  }
  int rc = SQLITE_ROW;
  while ((rc = all.step()) == SQLITE_ROW) {
    const auto natural = [&](int at) {
      return unsigned_of(all.number(static_cast<int>(queue_columns.size()) + at));
    };
    into.push_back({.number = static_cast<queue_number>(all.number(0)),
                    .name = all.string(1),
                    .options = read_options(all),
                    .counts = {.scheduled = natural(0),
                               .held = natural(1),
                               .ready = natural(2),
                               .retrying = natural(3),
                               .done = natural(4),
                               .dead = natural(5),
                               .cancelled = natural(6),
                               .bytes = natural(7)}});
  }
  if (rc != SQLITE_DONE) return on.failure(doing);
  return done{};
}

void_result load_crons(connection& on, std::vector<cron_entry>& into,
                       std::vector<std::string>& damaged) {
  statement all;
  constexpr std::string_view doing = "reading its cron entries";
  if (!all.prepare(on, "SELECT " + std::string(cron_columns) + ", " +
                           column_list(job_columns.size(), "job_") + ", " + damaged_cron() +
                           " FROM crons ORDER BY name")) {
    return on.failure(doing);
  }
  constexpr int at_damaged = cron_columns_count + static_cast<int>(job_columns.size());
  int rc = SQLITE_ROW;
  while ((rc = all.step()) == SQLITE_ROW) {
    cron_entry& entry = into.emplace_back(read_cron(all));
    if (all.number(at_damaged) == 0) continue;
    entry.spec.paused = true;
    damaged.push_back(entry.spec.name);
  }
  if (rc != SQLITE_DONE) return on.failure(doing);
  return done{};
}

}  // namespace sluice::jobs::detail
