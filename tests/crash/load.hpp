#pragma once

// Clients that load a job server and record their requests in a ledger. Pushers push single jobs,
// bulks and, if the protocol has them, batches with callbacks; due now and later, with unique keys;
// they cancel and delete some. Workers ack (also with results), fail, bury and extend, or let a
// lease expire.

#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <stop_token>

#include "tests/crash/client.hpp"
#include "tests/crash/ledger.hpp"

namespace sluice::crash {

struct load {
  int pushers = 3;
  int workers = 3;
  std::uint64_t seed = 1;
  std::uint64_t pushes_max = std::numeric_limits<std::uint64_t>::max();  // of each pusher
  std::uint32_t keys = 40;          // number of unique keys; zero: none
  bool elapsing_keys = true;        // also keys held for a time, independent of the job's end
  std::uint32_t batch_percent = 0;  // pushes followed by a batch
  milliseconds lease_wait{20};
  milliseconds short_lease{30};           // for one lease in ten, and for extensions
  std::uint32_t held_percent = 3;         // leases never ended; ten times as many of the short ones
  std::uint32_t result_percent = 4;       // leases ended with a result
  std::uint32_t buried_percent = 2;       // leases
  std::uint32_t called_off_percent = 12;  // pushes followed by a cancel or delete
  std::size_t retries = 3;                // of dead jobs, at the start
};

using connect = std::function<std::unique_ptr<client>()>;

// Runs the clients until the server is gone or `stop` is requested. Returns, when all of them have
// ended, how many found the server gone.
int keep_busy(ledger& book, const connect& open, const load& plan, std::stop_token stop);

// Leases and acks all remaining jobs, waits for those due later, and records the dead and the done.
// Returns false if the server stopped answering or was not empty within `patience`.
[[nodiscard]] bool drain(ledger& book, client& server,
                         std::chrono::seconds patience = std::chrono::minutes(1));

}  // namespace sluice::crash
