#include "jobs/store/sqlite/store_check.hpp"

#include <filesystem>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>

#include "jobs/model/queue.hpp"
#include "jobs/store/gates.hpp"
#include "jobs/store/sqlite/detail/connection.hpp"
#include "jobs/store/sqlite/detail/gate_tables.hpp"
#include "jobs/store/sqlite/detail/job_row.hpp"
#include "jobs/store/sqlite/detail/log_scan.hpp"
#include "jobs/store/sqlite/detail/schema.hpp"
#include "jobs/store/sqlite/detail/settings_rows.hpp"
#include "jobs/store/sqlite/detail/transaction_writer.hpp"

namespace sluice::jobs {
namespace {

using detail::connection;
using detail::reset_at_end;
using detail::statement;

constexpr std::uint64_t jobs_between_reports = 1000;
constexpr std::uint64_t check_cache_bytes = std::uint64_t{4} << 20;

std::string words(std::uint64_t number) {
  return std::to_string(number);
}

class checker {
 public:
  checker(connection on, const std::function<void(const check_progress&)>& on_progress)
      : on_(std::move(on)), on_progress_(on_progress) {}

  result<store_report> run();

 private:
  void_result check_all();
  void_result check_pages();
  void_result load_settings();
  void_result load_lines();
  void_result check_checksums();
  void_result check_jobs();
  void check_job(const job& j, std::int64_t queue, std::int64_t line, bool has_line);
  void check_waiting(const job& j);
  void check_counts();
  void check_lines();
  void_result check_batches();
  void_result check_edges();
  // Runs a query that must have no rows; reports each row as a sentence.
  template <class Describe>
  void_result expect_none(const char* sql, Describe describe);

  std::uint64_t number_for(statement& of, std::uint64_t id);
  void problem(std::string sentence);
  void report_progress(std::string_view part, std::uint64_t done = 0);
  error failed() const { return on_.failure("checking it"); }

  struct seen_line {
    bool is_stored = false;
    line_counts stored{};
    line_counts seen{};
  };

