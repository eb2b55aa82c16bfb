#pragma once

// Stores the states of actors in a file, so that entities outlive the process.
//
// Use it if one process has the entities. The file is a SQLite database, which any tool can read
// and back up while no process has it open.
//
// Guarantees: those of actor_store.hpp. A save completes when it is on stable storage (write-ahead
// log, synchronous=FULL): it survives a crash of the process or of the machine. Only one process at
// a time can open the file; opening fails in another one. One thread executes all calls: the calls
// that arrive during a commit form the next transaction, with one sync of the disk. If a
// transaction fails, each of its calls is tried alone, so that only calls that fail by themselves
// fail. Opening throws actor_store_error: no such folder, no permission, opened by another process,
// damaged, not a database, of another program, written by a newer version. Such a file is not
// changed. The destructor executes the earlier calls, then closes the file.
// Cost: a thread, and about 2 MB. It has no benchmark: the disk's sync dominates.
// Limits: at most `queue_max` waiting calls; further calls fail at once. (keyed_actors makes at
// most about one for each live actor.) A state has at most 1,000,000,000 bytes. Bytes of a state
// that a failing disk changes are not detected here: check them in `load`.
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
  kind operation = kind::load;
  std::string type{};
  std::string key{};
  std::string state{};  // to save, or loaded
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
  std::uint64_t calls = 0;    // completed
  std::uint64_t commits = 0;  // attempted transactions, with one or more calls
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
  void execute_all(std::vector<call>& calls);
  void execute(call& c);
  static void answer(call& c);
  static void refuse(call& c, const std::exception_ptr& why);

  const options options_;
  guarded<line> line_;
  atomic<std::uint64_t> answered_{0};
  atomic<std::uint64_t> commits_{0};
  std::unique_ptr<detail::state_file> file_;  // used only by thread_
  seam::thread thread_;
};

}  // namespace sluice
