#include "jobs/store/sqlite/detail/store_watch.hpp"

#include <filesystem>
#include <string>
#include <system_error>

#include "jobs/store/sqlite/detail/log_format.hpp"

namespace sluice::jobs::detail {

std::string unused_name(const std::string& wanted) {
  std::error_code failed;
  std::string name = wanted;
  for (int n = 2; std::filesystem::exists(name, failed); ++n) name = wanted + std::to_string(n);
  return name;
}

void store_watch::begin(connection& db, bool has_lock) {
  const auto page_bytes = db.number("PRAGMA page_size");
  page_bytes_ = page_bytes ? unsigned_of(*page_bytes) : 0;
  for (const char* const suffix : {"", "-wal", "-shm"}) files_.add(db.path() + suffix);
  if (has_lock) files_.add(db.path() + ".lock");
  (void)files_.find_loss({db.path(), 0});
}

void_result store_watch::check(connection& db, int log_pages) {
  if (lost_) return done{};
  const std::string log = db.path() + "-wal";
  const std::uint64_t log_bytes = log_pages == 0
                                      ? 0
                                      : log_head_bytes + static_cast<std::uint64_t>(log_pages) *
                                                             (frame_head_bytes + page_bytes_);
  const auto loss = files_.find_loss({log, log_bytes});
  if (!loss) return done{};
  // A checkpoint on close would delete the log by its name, which may be another file by now.
  sqlite3_db_config(db.handle(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
  lost_ = error{error_code::corrupt,
                *loss + " while the server had it open: the store rejects all further changes. " +
                    "Stop the server first. " + save_open_database(db)};
  return *lost_;
}

// Makes a copy beside the database. Returns a sentence without its period about the outcome.
std::string store_watch::save_open_database(connection& db) {
  std::error_code failed;
  const std::filesystem::path folder = std::filesystem::path(db.path()).parent_path();
  if (!folder.empty()) std::filesystem::create_directories(folder, failed);
  const std::string copy_path = unused_name(db.path() + ".saved");
  const auto not_saved = [&](const std::string& reason) {
    std::filesystem::remove(copy_path, failed);
    return "The stored jobs could not be saved (" + reason + "): restore a backup";
  };
  auto copy = connection::open(copy_path, {});
  if (!copy) return not_saved(copy.error().message);
  sqlite3_backup* const pages = sqlite3_backup_init(copy->handle(), "main", db.handle(), "main");
  if (pages == nullptr) return not_saved(sqlite3_errmsg(copy->handle()));
  const int rc = sqlite3_backup_step(pages, -1);
  sqlite3_backup_finish(pages);
  if (rc != SQLITE_DONE) return not_saved(sqlite3_errstr(rc));
  statement check;
  const bool is_sound = check.prepare(*copy, "PRAGMA quick_check(1)") &&
                        check.step() == SQLITE_ROW && check.view(0) == "ok";
  if (!is_sound) return not_saved("the copy is damaged");
  return "The stored jobs were saved as " + copy_path + "; rename that file to " + db.path();
}

}  // namespace sluice::jobs::detail
