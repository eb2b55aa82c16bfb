#pragma once

// A durable job queue inside your program: one file, no server.
//
// Use it if producers and workers are one program. Prefer a server (`sluice serve`) and `client`
// for several programs: only one program at a time can open the file.
//
// Guarantees: those of the engine (jobs/engine/engine.hpp) on a SQLite file
// (jobs/store/sqlite/sqlite_store.hpp). The file is created if it does not exist. Errors: `locked`
// (another program has the file open; the message names it), `corrupt`, `disk_full`, `io_error`,
// and `invalid` for a file of another kind.
//
//     auto jobs = jobs::open("jobs.db");
//     if (!jobs) return complain(jobs.error().message);
//     (*jobs)->push({.kind = "mail", .args = jobs::encode(mail{.recipient = "ada"})}).get();

#include <memory>
#include <string>

#include "jobs/engine/engine.hpp"
#include "jobs/model/result.hpp"
#include "jobs/store/sqlite/sqlite_store.hpp"

namespace sluice::jobs {

struct open_options {
  // When a push is durable; see sync_mode.
  sync_mode sync = sync_mode::full;
  // For sync_mode::interval: the longest period that a power cut can lose, at least 1 ms.
  milliseconds flush_every{100};

  // Further options. The path and the two options above override theirs.
  sqlite_options file{};
  engine_options engine{};
};

result<std::unique_ptr<engine>> open(std::string path, open_options o = {});

}  // namespace sluice::jobs
