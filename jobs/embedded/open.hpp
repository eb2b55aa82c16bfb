#pragma once

// A durable job queue inside your program: one file, no server.
//
// Use it where those who push and those who work are one program. Prefer a server (`sluice serve`)
// and `client` when they are several: one program at a time can have the file.
//
// Guarantees: those of the engine (jobs/engine/engine.hpp) on a SQLite file
// (jobs/store/sqlite/sqlite_store.hpp). The file is made if it is not there. Errors: locked
// (another program has it, the message says which), corrupt, disk_full, io_error, and invalid for a
// file that is something else.
//
//     auto jobs = jobs::open("jobs.db");
//     if (!jobs) return complain(jobs.error().message);
//     (*jobs)->push({.kind = "mail", .args = jobs::encode(mail{.to = "ada"})}).get();

#include <memory>
#include <string>

#include "jobs/engine/engine.hpp"
#include "jobs/model/result.hpp"
#include "jobs/store/sqlite/sqlite_store.hpp"

namespace sluice::jobs {

struct open_options {
  // When a push counts as safe; see sync_mode.
  sync_mode sync = sync_mode::full;
  // For sync_mode::interval: the most that a power cut can lose, at least 1 ms (invalid).
  milliseconds flush_every{100};

  // All else. The path and the two above are filled in.
  sqlite_options file{};
  engine_options engine{};
};

result<std::unique_ptr<engine>> open(std::string path, open_options o = {});

}  // namespace sluice::jobs
