#pragma once

// Keeps the states of actors in a file, so that entities outlive the process.
//
// Use it where one process has the entities. The file is a SQLite database that any tool can read
// and back up while no process has it open.
//
// Guarantees: those of actor_store.hpp. A save is answered when it is on stable storage
// (write-ahead log, synchronous=FULL): what was answered survives a crash of the process or of the
// machine. One process has the file at a time; another one is told so. One thread of its own works
// for all: while it commits, the calls that come gather, and are one transaction and one sync of
// the disk together. If that fails, each of them is tried alone, so that only those fail that
// cannot be done. Opening throws actor_store_error: no such folder, no right, another process has
// it, damaged, not a database, another program's, written by a newer version. Nothing is changed in
// such a file. The destructor does what was called before, then closes the file. Cost: a thread,
// and about 2 MB. ./bench has none: it is bound by the disk's sync. Limits: `queue_max` calls that
// wait; more fail at once. (Of keyed_actors there are at most about as many as are live.) A state
// has at most 1,000,000,000 bytes. Changes inside the bytes of a state by a failing disk are not
// found here: let `load` look.
//
//     sqlite_actor_store store("entities.db");
//     keyed_actors<room> rooms(system, {.store = &store, .type = "room"});

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "sluice/actor/actor_store.hpp"
#include "sluice/base/atomic.hpp"
#include "sluice/base/seam.hpp"
#include "sluice/future/promise.hpp"
#include "sluice/sync/guarded.hpp"

namespace sluice {

namespace detail {

class state_file;

struct state_call {
  enum class kind : std::uint8_t { load, save, remove };
  kind what = kind::load;
  std::string type{};
  std::string key{};
  std::string state{};  // to save, or what was loaded
  bool is_found = false;
  std::variant<promise<void>, promise<std::optional<std::string>>> done{};
};

struct state_line {
  std::deque<state_call> calls{};
  bool is_closed = false;
};

}  // namespace detail

struct sqlite_actor_store_options {
  std::size_t queue_max = 1'000'000;
  std::size_t batch_max = 1'000;  // calls in one transaction
};

struct sqlite_actor_store_stats {
  std::uint64_t calls = 0;    // that were answered
  std::uint64_t commits = 0;  // transactions that were tried, with one or more calls
};

class sqlite_actor_store final : public actor_store {
 public:
  using options = sqlite_actor_store_options;
  using stats_type = sqlite_actor_store_stats;

  explicit sqlite_actor_store(const std::string& path, options o = {});
  ~sqlite_actor_store() override;

  future<std::optional<std::string>> load(std::string type, std::string key) override;
  future<void> save(std::string type, std::string key, std::string state) override;
  future<void> remove(std::string type, std::string key) override;

  stats_type stats() const noexcept;

 private:
  using call = detail::state_call;
  using kind = call::kind;
  using line = detail::state_line;

  template <class T>
  future<T> enqueue(call c, promise<T> done);
  void work();
  void do_together(std::vector<call>& calls);
  void act(call& c);
  static void answer(call& c);
  static void refuse(call& c, const std::exception_ptr& why);

  const options options_;
  guarded<line> line_;
  atomic<std::uint64_t> answered_{0};
  atomic<std::uint64_t> commits_{0};
  std::unique_ptr<detail::state_file> file_;  // the thread's
  seam::thread thread_;
};

}  // namespace sluice
