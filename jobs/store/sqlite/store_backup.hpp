#pragma once

// Copies a store's file, also while a server uses it: the copy is a snapshot that can be opened as
// a store.
//
// Guarantees: the copy is written as `<backup>.part` and is on stable storage before it is renamed
// to `backup`; an existing `backup` is an error and is not replaced. Every change that was
// acknowledged before the call is included. The server continues; its jobs are delayed only by the
// load on the disk. After an error there is no file `backup`. `on_progress` is called on the
// calling thread.
// Cost: reads and writes the file once, in steps of 1 MiB. Meanwhile the server's log cannot be
// truncated and grows.
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

// Returns the size of the copy.
result<std::uint64_t> backup_store(
    const std::string& path, const std::string& backup,
    const std::function<void(const backup_progress&)>& on_progress = {});

}  // namespace sluice::jobs
