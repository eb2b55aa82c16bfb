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

// Counted by its system and by its actors' cells: so a ref can be sent to when the system is gone.
// The root is not counted; it ends with this.
class system_core {
 public:
  system_core(executor& on, actor_system_options o);
  system_core(const system_core&) = delete;
  system_core& operator=(const system_core&) = delete;
  ~system_core();

  void add_ref() noexcept { refs_.fetch_add(1, relaxed); }  // from one that exists
  void release() noexcept {
    // acq_rel: the last one sees what all others did before they let go.
    if (refs_.fetch_sub(1, acq_rel) == 1) delete this;
  }
  // From here on nobody is told of anything: what the options name may be gone. All actors have
  // ended.
  void system_is_gone() noexcept {
    observer_.store(nullptr, relaxed);  // a sender that sees it late is one that overlaps
    is_told_of_sends_.store(false, relaxed);
    is_gone_.store(true, relaxed);
  }

  executor& on() const noexcept { return on_; }
  sluice::clock& clock() const noexcept { return *clock_; }
  const actor_system_options& options() const noexcept { return options_; }
  // relaxed: it is there before the first actor, and nothing is read through a null.
  actor_observer* observer() const noexcept { return observer_.load(relaxed); }
  // There is one, or somebody hears of dead letters, and by whom they were sent. relaxed: as above.
  bool is_told_of_sends() const noexcept { return is_told_of_sends_.load(relaxed); }
  cell& root() const noexcept { return *root_; }
  event& ended() noexcept { return ended_; }

  // Of no other system of the process, unless there were 65,536 in between.
  std::uint64_t number() const noexcept { return number_; }
  actor_id next_id() noexcept { return ids_.fetch_add(1, relaxed) + 1; }
  std::uint64_t next_wait() noexcept { return waits_.fetch_add(1, relaxed) + 1; }

  void lost(const cell& to, const envelope& e, loss why) noexcept;
  void answered_late(const late_reply& how) noexcept;
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
  const actor_system_options options_;
  atomic<actor_observer*> observer_;
  atomic<bool> is_told_of_sends_;
  atomic<bool> is_gone_{false};
  atomic<std::uint64_t> refs_{1};
  sluice::clock* const clock_;
  const std::uint64_t number_;
  atomic<std::uint64_t> ids_{0};
  atomic<std::uint64_t> waits_{0};  // that the observer was told of
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
