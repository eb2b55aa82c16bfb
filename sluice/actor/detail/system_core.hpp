#pragma once

// What all actors of a system share.

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "sluice/actor/actor_observer.hpp"
#include "sluice/actor/actor_system_options.hpp"
#include "sluice/actor/detail/cell.hpp"
#include "sluice/base/clock.hpp"
#include "sluice/executor/executor.hpp"
#include "sluice/sync/counter.hpp"
#include "sluice/sync/event.hpp"
#include "sluice/sync/guarded.hpp"

namespace sluice::detail {

class system_core {
 public:
  system_core(executor& on, actor_system_options o);
  ~system_core();

  executor& on() const noexcept { return on_; }
  sluice::clock& clock() const noexcept { return *clock_; }
  const actor_system_options& options() const noexcept { return options_; }
  actor_observer* observer() const noexcept { return options_.observer; }
  cell& root() const noexcept { return *root_; }
  event& ended() noexcept { return ended_; }

  actor_id next_id() noexcept { return ids_.fetch_add(1, relaxed) + 1; }
  std::uint64_t next_wait() noexcept { return waits_.fetch_add(1, relaxed) + 1; }

  void lost(const cell& to, const envelope& e, loss why) noexcept;
  void failed(const cell& who, const std::exception_ptr& error, directive what) noexcept;
  void spawned(const cell& c) noexcept;
  void actor_ended(const cell& c, end_reason why) noexcept;
  void never_lived() noexcept { ends_.fetch_add(1, relaxed); }  // but has a number
  void restarted(const cell& who) noexcept;

  actor_system_stats stats() const noexcept;

  // What stands beside the actors and is found through the system: one of each kind, which is
  // named by an address. `part` is null when there is none, or none any more.
  void set_part(const void* kind, std::weak_ptr<void> what);
  std::shared_ptr<void> part(const void* kind) const;

 private:
  executor& on_;
  actor_system_options options_;
  sluice::clock* const clock_;
  atomic<std::uint64_t> ids_{0};
  atomic<std::uint64_t> waits_{0};  // that the observer was told of
  atomic<std::uint64_t> ends_{0};
  atomic<std::uint64_t> lost_{0};
  atomic<std::uint64_t> dropped_{0};
  atomic<std::uint64_t> failures_{0};
  atomic<std::uint64_t> restarts_{0};
  event ended_;
  cell* root_;
  guarded<std::map<const void*, std::weak_ptr<void>>> parts_;
};

}  // namespace sluice::detail
