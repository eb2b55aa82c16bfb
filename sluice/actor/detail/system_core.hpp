#pragma once

// The state shared by all actors of a system.

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

// Counted by its system and by the cells of its actors, so that a ref stays usable after the system
// is destroyed. The root is not counted; it ends with this object.
class system_core {
 public:
  system_core(executor& on, actor_system_options o);
  system_core(const system_core&) = delete;
  system_core& operator=(const system_core&) = delete;
  ~system_core();

  void add_ref() noexcept { refs_.fetch_add(1, relaxed); }  // from an existing ref
  void release() noexcept {
    // acq_rel: the last release sees everything that the other holders did before theirs.
    if (refs_.fetch_sub(1, acq_rel) == 1) delete this;
  }
  // Called when all actors have ended: from here on nothing is reported, since the objects named in
  // the options may be destroyed.
  void system_destroyed() noexcept {
    observer_.store(nullptr, relaxed);  // relaxed: a sender that still sees it overlaps this call
    tracks_senders_.store(false, relaxed);
    is_destroyed_.store(true, relaxed);
  }

  executor& on() const noexcept { return on_; }
  sluice::clock& clock() const noexcept { return *clock_; }
  const actor_system_options& options() const noexcept { return options_; }
  // relaxed: set before the first actor exists, and nothing is read through a null pointer.
  actor_observer* observer() const noexcept { return observer_.load(relaxed); }
  // There is an observer, or dead letters are reported with their senders. relaxed: as above.
  bool tracks_senders() const noexcept { return tracks_senders_.load(relaxed); }
  cell& root() const noexcept { return *root_; }
  event& ended() noexcept { return ended_; }

  // Unique in the process among the last 65,536 systems.
  std::uint64_t number() const noexcept { return number_; }
  actor_id next_id() noexcept { return ids_.fetch_add(1, relaxed) + 1; }
  std::uint64_t next_wait() noexcept { return waits_.fetch_add(1, relaxed) + 1; }

  void lost(const cell& receiver, const envelope& e, loss why) noexcept;
  void report_late_reply(const late_reply& reply) noexcept;
  void failed(const cell& actor, const std::exception_ptr& error, directive decision) noexcept;
  void spawned(const cell& c) noexcept;
  void actor_ended(const cell& c, end_reason why) noexcept;
  void never_started() noexcept { ends_.fetch_add(1, relaxed); }  // its id was counted as spawned
  void restarted(const cell& actor) noexcept;

  actor_system_stats stats() const noexcept;

  // Objects beside the actors that are found through the system: one per kind, which is an address.
  // `part` returns null if the part does not exist, or was destroyed.
  void set_part(const void* kind, std::weak_ptr<void> part);
  std::shared_ptr<void> part(const void* kind) const;

 private:
  executor& on_;
  const actor_system_options options_;
  atomic<actor_observer*> observer_;
  atomic<bool> tracks_senders_;
  atomic<bool> is_destroyed_{false};
  atomic<std::uint64_t> refs_{1};
  sluice::clock* const clock_;
  const std::uint64_t number_;
  atomic<std::uint64_t> ids_{0};
  atomic<std::uint64_t> waits_{0};  // reported to the observer
  atomic<std::uint64_t> ends_{0};
  atomic<std::uint64_t> lost_{0};
  atomic<std::uint64_t> dropped_{0};
  atomic<std::uint64_t> late_replies_{0};
  atomic<std::uint64_t> failures_{0};
  atomic<std::uint64_t> restarts_{0};
  event ended_;
  cell* root_;
  guarded<std::map<const void*, std::weak_ptr<void>>> parts_;
};

}  // namespace sluice::detail
