// `sqlite_bare`: one thread that inserts 1024 rows in a transaction, deletes the same rows in
// another, and so on. `sqlite_commit_each`: one thread that commits after every insert. The file
// has the settings of the engine's store: WAL, synchronous=FULL.
#include <sqlite3.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>

#include "benchmarks/engine/workloads.hpp"
#include "sluice/base/testing/temporary_folder.hpp"

namespace sluice::bench {
namespace {

using clock = std::chrono::steady_clock;

class bare_table {
 public:
  explicit bare_table(const std::filesystem::path& file) {
    must(::sqlite3_open(file.c_str(), &db_));
    run("PRAGMA journal_mode=WAL");
    run("PRAGMA synchronous=FULL");
    run("CREATE TABLE jobs(id INTEGER PRIMARY KEY, args TEXT NOT NULL)");
    insert_ = prepare("INSERT INTO jobs(id, args) VALUES(?, ?)");
    delete_ = prepare("DELETE FROM jobs WHERE id = ?");
    begin_ = prepare("BEGIN IMMEDIATE");
    commit_ = prepare("COMMIT");
  }
  ~bare_table() {
    for (sqlite3_stmt* s : {insert_, delete_, begin_, commit_}) ::sqlite3_finalize(s);
    ::sqlite3_close(db_);
  }
  bare_table(const bare_table&) = delete;
  bare_table& operator=(const bare_table&) = delete;

  void begin() { step(begin_); }
  void commit() { step(commit_); }
  void insert(std::int64_t id, const std::string& args) {
    must(::sqlite3_bind_int64(insert_, 1, id));
    must(
        ::sqlite3_bind_text(insert_, 2, args.data(), static_cast<int>(args.size()), SQLITE_STATIC));
    step(insert_);
  }
  void remove(std::int64_t id) {
    must(::sqlite3_bind_int64(delete_, 1, id));
    step(delete_);
  }

 private:
  void must(int code) const {
    if (code != SQLITE_OK) fail(std::string("sqlite: ") + ::sqlite3_errmsg(db_));
  }
  void run(const char* sql) const { must(::sqlite3_exec(db_, sql, nullptr, nullptr, nullptr)); }
  sqlite3_stmt* prepare(const char* sql) const {
    sqlite3_stmt* s = nullptr;
    must(::sqlite3_prepare_v2(db_, sql, -1, &s, nullptr));
    return s;
  }
  void step(sqlite3_stmt* s) const {
    if (::sqlite3_step(s) != SQLITE_DONE) fail(std::string("sqlite: ") + ::sqlite3_errmsg(db_));
    must(::sqlite3_reset(s));
  }

  sqlite3* db_ = nullptr;
  sqlite3_stmt* insert_ = nullptr;
  sqlite3_stmt* delete_ = nullptr;
  sqlite3_stmt* begin_ = nullptr;
  sqlite3_stmt* commit_ = nullptr;
};

// Calls `round` repeatedly with the number of finished jobs; it returns how many it finished.
template <class Round>
tally rounds_for(seconds duration, Round round) {
  const testing::temporary_folder folder(testing::program_folder());
  bare_table table(folder.file("bare.db"));
  std::int64_t done = 0;
  const auto began = clock::now();
  while (clock::now() - began < duration) done += round(table, done);
  return {static_cast<std::uint64_t>(done), clock::now() - began};
}

tally insert_and_delete(seconds duration) {
  return rounds_for(duration, [args = job_args()](bare_table& table, std::int64_t done) {
    table.begin();
    for (int i = 1; i <= bare_batch; ++i) table.insert(done + i, args);
    table.commit();
    table.begin();
    for (int i = 1; i <= bare_batch; ++i) table.remove(done + i);
    table.commit();
    return bare_batch;
  });
}

tally commit_each(seconds duration) {
  return rounds_for(duration, [args = job_args()](bare_table& table, std::int64_t done) {
    table.begin();
    table.insert(done + 1, args);
    table.commit();
    return 1;
  });
}

const registration added{[](suite& s) {
  s.add("lifecycle", "sqlite_bare", per_second(insert_and_delete));
  s.add("push_sync_8", "sqlite_commit_each", per_second(commit_each));
}};

}  // namespace
}  // namespace sluice::bench
