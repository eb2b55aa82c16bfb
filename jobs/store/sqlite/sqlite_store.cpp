#include "jobs/store/sqlite/sqlite_store.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>

#include "jobs/store/sqlite/detail/batch_finder.hpp"
#include "jobs/store/sqlite/detail/connection.hpp"
#include "jobs/store/sqlite/detail/disk_reserve.hpp"
#include "jobs/store/sqlite/detail/job_finder.hpp"
#include "jobs/store/sqlite/detail/job_row.hpp"
#include "jobs/store/sqlite/detail/lock_file.hpp"
#include "jobs/store/sqlite/detail/log_scan.hpp"
#include "jobs/store/sqlite/detail/schema.hpp"
#include "jobs/store/sqlite/detail/settings_rows.hpp"
#include "jobs/store/sqlite/detail/sqlite_reader.hpp"
#include "jobs/store/sqlite/detail/store_watch.hpp"
#include "jobs/store/sqlite/detail/transaction_writer.hpp"
#include "jobs/store/sqlite/detail/write_ahead_log.hpp"
#include "sluice/base/clock.hpp"

namespace sluice::jobs {
namespace {

using detail::connection;
using detail::reset_at_end;
using detail::statement;
using detail::unsigned_of;
using synced_by = detail::write_ahead_log::synced_by;

constexpr std::array<std::pair<sync_mode, std::string_view>, 3> mode_words = {{
    {sync_mode::full, "full"},
    {sync_mode::interval, "interval"},
    {sync_mode::off, "off"},
}};

// The free space is read again after this time, and after adds of this part of the reserve, since
// their size is an estimate.
constexpr milliseconds free_bytes_valid_for{100};
constexpr std::uint64_t parts_of_left_free = 4;
// Below this much free space the cached value is discarded: the log's file has preallocated space
// and would accept jobs that the main file cannot hold.
constexpr std::uint64_t all_but_full = std::uint64_t{1} << 20;
// Disk bytes per byte of weight: index entries, unused parts of pages.
constexpr std::uint64_t bytes_for_a_byte = 2;
// Below this much free space the log is not extended ahead.
constexpr std::uint64_t room_for_zeros = std::uint64_t{4} << 20;
constexpr milliseconds watched_every{1000};
constexpr std::uint64_t reader_cache_bytes = std::uint64_t{1} << 20;

bool has_adds(const transaction& t) {
  return std::ranges::any_of(t.changes, [](const change& c) { return c.type == change::op::add; });
}

std::uint64_t added_bytes(const transaction& t) {
  std::uint64_t bytes = 0;
  for (const change& c : t.changes) {
    if (c.type == change::op::add) bytes += weight_of(c.job->spec);
    if (!c.logs) continue;
    for (const log_line& line : *c.logs) bytes += line.text.size();
  }
  return bytes;
}

class sqlite_store final : public store {
 public:
  sqlite_store(sqlite_options o, connection on, detail::lock_file lock,
               std::optional<detail::disk_reserve> reserve)
      : options_(std::move(o)),
        lock_(std::move(lock)),
        reserve_(std::move(reserve)),
        db_(std::move(on)),
        log_(db_, options_.sync == sync_mode::full ? synced_by::commits : synced_by::flushes),
        damage_(std::make_shared<detail::damage_report>(options_.path, options_.on_notice)),
        write_(options_.key_lines_in_memory, damage_),
        find_(damage_),
        batches_(damage_) {}
  ~sqlite_store() override {
    if (!watch_.lost()) keep_log_if_space_is_short();
  }

  // Must be called first: creates the tables, sets the modes, prepares the statements.
  void_result begin();
  // Copies the log into the file and truncates it, so that reported damage is not found again after
  // a crash.
  void drop_log() { copy_failed_ = !log_.copy(SQLITE_CHECKPOINT_TRUNCATE).has_value(); }

