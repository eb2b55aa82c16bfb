#pragma once

// Where the state of actors is while they are not in memory: bytes by type and key.
//
// keyed_actors.hpp calls it. Implement it for a database of your own; there are
// `memory_actor_store` for tests and `sqlite_actor_store` (sluice/actor/sqlite) for a file.
//
// What an implementation must give, and the suite in testing/actor_store_suite.hpp looks at: any
// thread may call anything, and no call waits: the futures are for that. Calls for one type and key
// take effect in the order in which they were made; between different keys there is none. The
// future of `save` or `remove` is ready when the change outlives a crash (as far as the store has
// such a thing). A failure is the future's exception, best an actor_store_error; after it the state
// is the one before or the new one, never a mixture. Type, key and state are any bytes, also zeros,
// also none. The store must outlive the actors that are kept in it.
//
//     std::optional<std::string> s = store.load("room", "lobby").get();

#include <optional>
#include <stdexcept>
#include <string>

#include "sluice/future/future.hpp"

namespace sluice {

// The store could not do it: the disk, the file, too much at a time. Says what and where.
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

  // Nothing: never saved, or removed.
  virtual future<std::optional<std::string>> load(std::string type, std::string key) = 0;
  virtual future<void> save(std::string type, std::string key, std::string state) = 0;
  // Of what is not there: nothing happens.
  virtual future<void> remove(std::string type, std::string key) = 0;
};

}  // namespace sluice
