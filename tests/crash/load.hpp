#pragma once

// Clients that keep a job server busy and the ledger informed: pushers (one by one and in bulk, now
// and later, with unique keys, cancelling and deleting some) and workers (that ack, with results
// too, fail, bury, extend, or hold on to what they took, with leases that run out). Where the
// protocol has them, batches with what they call.

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
  std::uint32_t keys = 40;          // how many unique keys there are; zero: none
  bool elapsing_keys = true;        // also such as are held for a time, whatever becomes of the job
  std::uint32_t batch_percent = 0;  // after so many of the pushes comes a batch
  milliseconds lease_wait{20};
  milliseconds short_lease{30};    // of one lease in ten, and of extensions
  std::uint32_t held_percent = 3;  // of leases, which a worker never ends; ten times that if short
  std::uint32_t result_percent = 4;       // of leases that end with a result
  std::uint32_t buried_percent = 2;       // of leases
  std::uint32_t called_off_percent = 12;  // after so many of the pushes one is cancelled or deleted
  std::size_t retries = 3;                // of dead jobs, before anything else
};

using connect = std::function<std::unique_ptr<client>()>;

// Until everybody found the server gone or was asked to stop: returns when all have ended, with how
// many of them found it gone.
int keep_busy(ledger& book, const connect& to, const load& how, std::stop_token stop);

// Takes and acks everything that is left, waits for what is due later, and looks at the dead.
// False: the server stopped answering, or did not run dry in that time.
[[nodiscard]] bool drain(ledger& book, client& from,
                         std::chrono::seconds patience = std::chrono::minutes(1));

}  // namespace sluice::crash