  result<contents> load() override;
  result<applied> apply(const transaction& t) override;
  void_result flush() override;
  result<std::vector<job_ptr>> ready_after(queue_number queue, position after,
                                           page_limit limit) override;
  result<due_page> due(unix_time now, std::size_t limit) override;
  result<timed_page> timed_after(queue_number queue, due_place after, std::size_t limit) override {
    return find_.timed_after(queue, after, limit);
  }
  result<std::vector<job_ptr>> victims(queue_number queue, victim which, std::size_t limit,
                                       const std::function<bool(job_id)>& skip) override;
  result<std::optional<job>> get(job_id id) override { return find_.get(id); }
  result<std::optional<batch_info>> get_batch(job_id id) override { return batches_.get(id); }
  result<batch_page> list_batches(job_id after, std::size_t limit) override {
    return batches_.list(after, limit);
  }
  result<log_page> logs(job_id id, std::uint64_t after, std::size_t limit) override {
    return batches_.logs(id, after, limit);
  }
  result<job_page> list(const job_filter& filter, job_id after, std::size_t limit) override {
    return find_.list(filter, after, limit);
  }
  void_result watch() override { return watch_.check(db_, log_.pages()); }
  milliseconds watch_every() const override {
    return options_.vfs.empty() ? watched_every : milliseconds(0);
  }
  std::vector<job> take_damaged() override;
  std::optional<std::uint64_t> free_bytes() override;
  std::unique_ptr<store_reader> reader() override;
  std::string describe() const override {
    return "SQLite, " + options_.path + ", sync=" + std::string(to_string(options_.sync));
  }

 private:
  void_result set_modes();
  bool prepare();
  result<applied> apply_once(const transaction& t);
  // Rolls back after a failed transaction.
  void roll_back() noexcept;
  bool write_mark();
  void make_way();
  void keep_log_if_space_is_short() noexcept;
  void_result copy_log_if_long();
  std::uint64_t bytes_to_come();
  void_result find_due_jobs(unix_time now, std::size_t limit, due_page& page);
  void_result find_due_batches(unix_time now, std::size_t limit, due_page& page);
  void_result check_settings();
  void_result load_leases(std::vector<saved_lease>& into);
  void_result find_leased(job_id id, saved_lease& saved);

  // Constant after construction.
  sqlite_options options_;
  detail::lock_file lock_;  // outlives the connection

  std::optional<detail::disk_reserve> reserve_;
  time_point free_bytes_read_at_{};
  std::uint64_t free_bytes_ = 0;
  std::uint64_t added_since_read_ = 0;

  connection db_;
  detail::write_ahead_log log_;
  const std::shared_ptr<detail::damage_report> damage_;
  detail::transaction_writer write_;
  detail::job_finder find_;
  detail::batch_finder batches_;
  statement begin_, commit_, ready_, due_, due_batches_, last_rank_, oldest_, newest_;

  detail::store_watch watch_;