  connection on_;
  const std::function<void(const check_progress&)>& on_progress_;
  store_report report_;
  bool has_bad_pages_ = false;
  statement edges_of_;
  std::int64_t ids_up_to_ = 0;
  std::uint64_t jobs_counted_ = 0;
  std::map<std::int64_t, std::pair<std::string, queue_counts>> stored_;  // by queue number
  std::map<std::int64_t, queue_counts> seen_;
  std::unordered_map<line_number, seen_line> lines_;
};

void checker::problem(std::string sentence) {
  if (report_.problems.size() < store_report::problems_max) {
    report_.problems.push_back(std::move(sentence));
  } else {
    ++report_.problems_left_out;
  }
}

void checker::report_progress(std::string_view part, std::uint64_t done) {
  if (on_progress_) on_progress_({part, done, jobs_counted_});
}

std::uint64_t checker::number_for(statement& of, std::uint64_t id) {
  const reset_at_end ended(of);
  of.number(1, static_cast<std::int64_t>(id));
  return of.step() == SQLITE_ROW ? static_cast<std::uint64_t>(of.number(0)) : 0;
}

result<store_report> checker::run() {
  // One snapshot for the whole check.
  if (!on_.exec("BEGIN")) return failed();
  auto checked = check_all();
  if (!checked && checked.error().code != error_code::corrupt) return std::move(checked.error());
  if (!checked) problem("the file cannot be read completely: " + checked.error().message);
  return std::move(report_);
}

void_result checker::check_all() {
  // Before the rest: a frame that a server is writing now is not valid yet.
  const auto damage = detail::find_log_damage(on_.path() + "-wal");
  if (damage && damage->is_certain()) {
    problem("in the log, " + damage->describe());
  }
  if (auto checked = check_pages(); !checked) return checked;
  // With damaged pages, further checks would only report their consequences.
  if (has_bad_pages_) return done{};
  if (!detail::define_row_functions(on_)) return failed();
  if (auto loaded = load_settings(); !loaded) return loaded;
  if (auto checked = check_checksums(); !checked) return checked;
  if (auto loaded = load_lines(); !loaded) return loaded;
  if (auto checked = check_jobs(); !checked) return checked;
  check_counts();
  check_lines();
  if (auto checked = check_batches(); !checked) return checked;
  if (auto checked = check_edges(); !checked) return checked;
  report_progress("unique keys");
  auto checked = expect_none(
      "SELECT u.job, u.key FROM unique_keys u LEFT JOIN jobs j ON j.id = u.job "
      "WHERE u.expires_at IS NULL AND (j.id IS NULL OR j.queue <> u.queue)",
      [](const statement& row) {
        return "the unique key '" + row.string(1) + "' is held by job " +
               std::to_string(row.number(0)) + ", which does not exist";
      });
  if (!checked) return checked;
  report_progress("logs");
  return expect_none(
      "SELECT DISTINCT l.job FROM logs l LEFT JOIN jobs j ON j.id = l.job WHERE j.id IS NULL",
      [](const statement& row) {
        return "there are log lines of job " + std::to_string(row.number(0)) +
               ", which does not exist";
      });
}

void_result checker::check_pages() {
  report_progress("pages");
  statement pages;
  if (!pages.prepare(on_, "PRAGMA integrity_check(100)")) return failed();
  int rc = SQLITE_ROW;
  while ((rc = pages.step()) == SQLITE_ROW) {
    if (pages.view(0) == "ok") continue;
    has_bad_pages_ = true;
    problem("the file is damaged: " + pages.string(0));
  }
  if (rc != SQLITE_DONE) return failed();
  return done{};
}

void_result checker::load_settings() {
  const auto ids = on_.number("SELECT value FROM meta WHERE name = 'ids_up_to'", -1);
  if (!ids) return ids.error();
  ids_up_to_ = *ids;
  if (ids_up_to_ < 0) problem("the table meta has no ids_up_to: ids could be assigned again");
  std::vector<store::saved_queue> queues;
  if (auto loaded = detail::load_queues(on_, queues); !loaded) return loaded;
  for (const auto& q : queues) {
    stored_[q.number] = {q.name, q.counts};
    jobs_counted_ += q.counts.unfinished() + q.counts.done + q.counts.dead + q.counts.cancelled;
  }
  report_.queues = queues.size();
  return done{};
}

// Loads the lines whose jobs are counted: those of the table, and those with a waiting job.
void_result checker::load_lines() {
  statement all;
  if (!all.prepare(on_, "SELECT line, active, waiting FROM lines")) return failed();
  int rc = SQLITE_ROW;
  while ((rc = all.step()) == SQLITE_ROW) {
    lines_[all.number(0)] = {
        true,
        {static_cast<std::uint32_t>(all.number(1)), static_cast<std::uint32_t>(all.number(2))},
        {}};
  }
  if (rc != SQLITE_DONE) return failed();
  statement waiting;
  if (!waiting.prepare(on_,
                       "SELECT DISTINCT line FROM jobs INDEXED BY jobs_line WHERE state = 1 AND "
                       "blockers IS NULL AND line IS NOT NULL")) {
    return failed();
  }
  while ((rc = waiting.step()) == SQLITE_ROW) lines_.try_emplace(waiting.number(0));
  if (rc != SQLITE_DONE) return failed();
  return done{};
}

// Checks the checksums of all tables except `jobs`.
void_result checker::check_checksums() {
  const auto check = [this](const std::string& subject, const std::string& name,
                            const std::string& table, const std::string& is_damaged) {
    return expect_none(("SELECT " + name + " FROM " + table + " WHERE " + is_damaged).c_str(),
                       [&](const statement& row) {
                         return subject + " " + row.string(0) +
                                " is damaged: its row does not match its checksum";
                       });
  };
  using detail::is_damaged;
  for (auto checked :
       {check("queue", "name", "queues", is_damaged(detail::queue_column_list())),
        check("batch", "id", "batches", is_damaged(detail::batch_columns)),
        check("a log line of job", "job", "logs", is_damaged(detail::log_columns)),
        check("the saved lease of job", "job", "leases", is_damaged(detail::lease_columns)),
        check("cron entry", "name", "crons", detail::damaged_cron()),
        check("unique key", "key", "unique_keys", is_damaged(detail::key_columns)),
        check("a dependency of job", "job", "edges", is_damaged(detail::edge_columns)),
        check("in the table meta,", "name", "meta", is_damaged(detail::meta_columns))}) {
    if (!checked) return checked;
  }
  return done{};
}

void_result checker::check_jobs() {
  constexpr int columns_before = 3;
  statement all;
  if (!all.prepare(
          on_, "SELECT queue, state, line, " + detail::column_list() + " FROM jobs ORDER BY id") ||
      !edges_of_.prepare(on_, "SELECT count(*) FROM edges WHERE job = ?1")) {
    return failed();
  }
  const auto unverified = on_.number("SELECT value FROM meta WHERE name = 'unverified_up_to'");
  if (!unverified) return unverified.error();
  int rc = SQLITE_ROW;
  while ((rc = all.step()) == SQLITE_ROW) {
    if (report_.jobs % jobs_between_reports == 0) report_progress("jobs", report_.jobs);
    ++report_.jobs;
    job j;
    const auto as = detail::soundness_of(all, detail::unsigned_of(*unverified), columns_before);
    if (as == detail::soundness::unverified) ++report_.unverified;
    if (as == detail::soundness::control || as == detail::soundness::none) {
      problem("job " + std::to_string(all.number(columns_before)) + " is damaged: its row does " +
              "not match its checksum" +
              (as == detail::soundness::control ? " (args, or other data)" : ""));
    }
    if (!detail::read_row(all, columns_before, j)) {
      problem("job " + words(j.id) + " has the invalid state " + std::to_string(all.number(1)));
      continue;
    }
    check_job(j, all.number(0), all.number(2), !all.is_null(2));
  }
  if (rc != SQLITE_DONE) return failed();
  report_progress("jobs", report_.jobs);
  return done{};
}

void checker::check_job(const job& j, std::int64_t queue, std::int64_t line, bool has_line) {
  const std::string name = "job " + words(j.id);
  queue_counts& counts = seen_[queue];
  ++counts.of(j.state);
  if (!has_ended(j.state)) counts.bytes += weight_of(j.spec);
  if (!stored_.contains(queue)) {
    problem(name + " is in queue number " + std::to_string(queue) + ", which does not exist");
  }
  if (static_cast<std::int64_t>(j.id) > ids_up_to_) {
    problem(name + " has an id beyond " + std::to_string(ids_up_to_) +
            ": it could be assigned again");
  }
  const bool is_keyed = !j.spec.key.empty();
  if (is_keyed != has_line ||
      (is_keyed && line != line_of(static_cast<queue_number>(queue), j.spec.key))) {
    problem(name + " is not in the line of its key '" + j.spec.key + "'");
  }
  if (const auto at = lines_.find(line); has_line && at != lines_.end()) {
    if (gates::is_in_line(j)) ++at->second.seen.active;
    if (gates::waits_in_line(j)) ++at->second.seen.waiting;
  }
  check_waiting(j);
}

void checker::check_waiting(const job& j) {
  const std::string name = "job " + words(j.id);
  if (j.state == job_state::held && j.blockers == 0 && j.spec.key.empty()) {
    problem(name + " is held, but waits for nothing");
  }
  if (j.blockers > 0 && !has_ended(j.state) && j.state != job_state::held) {
    problem(name + " is " + std::string(to_string(j.state)) + ", but waits for " +
            words(j.blockers) + " others");
  }
  if (j.blockers == 0 && j.spec.after.empty()) return;
  const std::uint64_t edges = number_for(edges_of_, j.id);
  if (edges == j.blockers) return;
  problem(name + " counts " + words(j.blockers) + " open dependencies, but has " + words(edges));
}

void checker::check_counts() {
  for (const auto& [number, queue] : stored_) {
    const auto& [name, stored] = queue;
    const queue_counts& seen = seen_[number];
    for (const job_state s :
         {job_state::scheduled, job_state::held, job_state::ready, job_state::retrying,
          job_state::done, job_state::dead, job_state::cancelled}) {
      if (stored.of(s) == seen.of(s)) continue;
      problem("queue '" + name + "' counts " + words(stored.of(s)) + " jobs that are " +
              std::string(to_string(s)) + ", but there are " + words(seen.of(s)));
    }
    if (stored.bytes == seen.bytes) continue;
    problem("queue '" + name + "' counts " + words(stored.bytes) + " bytes, but its jobs have " +
            words(seen.bytes));
  }
}

void checker::check_lines() {
  for (const auto& [number, line] : lines_) {
    const std::string name = "line " + std::to_string(number);
    const line_counts& seen = line.seen;
    if (line.is_stored &&
        (line.stored.active != seen.active || line.stored.waiting != seen.waiting)) {
      problem(name + " counts " + words(line.stored.active) + " jobs with a place and " +
              words(line.stored.waiting) + " that wait, but there are " + words(seen.active) +
              " and " + words(seen.waiting));
    }
    if (seen.waiting > 0 && seen.active == 0) {
      problem("in " + name + " " + words(seen.waiting) +
              " jobs wait for the place of a key, but no job has it");
    }
  }
}

void_result checker::check_batches() {
  report_progress("batches");
  const auto count = on_.number("SELECT count(*) FROM batches");
  if (!count) return count.error();
  report_.batches = static_cast<std::uint64_t>(*count);
  return expect_none(
      "SELECT id, pending, unended, failed, failed_now, total, total_now, open, ended_at FROM ("
      "SELECT b.id, b.pending, b.failed, b.total, b.open, b.ended_at, "
      "(SELECT count(*) FROM jobs INDEXED BY jobs_batch WHERE batch = b.id AND batch IS NOT NULL "
      "AND state < 5) AS unended, "
      "(SELECT count(*) FROM jobs INDEXED BY jobs_batch WHERE batch = b.id AND batch IS NOT NULL "
      "AND state > 5) AS failed_now, "
      "(SELECT count(*) FROM jobs INDEXED BY jobs_batch WHERE batch = b.id AND batch IS NOT NULL) "
      "AS total_now FROM batches b) WHERE pending <> unended OR failed < failed_now OR "
      "total < total_now OR (open = 0 AND pending = 0) <> (ended_at IS NOT NULL)",
      [](const statement& row) {
        const auto number = [&](int at) { return std::to_string(row.number(at)); };
        const std::string name = "batch " + number(0);
        if (row.number(1) != row.number(2)) {
          return name + " counts " + number(1) + " jobs that have not ended, but there are " +
                 number(2);
        }
        if (row.number(3) < row.number(4)) {
          return name + " counts " + number(3) + " failed jobs, but there are " + number(4);
        }
        if (row.number(5) < row.number(6)) {
          return name + " counts " + number(5) + " jobs, but there are " + number(6);
        }
        return name + " has an end time that does not match its counts";
      });
}

void_result checker::check_edges() {
  report_progress("dependencies");
  const auto count = on_.number("SELECT count(*) FROM edges");
  if (!count) return count.error();
  report_.edges = static_cast<std::uint64_t>(*count);
  auto checked = expect_none(
      "SELECT e.job, e.on_id FROM edges e LEFT JOIN jobs j ON j.id = e.job "
      "WHERE j.id IS NULL OR coalesce(j.blockers, 0) = 0",
      [](const statement& row) {
        return "there is a dependency of job " + std::to_string(row.number(0)) + " on " +
               std::to_string(row.number(1)) + ", but the job does not exist or does not wait";
      });
  if (!checked) return checked;
  return expect_none(
      "SELECT e.job, e.on_id FROM edges e WHERE NOT EXISTS (SELECT 1 FROM jobs j WHERE "
      "j.id = e.on_id AND (j.state < 5 OR (j.state > 5 AND e.condition = 0))) AND NOT EXISTS "
      "(SELECT 1 FROM batches b WHERE b.id = e.on_id)",
      [](const statement& row) {
        return "job " + std::to_string(row.number(0)) + " waits for " +
               std::to_string(row.number(1)) + ", which does not exist or has ended";
      });
}

template <class Describe>
void_result checker::expect_none(const char* sql, Describe describe) {
  statement rows;
  if (!rows.prepare(on_, sql)) return failed();
  int rc = SQLITE_ROW;
  while ((rc = rows.step()) == SQLITE_ROW) problem(describe(rows));
  if (rc != SQLITE_DONE) return failed();
  return done{};
}

}  // namespace

result<store_report> check_store(const std::string& path,
                                 const std::function<void(const check_progress&)>& on_progress) {
  auto on = detail::open_to_look(path, check_cache_bytes);
  if (!on) return std::move(on.error());
  return checker(std::move(*on), on_progress).run();
}

}  // namespace sluice::jobs
