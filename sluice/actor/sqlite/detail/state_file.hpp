#pragma once

// The file of a sqlite_actor_store: one table of states by type and key. Every call throws
// actor_store_error, whose text names the file, the failed operation and the reason. Not
// thread-safe.

#include <sqlite3.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace sluice::detail {

class state_file {
 public:
  // Opens or creates the file, and locks it against all other processes.
  explicit state_file(const std::string& path);

  const std::string& path() const noexcept { return path_; }

  void begin();
  void commit();
  void roll_back() noexcept;

  std::optional<std::string> load(std::string_view type, std::string_view key);
  void save(std::string_view type, std::string_view key, std::string_view state);
  void remove(std::string_view type, std::string_view key);

 private:
  struct closer {
    void operator()(sqlite3* db) const noexcept { sqlite3_close_v2(db); }
    void operator()(sqlite3_stmt* s) const noexcept { sqlite3_finalize(s); }
  };
  using statement = std::unique_ptr<sqlite3_stmt, closer>;

  void exec(const char* sql, std::string_view doing);
  long long number(const char* sql);
  statement prepare(const char* sql);
  void bind(const statement& s, int at, std::string_view bytes);
  void run(const statement& s, std::string_view doing);
  void check_format();
  [[noreturn]] void fail(std::string_view doing) const;
  [[noreturn]] void refuse(const std::string& why) const;

  const std::string path_;
  std::unique_ptr<sqlite3, closer> db_;
  statement load_;
  statement save_;
  statement remove_;
};

}  // namespace sluice::detail