  bool copy_failed_ = false;  // of the log
  bool is_rolled_back_ = true;
  bool is_short_of_space_ = false;  // the last transaction failed for lack of space
};

void_result sqlite_store::begin() {
  if (auto made = detail::ensure_schema(db_, options_.on_notice); !made) return made;
  if (auto set = set_modes(); !set) return set;
  if (!prepare()) return db_.failure("preparing to use it");
  if (reserve_) reserve_->restore();
  if (options_.vfs.empty()) watch_.begin(db_, lock_.is_held());
  return done{};
}

void_result sqlite_store::set_modes() {
  statement mode;
  if (!mode.prepare(db_, "PRAGMA journal_mode = WAL") || mode.step() != SQLITE_ROW) {
    return db_.failure("setting up its write-ahead log");
  }
  if (mode.view(0) != "wal") {
    return error{error_code::io_error, options_.path +
                                           ": its file system does not support a write-ahead log: "
                                           "use a local disk"};
  }
  // NORMAL syncs only at checkpoints. With OFF a power cut could damage the file, not only lose the
  // last transactions.
  const char* const sync = options_.sync == sync_mode::full ? "PRAGMA synchronous = FULL"
                                                            : "PRAGMA synchronous = NORMAL";
  if (!db_.exec(sync)) return db_.failure("setting its sync mode");
  log_.begin();
  return done{};
}

bool sqlite_store::prepare() {
  const std::string select = "SELECT " + detail::column_list() + " FROM jobs INDEXED BY ";
  const std::string of_rank =
      "SELECT id FROM jobs INDEXED BY jobs_ready WHERE queue = ?1 AND state = 2 AND rank = ?2 "
      "ORDER BY turn";
  return write_.prepare(db_) && find_.prepare(db_) && batches_.prepare(db_) &&
         begin_.prepare(db_, "BEGIN IMMEDIATE") && commit_.prepare(db_, "COMMIT") &&
         ready_.prepare(db_, select +
                                 "jobs_ready WHERE queue = ?1 AND state = 2 AND "
                                 "(rank, turn) > (?2, ?3) ORDER BY rank, turn") &&
         due_.prepare(db_, select + "jobs_due WHERE due_at IS NOT NULL ORDER BY due_at, id") &&
         due_batches_.prepare(db_,
                              "SELECT id, due_at FROM batches INDEXED BY batches_due "
                              "WHERE due_at IS NOT NULL AND NOT " +
                                  detail::is_damaged(detail::batch_columns) +
                                  " ORDER BY due_at, id LIMIT ?1") &&
         last_rank_.prepare(db_,
                            "SELECT rank FROM jobs INDEXED BY jobs_ready WHERE queue = ?1 AND "
                            "state = 2 AND rank < ?2 ORDER BY rank DESC LIMIT 1") &&
         oldest_.prepare(db_, of_rank) && newest_.prepare(db_, of_rank + " DESC");
}

// ---- writing

result<applied> sqlite_store::apply(const transaction& t) {
  if (watch_.lost()) return *watch_.lost();
  if (copy_failed_ && (has_adds(t) || t.changes.empty())) {
    // The log would only grow. Acks are still accepted; adds, and an empty transaction, which tests
    // the store, fail.
    if (auto copied = log_.copy(SQLITE_CHECKPOINT_PASSIVE); !copied) {
      return std::move(copied.error());
    }
  }
  auto stored = apply_once(t);
  if (!stored && is_short_of_space_ && !has_adds(t)) {
    make_way();
    stored = apply_once(t);
  }
  if (stored) {
    if (reserve_) {
      const std::uint64_t added = bytes_for_a_byte * added_bytes(t);
      free_bytes_ -= std::min(free_bytes_, added);
      added_since_read_ += added;
    }
    // The transaction is committed even if this fails; the next one with adds gets the error.
    copy_failed_ = !copy_log_if_long().has_value();
  }
  return stored;
}

result<applied> sqlite_store::apply_once(const transaction& t) {
  applied outcome;
  constexpr std::string_view doing = "storing a transaction";
  is_short_of_space_ = false;
  if (!is_rolled_back_ || db_.in_transaction()) roll_back();
  if (!is_rolled_back_) return db_.failure("rolling back a transaction");
  if (!begin_.run()) {
    error failure = db_.failure(doing);
    is_short_of_space_ = failure.code == error_code::disk_full;
    return failure;
  }
  if (!reserve_ || free_bytes_ >= room_for_zeros) log_.grow_ahead();
  if (!write_.write(t, outcome) || !commit_.run()) {
    std::optional<error> own = write_.own_error();
    const bool in_doubt = !own && detail::may_have_been_logged(db_.extended_code());
    error failure = own ? std::move(*own) : db_.failure(doing);
    roll_back();
    is_short_of_space_ = failure.code == error_code::disk_full;
    if (in_doubt && !(is_short_of_space_ && write_mark())) {
      failure.code = error_code::io_error;
      failure.message += "; if a crash follows at once, the transaction may still be stored";
    }
    return failure;
  }
  write_.committed();
  log_.note_commit();
  const bool renames = std::ranges::any_of(
      t.changes, [](const change& c) { return c.type == change::op::set_queue; });
  if (renames) find_.names().forget();
  return outcome;
}

// Commits a small transaction, which overwrites the frames of a failed one in the log.
bool sqlite_store::write_mark() {
  const bool written = begin_.run() && write_.mark() && commit_.run();
  if (!written) roll_back();
  return written;
}

void sqlite_store::roll_back() noexcept {
  write_.undone();
  // SQLite may have rolled back itself. After a failure the next transaction tries again.
  is_rolled_back_ = db_.end_transaction();
}

// Frees space for a transaction without adds: deletes the reserve, and restarts the log.
void sqlite_store::make_way() {
  if (reserve_) reserve_->give_up();
  free_bytes_ = 0;
  copy_failed_ = !log_.copy(SQLITE_CHECKPOINT_RESTART).has_value();
}

// Closing would delete the log, and another program might use its space. If space is short the log
// is kept, so that opening again needs no space.
void sqlite_store::keep_log_if_space_is_short() noexcept {
  if (!reserve_ || !reserve_->is_short()) return;
  int keep = 1;
  sqlite3_file_control(db_.handle(), "main", SQLITE_FCNTL_PERSIST_WAL, &keep);
}

void_result sqlite_store::copy_log_if_long() {
  if (log_.pages() < static_cast<int>(options_.checkpoint_pages)) return done{};
  return log_.copy(SQLITE_CHECKPOINT_PASSIVE);
}

void_result sqlite_store::flush() {
  if (watch_.lost()) return *watch_.lost();
  return options_.sync == sync_mode::interval ? log_.flush() : void_result(done{});
}

// ---- reading

result<std::vector<job_ptr>> sqlite_store::ready_after(queue_number queue, position after,
                                                       page_limit limit) {
  const reset_at_end ended(ready_);
  ready_.number(1, queue).number(2, -after.priority);
  ready_.number(3, static_cast<std::int64_t>(after.turn));
  std::vector<job_ptr> page;
  std::uint64_t bytes = 0;
  while (page.size() < limit.jobs && bytes < limit.bytes) {
    const int rc = ready_.step();
    if (rc == SQLITE_DONE) break;
    if (rc != SQLITE_ROW) return db_.failure("reading the ready jobs of a queue");
    auto next = find_.read_sound(ready_);
    if (!next) return std::move(next.error());
    if (!*next) continue;
    if ((*next)->state != job_state::ready) {
      damage_->job((*next)->id, "is in the index of ready jobs, but is not ready");
      continue;
    }
    bytes += weight_of((*next)->spec);
    page.push_back(std::make_shared<const job>(std::move(**next)));
  }
  return page;
}

result<due_page> sqlite_store::due(unix_time now, std::size_t limit) {
  due_page page;
  if (auto found = find_due_jobs(now, limit, page); !found) return std::move(found.error());
  if (auto found = find_due_batches(now, limit, page); !found) return std::move(found.error());
  return page;
}

void_result sqlite_store::find_due_jobs(unix_time now, std::size_t limit, due_page& page) {
  const reset_at_end ended(due_);
  std::uint64_t bytes = 0;
  while (true) {
    const int rc = due_.step();
    if (rc == SQLITE_DONE) return done{};
    if (rc != SQLITE_ROW) return db_.failure("reading the jobs that are due");
    auto next = find_.read_sound(due_);
    if (!next) return std::move(next.error());
    if (!*next) continue;
    if ((*next)->due_at > now || page.jobs.size() >= limit || bytes >= page_limit{}.bytes) {
      page.next = (*next)->due_at;
      return done{};
    }
    bytes += weight_of((*next)->spec);
    page.jobs.push_back(std::make_shared<const job>(std::move(**next)));
  }
}

void_result sqlite_store::find_due_batches(unix_time now, std::size_t limit, due_page& page) {
  const reset_at_end ended(due_batches_);
  due_batches_.number(1, static_cast<std::int64_t>(limit) + 1);
  while (true) {
    const int rc = due_batches_.step();
    if (rc == SQLITE_DONE) return done{};
    if (rc != SQLITE_ROW) return db_.failure("reading the batches that are due");
    const unix_time when{due_batches_.number(1)};
    if (when > now || page.batches.size() >= limit) {
      page.next = page.next ? std::min(*page.next, when) : when;
      return done{};
    }
    page.batches.push_back(unsigned_of(due_batches_.number(0)));
  }
}

result<std::vector<job_ptr>> sqlite_store::victims(queue_number queue, victim which,
                                                   std::size_t limit,
                                                   const std::function<bool(job_id)>& skip) {
  statement& of_rank = which == victim::oldest ? oldest_ : newest_;
  constexpr std::string_view doing = "searching for jobs to drop";
  std::vector<job_ptr> found;
  // One priority after the other, from the least urgent: the index has them in that order only.
  std::int64_t before = std::numeric_limits<std::int64_t>::max();
  std::uint64_t bytes = 0;
  const auto wants_more = [&] { return found.size() < limit && bytes < page_limit{}.bytes; };
  while (wants_more()) {
    const reset_at_end rank_ended(last_rank_);
    const int any = last_rank_.number(1, queue).number(2, before).step();
    if (any == SQLITE_DONE) break;
    if (any != SQLITE_ROW) return db_.failure(doing);
    before = last_rank_.number(0);

    const reset_at_end ended(of_rank);
    of_rank.number(1, queue).number(2, before);
    int rc = SQLITE_DONE;
    while (wants_more() && (rc = of_rank.step()) == SQLITE_ROW) {
      const auto id = static_cast<job_id>(of_rank.number(0));
      if (skip(id)) continue;
      auto next = find_.get(id);
      if (!next) return std::move(next.error());
      if (!*next || (*next)->is_damaged) continue;
      bytes += weight_of((*next)->spec);
      found.push_back(std::make_shared<const job>(std::move(**next)));
    }
    if (rc != SQLITE_ROW && rc != SQLITE_DONE) return db_.failure(doing);
  }
  return found;
}

std::vector<job> sqlite_store::take_damaged() {
  std::vector<job> damaged;
  for (const job_id id : damage_->take()) {
    auto found = find_.get_as_stored(id);
    if (!found || !*found || !(*found)->is_damaged) continue;
    if ((*found)->state != job_state::dead) damaged.push_back(std::move(**found));
  }
  (void)damage_->take();  // reported again by get_as_stored
  return damaged;
}

result<store::contents> sqlite_store::load() {
  contents all;
  if (auto sound = check_settings(); !sound) return std::move(sound.error());
  const auto ids = db_.number("SELECT value FROM meta WHERE name = 'ids_up_to'");
  if (!ids) return ids.error();
  all.ids_up_to = unsigned_of(*ids);
  if (auto loaded = detail::load_queues(db_, all.queues); !loaded) {
    return std::move(loaded.error());
  }
  std::vector<std::string> damaged;
  if (auto loaded = detail::load_crons(db_, all.crons, damaged); !loaded) {
    return std::move(loaded.error());
  }
  for (const std::string& name : damaged) {
    damage_->notify(true, "cron entry '" + name + "' is damaged: it is paused; set it again");
  }
  if (auto loaded = load_leases(all.leases); !loaded) return std::move(loaded.error());
  return all;
}

// Fails if rows of queues or of `meta` are damaged: every job needs its queue, and new ids need
// `meta`.
void_result sqlite_store::check_settings() {
  statement damaged;
  const std::string sql =
      "SELECT 'the row of queue ' || name FROM queues WHERE " +
      detail::is_damaged(detail::queue_column_list()) +
      " UNION ALL SELECT 'the row ' || name || ' of the table meta' FROM meta WHERE "
      "name <> 'marks' AND " +
      detail::is_damaged(detail::meta_columns) + " LIMIT 1";
  constexpr std::string_view doing = "reading its queues";
  if (!damaged.prepare(db_, sql)) return db_.failure(doing);
  const int rc = damaged.step();
  if (rc == SQLITE_DONE) return done{};
  if (rc != SQLITE_ROW) return db_.failure(doing);
  return error{error_code::corrupt,
               options_.path + ": " + damaged.string(0) +
                   " does not match its checksum: " + std::string(detail::corrupt_advice)};
}

void_result sqlite_store::load_leases(std::vector<saved_lease>& into) {
  statement all;
  constexpr std::string_view doing = "reading its saved leases";
  const std::string sql = "SELECT " + std::string(detail::lease_columns) + ", " +
                          detail::is_damaged(detail::lease_columns) + " FROM leases ORDER BY job";
  if (!all.prepare(db_, sql)) return db_.failure(doing);
  int rc = SQLITE_ROW;
  while ((rc = all.step()) == SQLITE_ROW) {
    const job_id id = unsigned_of(all.number(0));
    if (all.number(detail::lease_columns_count) != 0) {
      damage_->notify(true, "the saved lease of job " + std::to_string(id) +
                                " is damaged: it is dropped, and the job can be leased again");
      continue;
    }
    saved_lease saved{.job = nullptr,
                      .queue = static_cast<queue_number>(all.number(1)),
                      .lease = {.key = unsigned_of(all.number(2)),
                                .worker = all.string(3),
                                .until = {all.number(4)},
                                .began = {all.number(5)},
                                .lasts = milliseconds(all.number(6)),
                                .progress = {},
                                .is_cancelled = all.number(9) != 0,
                                .job_key = all.string(10)}};
    if (!all.is_null(7)) saved.lease.progress = progress{all.real(7), all.string(8)};
    if (auto found = find_leased(id, saved); !found) return found;
    if (saved.job != nullptr) into.push_back(std::move(saved));
  }
  if (rc != SQLITE_DONE) return db_.failure(doing);
  return done{};
}

// The job of a saved lease; none if it is not ready any more.
void_result sqlite_store::find_leased(job_id id, saved_lease& saved) {
  if (saved.lease.is_cancelled) {
    auto name = find_.names().name_of(saved.queue);
    if (!name) return std::move(name.error());
    if (!name->empty()) saved.job = cancelled_job(id, std::string(*name), saved.lease);
    return done{};
  }
  auto found = find_.get(id);
  if (!found) return std::move(found.error());
  if (*found && (*found)->state == job_state::ready) {
    saved.job = std::make_shared<const job>(std::move(**found));
  }
  return done{};
}

// ---- the rest

// Returns the growth of the file at the next checkpoint.
std::uint64_t sqlite_store::bytes_to_come() {
  std::error_code failed;
  const auto on_disk = std::filesystem::file_size(options_.path, failed);
  const auto pages = db_.number("PRAGMA page_count");
  const auto page_bytes = db_.number("PRAGMA page_size");
  if (failed || !pages || !page_bytes) return 0;
  const std::uint64_t then = unsigned_of(*pages) * unsigned_of(*page_bytes);
  return then - std::min(then, std::uint64_t{on_disk});
}

std::optional<std::uint64_t> sqlite_store::free_bytes() {
  if (!reserve_) return std::nullopt;
  const time_point now = real_clock().now();
  const bool is_known = free_bytes_read_at_ != time_point{} &&
                        now - free_bytes_read_at_ < free_bytes_valid_for &&
                        added_since_read_ < reserve_->left_free() / parts_of_left_free &&
                        (free_bytes_ == 0 || reserve_->free_bytes() >= all_but_full);
  if (is_known) return free_bytes_;
  free_bytes_read_at_ = now;
  added_since_read_ = 0;
  reserve_->restore();
  const std::uint64_t to_come = bytes_to_come();
  free_bytes_ = reserve_->spare_bytes();
  free_bytes_ -= std::min(free_bytes_, to_come);
  // Extends the file while there is space, before acks use it for the log.
  if (free_bytes_ == 0 && to_come > 0)
    copy_failed_ = !log_.copy(SQLITE_CHECKPOINT_PASSIVE).has_value();
  // Free pages inside the file count too, although the file does not shrink. To fill them the log
  // needs some free disk space.
  if (reserve_->free_bytes() >= reserve_->left_free() / 2) {
    const auto pages = db_.number("PRAGMA freelist_count");
    const auto page_bytes = db_.number("PRAGMA page_size");
    if (pages && page_bytes) free_bytes_ += unsigned_of(*pages) * unsigned_of(*page_bytes);
  }
  return free_bytes_;
}

std::unique_ptr<store_reader> sqlite_store::reader() {
  return std::make_unique<detail::sqlite_reader>(
      options_.path,
      connection::options{.read_only = true,
                          .vfs = options_.vfs,
                          .cache_bytes = reader_cache_bytes,
                          .busy_ms = static_cast<int>(options_.busy_for.count())},
      log_.readers(), damage_);
}

// ---- opening

// Copies a log beside it and returns a sentence without its period about the outcome.
std::string keep_log(const std::string& log) {
  std::error_code failed;
  const std::string copy = detail::unused_name(log + ".damaged");
  std::filesystem::copy_file(log, copy, failed);
  return failed ? "it could not be copied: " + failed.message() : "a copy is kept as " + copy;
}

// Must precede the opening, which drops the frames behind a damaged one. Returns false if the log
// is sound.
bool report_log_damage(const sqlite_options& o) {
  const std::string log = o.path + "-wal";
  const auto damage = detail::find_log_damage(log, o.vfs);
  if (!damage) return false;
  std::string text = log + ": " + damage->describe();
  if (damage->is_certain() && o.sync != sync_mode::full) {
    text += ". In sync mode " + std::string(to_string(o.sync)) + " a power cut may do that";
  }
  if (o.vfs.empty()) text += "; " + keep_log(log);
  text += "; run 'sluice check', and see docs/reference/store.md#damage";
  if (o.on_notice) o.on_notice({damage->is_certain() && o.sync == sync_mode::full, text});
  return true;
}

result<std::unique_ptr<store>> open_once(const sqlite_options& o, bool files_beside) {
  detail::lock_file lock;
  std::optional<detail::disk_reserve> reserve;
  if (files_beside) {
    auto taken = detail::lock_file::take(o.path + ".lock", o.path);
    if (!taken) return std::move(taken.error());
    lock = std::move(*taken);
    reserve.emplace(o.path, detail::disk_reserve::sizes{.left_free = o.reserve_bytes,
                                                        .in_file = o.reserve_file_bytes});
  }
  if (o.vfs.empty()) {
    if (auto whole = detail::check_length(o.path); !whole) return std::move(whole.error());
  }
  const bool is_log_damaged = report_log_damage(o);
  auto on = connection::open(o.path, {.read_only = false,
                                      .vfs = o.vfs,
                                      .cache_bytes = o.cache_bytes,
                                      .busy_ms = static_cast<int>(o.busy_for.count())});
  if (!on) return std::move(on.error());
  auto made = std::make_unique<sqlite_store>(o, std::move(*on), std::move(lock), reserve);
  if (auto begun = made->begin(); !begun) return std::move(begun.error());
  if (is_log_damaged) made->drop_log();
  return std::unique_ptr<store>(std::move(made));
}

// Where the file really is, so that two names of one file are one lock.
std::string real_path(const std::string& path) {
  std::error_code failed;
  const auto absolute = std::filesystem::absolute(path, failed);
  if (failed) return path;
  const auto real = std::filesystem::weakly_canonical(absolute, failed);
  return failed ? absolute.string() : real.string();
}

}  // namespace

std::string_view to_string(sync_mode mode) noexcept {
  for (const auto& [known, word] : mode_words) {
    if (known == mode) return word;
  }
  return "unknown";
}

std::optional<sync_mode> sync_mode_from(std::string_view word) noexcept {
  for (const auto& [mode, known] : mode_words) {
    if (known == word) return mode;
  }
  return std::nullopt;
}

void leave_sqlite_memory_uncounted() noexcept {
  (void)sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
}

result<std::unique_ptr<store>> open_sqlite(sqlite_options o) {
  if (o.path.empty()) return error{error_code::invalid, "the path of the store must not be empty"};
  const bool files_beside = o.files_beside.value_or(o.vfs.empty());
  if (files_beside || o.vfs.empty()) o.path = real_path(o.path);
  auto opened = open_once(o, files_beside);
  if (!opened && opened.error().code == error_code::disk_full && files_beside) {
    // Opening needs a few KiB.
    detail::disk_reserve reserve(o.path, {});
    if (reserve.give_up()) opened = open_once(o, files_beside);
  }
  return opened;
}

}  // namespace sluice::jobs
