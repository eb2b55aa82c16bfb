#include "jobs/store/sqlite/store_backup.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include "jobs/store/sqlite/detail/connection.hpp"
#include "jobs/store/sqlite/detail/schema.hpp"

namespace sluice::jobs {
namespace {

using detail::connection;

constexpr int pages_at_once = 256;
constexpr std::uint64_t backup_cache_bytes = std::uint64_t{2} << 20;
// Retries while another program has the copy locked, such as a virus scanner.
constexpr int busy_tries_max = 100;
constexpr int busy_pause_ms = 50;

error system_failure(const std::string& call, int code) {
  const bool is_full = code == ENOSPC || code == EDQUOT;
  return {is_full ? error_code::disk_full : error_code::io_error,
          call + ": " + std::system_category().message(code) +
              "; check the folder, its permissions and its free space"};
}

void_result sync(const std::string& path, int flags) {
  const int fd = ::open(path.c_str(), flags | O_CLOEXEC);
  if (fd < 0) return system_failure("cannot open " + path, errno);
  const int code = ::fsync(fd) == 0 ? 0 : errno;
  ::close(fd);
  if (code != 0) return system_failure("cannot sync " + path, code);
  return done{};
}

// Renames the copy, unless a file of that name exists.
void_result rename_to(const std::string& from, const std::string& target) {
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, target.c_str(), RENAME_NOREPLACE) == 0) {
    return done{};
  }
  int code = errno;
  const bool is_unknown = code == EINVAL || code == ENOSYS;  // not supported by the file system
  if (is_unknown && !std::filesystem::exists(target)) {
    code = std::rename(from.c_str(), target.c_str()) == 0 ? 0 : errno;
    if (code == 0) return done{};
  }
  return system_failure("cannot name the copy " + target, is_unknown ? EEXIST : code);
}

result<std::uint64_t> copy_pages(connection& from, connection& dest,
                                 const std::function<void(const backup_progress&)>& on_progress) {
  const auto page_bytes = from.number("PRAGMA page_size");
  if (!page_bytes) return page_bytes.error();
  // An open read transaction fixes the snapshot: otherwise every commit would restart the copy.
  if (!from.exec("BEGIN; SELECT count(*) FROM meta")) return from.failure("reading it to copy it");
  const std::unique_ptr<sqlite3_backup, int (*)(sqlite3_backup*)> copy(
      sqlite3_backup_init(dest.handle(), "main", from.handle(), "main"), sqlite3_backup_finish);
  if (copy == nullptr) return dest.failure("beginning the copy");
  const auto bytes = [&](int pages) {
    return static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(*page_bytes);
  };
  int busy = 0;
  while (true) {
    const int rc = sqlite3_backup_step(copy.get(), pages_at_once);
    const int pages = sqlite3_backup_pagecount(copy.get());
    if (on_progress)
      on_progress({bytes(pages - sqlite3_backup_remaining(copy.get())), bytes(pages)});
    if (rc == SQLITE_DONE) return bytes(pages);
    if (rc == SQLITE_OK) continue;
    const bool is_busy = (rc & 0xff) == SQLITE_BUSY || (rc & 0xff) == SQLITE_LOCKED;
    if (!is_busy || ++busy > busy_tries_max) {
      return detail::sqlite_failure(dest.path(), "copying into it", rc, errno, sqlite3_errstr(rc));
    }
    sqlite3_sleep(busy_pause_ms);
  }
}

result<std::uint64_t> copy_into(const std::string& path, const std::string& part,
                                const std::function<void(const backup_progress&)>& on_progress) {
  auto from = detail::open_to_look(path, backup_cache_bytes);
  if (!from) return std::move(from.error());
  auto copy = connection::open(part, {.vfs = {}, .cache_bytes = backup_cache_bytes});
  if (!copy) return std::move(copy.error());
  // The copy is synced once, when it is complete.
  if (!copy->exec("PRAGMA synchronous = OFF")) return copy->failure("preparing the copy");
  return copy_pages(*from, *copy, on_progress);
}

}  // namespace

result<std::uint64_t> backup_store(const std::string& path, const std::string& backup,
                                   const std::function<void(const backup_progress&)>& on_progress) {
  std::error_code none;
  if (backup.empty()) return error{error_code::invalid, "the name of the copy must not be empty"};
  if (std::filesystem::exists(backup, none)) {
    return error{error_code::invalid,
                 backup + " exists already: choose another name or remove the file"};
  }
  const std::string part = backup + ".part";
  std::filesystem::remove(part, none);  // left by an interrupted copy
  auto copied = copy_into(path, part, on_progress);
  void_result named = done{};
  if (copied) named = sync(part, O_RDWR);
  if (copied && named) named = rename_to(part, backup);
  if (!copied || !named) {
    std::filesystem::remove(part, none);
    if (!named) return std::move(named.error());
    return copied;
  }
  const auto folder = std::filesystem::absolute(backup, none).parent_path();
  if (auto synced = sync(folder.string(), O_RDONLY | O_DIRECTORY); !synced) {
    return std::move(synced.error());
  }
  return copied;
}

}  // namespace sluice::jobs
