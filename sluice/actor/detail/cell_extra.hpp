#pragma once

// The rarely used parts of a cell: a name, failed children, coroutines, a stash, timers. Created on
// first use, so that other actors do not pay for it. Touched only in the actor's own turn, except
// members that are constant or protected by the cell's guard_.

#include <chrono>
#include <cstdint>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "sluice/actor/actor_end.hpp"
#include "sluice/actor/detail/cell.hpp"
#include "sluice/base/clock.hpp"

namespace sluice {
class thread_pool;
}

namespace sluice::detail {

// Children that are retired and recreated together.
struct restart_round {
  enum class phase : std::uint8_t { retiring, waiting, recreating };
  std::vector<cell*> members{};  // in the order of their spawning
  phase current = phase::retiring;
  // while retiring: children left to retire; then: children recreated
  std::size_t position = 0;
  cell* awaited = nullptr;              // the child being retired or recreated
  std::chrono::nanoseconds backoff{0};  // between retiring and recreating
  std::uint64_t timer = 0;              // of the backoff
};

// A termination listener; ignored once `stop` is triggered.
struct watcher {
  enum class kind : std::uint8_t { other, watch, link };
  unique_function<void(const actor_end&)> notify;
  std::stop_token stop{};  // triggered: not notified
  cell* owner = nullptr;   // the watching or linked actor; kept alive by `notify`
  kind relation = kind::other;
  bool ends_at_restart = false;  // removed at a restart
};

// Handlers that `become` has put in place of others. Lives while it is a behaviour of the actor, or
// while one of its handlers runs or is suspended.
class behaviour {
 public:
  behaviour() = default;
  behaviour(const behaviour&) = delete;
  behaviour& operator=(const behaviour&) = delete;
  virtual ~behaviour() = default;
  // Indexed by the position of the message in the actor's list; null: the actor's own handler.
  using handler = void (*)(behaviour& self, cell& receiver, envelope& e);
  virtual handler find(std::size_t message) const noexcept = 0;

  static constexpr std::size_t stacked_max = 64;
  static void retire_last(std::vector<std::unique_ptr<behaviour>>& all) noexcept;

 private:
  friend class behaviour_use;
  std::uint32_t users_ = 0;
  bool is_retired_ = false;
};

// Keeps a behaviour alive for one of its handlers. Used in the actor's turn.
class behaviour_use {
 public:
  explicit behaviour_use(behaviour& used) noexcept : used_(&used) { ++used.users_; }
  behaviour_use(const behaviour_use& other) noexcept : behaviour_use(*other.used_) {}
  behaviour_use& operator=(const behaviour_use&) = delete;
  ~behaviour_use() {
    if (--used_->users_ == 0 && used_->is_retired_) delete used_;
  }

 private:
  behaviour* const used_;
};

class cell_extra {
 public:
  cell_extra();
  ~cell_extra();  // in a source, so that ref.hpp does not include thread_pool.hpp

  // Constant after construction.
  std::string name{};
  std::optional<supervision> children{};
  std::uint32_t stash_capacity = mailbox_options{}.stash_capacity;
  std::unique_ptr<thread_pool> own_thread{};

  // Its termination.
  std::string path_above{};  // of its parent, which may be destroyed; constant once terminated
  std::exception_ptr error{};
  end_reason reason = end_reason::stopped;
  std::vector<watcher> watchers{};
  std::uint32_t ended_links = 0;                // links in `watchers` whose actor has terminated
  std::map<std::uint64_t, cell_ptr> watched{};  // by this actor, not yet notified
  std::uint64_t last_watch = 0;
  std::exception_ptr failure_after_restart{};  // the failure to raise once it has restarted

  // Its coroutines.
  std::stop_source stop{std::nostopstate};
  std::stop_token token{};
  intrusive_list<work> resumed{};            // ready to resume; protected by the cell's guard_
  intrusive_list<work> exclusive_waiters{};  // waiting for the exclusive turn

  // Its children.
  std::optional<restart_round> round{};
  std::deque<cell*> failed{};  // waiting for the round to end
  std::deque<time_point> restarts{};
  // its watches of terminated children that it has not unlinked
  std::vector<std::pair<const cell*, watcher>> watches_until_unlink{};

  // Used by its parent: the wait before it is recreated, and how often in a row it was.
  std::chrono::nanoseconds backoff{0};
  std::uint32_t in_a_row = 0;
  time_point restarted_at{};

  // Stash, behaviours, timers.
  envelope_list stash{};
  std::uint32_t stashed = 0;
  std::vector<std::unique_ptr<behaviour>> behaviours{};
  std::map<std::uint64_t, std::stop_source> timers{};
  std::uint64_t last_timer = 0;
};

}  // namespace sluice::detail
