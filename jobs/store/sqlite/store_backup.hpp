#pragma once

// Copies a store's file, also while a server uses it: the copy is the store as it was at one
// moment, and opens as one.
//
// Guarantees: the copy is made under another name, `<to>.part`, is on stable storage before it gets
// its own, and takes nobody's place: a `to` that exists is refused. What was acknowledged before
// the call is in it. The server goes on; other jobs are neither lost nor delayed by more than what
// the disk takes. An error leaves no file `to`. `on_progress` is called on the calling thread.
// Cost: reads and writes the file once, in steps of 1 MiB. While it copies, the server's log cannot
// be shortened: it grows.
//
//     auto copied = backup_store("jobs.db", "backups/monday.db");
//     if (!copied) return fail(copied.error().message);

#include <cstdint>
#include <functional>
#include <string>

#include "jobs/model/result.hpp"

namespace sluice::jobs {

struct backup_progress {
  std::uint64_t done_bytes = 0;
  std::uint64_t total_bytes = 0;
};

// The size of the copy.
result<std::uint64_t> backup_store(
    const std::string& path, const std::string& to,
    const std::function<void(const backup_progress&)>& on_progress = {});

}  // namespace sluice::jobs
