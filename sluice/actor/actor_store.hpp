#pragma once

// Stores the state of actors that are not in memory: bytes by type and key.
//
// keyed_actors.hpp calls it. Implement it for a database of your own; `memory_actor_store` is for
// tests, `sqlite_actor_store` (sluice/actor/sqlite) for a file.
//
// Requirements on an implementation, checked by testing/actor_store_suite.hpp: any thread may call
// anything, and no call blocks: results are futures. Calls for one type and key take effect in
// their order; calls for different keys have no order. The future of `save` or `remove` is ready
// when the change is durable (if the store is). A failure is the future's exception, best an
// actor_store_error; after it the state is the old or the new one, never a mixture. Type, key and
// state are arbitrary bytes, also zeros, also none. The store must outlive the actors stored in it.
//
//     std::optional<std::string> s = store.load("room", "lobby").get();

#include <optional>
#include <stdexcept>
#include <string>

#include "sluice/future/future.hpp"

namespace sluice {

// The store failed: the disk, the file, or too many calls at a time. The text names the failure and
// the file.
class actor_store_error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class actor_store {
 public:
  actor_store() = default;
  actor_store(const actor_store&) = delete;
  actor_store& operator=(const actor_store&) = delete;
  virtual ~actor_store() = default;

  // Returns no value if the state was never saved, or was removed.
  virtual future<std::optional<std::string>> load(std::string type, std::string key) = 0;
  virtual future<void> save(std::string type, std::string key, std::string state) = 0;
  // No effect if there is no state.
  virtual future<void> remove(std::string type, std::string key) = 0;
};

}  // namespace sluice
