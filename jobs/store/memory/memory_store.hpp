#pragma once

// Keeps jobs as long as the process lives: for tests, for trying things out, and for work that may
// be lost with the process.
//
// Use it where nothing must survive. Prefer sqlite_store for everything else.
//
// Guarantees: those of store.hpp. "Stable storage" is `memory_contents`: two stores on the same
// contents, one after the other, are one store that was closed and opened again. Readers and
// `apply` may run on different threads; a reader sees whole batches.
// A move or drop of a job that is not there, and a change of a queue that was never set, are broken
// contracts: nobody but the engine can have mislaid it.
// Cost: O(log jobs) a change. Everything is in memory, so nothing here is bounded but by the
// capacities of the queues.
//
//     auto contents = make_memory_contents();
//     engine::open(make_memory_store({.contents = contents}));  // ... stop it, and
//     engine::open(make_memory_store({.contents = contents}));  // go on
//
// A test makes it fail, or holds a commit back, by what it does in `before_apply`.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "jobs/store/store.hpp"

namespace sluice::jobs {

class memory_contents;  // what outlives a memory store

std::shared_ptr<memory_contents> make_memory_contents();

struct memory_options {
  std::shared_ptr<memory_contents> contents{};  // null: new ones

  // Called on the thread that applies (flushes), before anything is done, with no lock held: it may
  // wait. What it returns is the result of the call, and then nothing was changed.
  std::function<std::optional<error>(const batch&)> before_apply{};
  std::function<std::optional<error>()> before_flush{};
  // What room() says; empty: that there is no limit.
  std::function<std::optional<std::uint64_t>()> room{};
};

std::unique_ptr<store> make_memory_store(memory_options options = {});

}  // namespace sluice::jobs
