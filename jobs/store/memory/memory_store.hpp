#pragma once

// Keeps jobs in memory: for tests, for experiments, and for work that may be lost with the process.
//
// Use it where no job must survive the process. Prefer sqlite_store for everything else.
//
// Guarantees: those of store.hpp. "Stable storage" is `memory_contents`: opening a second store on
// the same contents, after the first, is like reopening a file. Readers and `apply` may run on
// different threads; a reader sees whole transactions.
// A move or drop of a missing job and a change of a queue that was never set are broken contracts:
// only the engine can cause them.
// Cost: O(log jobs) per change. All jobs are in memory, bounded only by the capacities of the
// queues.
//
//     auto contents = make_memory_contents();
//     engine::open(make_memory_store({.contents = contents}));  // ... stop it, and
//     engine::open(make_memory_store({.contents = contents}));  // reopen
//
// A test can make a commit fail or block it with `before_apply`.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "jobs/store/store.hpp"

namespace sluice::jobs {

class memory_contents;  // the stored data, which outlives a memory store

std::shared_ptr<memory_contents> make_memory_contents();

struct memory_options {
  std::shared_ptr<memory_contents> contents{};  // null: new ones

  // Called on the thread that applies (flushes), before any change, without a lock: it may block.
  // A returned error becomes the result of the call, which then changes nothing.
  std::function<std::optional<error>(const transaction&)> before_apply{};
  std::function<std::optional<error>()> before_flush{};
  // The result of store::free_bytes(); empty: no limit.
  std::function<std::optional<std::uint64_t>()> free_bytes{};
};

std::unique_ptr<store> make_memory_store(memory_options options = {});

}  // namespace sluice::jobs
