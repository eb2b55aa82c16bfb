#pragma once

// What few actors have: a name, children that failed, coroutines, a stash, timers. Made when it is
// first needed, so that the others do not pay for it. The actor's own turn alone touches it, but
// for what is constant and for what the cell's guard protects.

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
#include "sluice/executor/thread_pool.hpp"

namespace sluice::detail {

// Those that are taken down and made anew together.
struct restart_round {
  enum class phase : std::uint8_t { taking_down, waiting, making };
  std::vector<cell*> who{};  // in the order of their making
  phase now = phase::taking_down;
  std::size_t at = 0;       // while it takes down: so many are left; then: so many are there again
  cell* awaited = nullptr;  // the one that is just taken down or made
  std::chrono::nanoseconds wait{0};  // between the two
  std::uint64_t timer = 0;           // of the wait
};

// Somebody to be told of its end, as long as he wants to hear it.
struct watcher {
  enum class kind : std::uint8_t { other, watch, link };
  unique_function<void(const actor_end&)> tell;
  std::stop_token life{};  // requested: it is not told
  cell* by = nullptr;      // the actor that watches or is linked; `tell` holds it
  kind what = kind::other;
  bool is_of_this_life = false;  // gone at a restart
};

// Handlers that `become` has put in the place of others. It lives as long as the actor is that, and
// as long as one of its handlers runs or is suspended.
class behaviour {
 public:
  behaviour() = default;
  behaviour(const behaviour&) = delete;
  behaviour& operator=(const behaviour&) = delete;
  virtual ~behaviour() = default;
  // By the number of the message in the actor's list; null: the actor's own handler.
  using handler = void (*)(behaviour& self, cell& to, envelope& e);
  virtual handler find(std::size_t message) const noexcept = 0;

  static constexpr std::size_t stacked_max = 64;
  static void retire_last(std::vector<std::unique_ptr<behaviour>>& all) noexcept;

 private:
  friend class behaviour_use;
  std::uint32_t users_ = 0;
  bool is_retired_ = false;
};

// Keeps one, for a handler of it; in the actor's turn.
class behaviour_use {
 public:
  explicit behaviour_use(behaviour& of) noexcept : of_(&of) { ++of.users_; }
  behaviour_use(const behaviour_use& other) noexcept : behaviour_use(*other.of_) {}
  behaviour_use& operator=(const behaviour_use&) = delete;
  ~behaviour_use() {
    if (--of_->users_ == 0 && of_->is_retired_) delete of_;
  }

 private:
  behaviour* const of_;
};

class cell_extra {
 public:
  // Constant after construction.
  std::string name{};
  std::optional<supervision> children{};
  std::uint32_t stash_capacity = mailbox_options{}.stash_capacity;
  std::unique_ptr<thread_pool> own_thread{};

  // Its end.
  std::string path_above{};  // its parent's, who may be gone; constant once it is over
  std::exception_ptr error{};
  end_reason reason = end_reason::stopped;
  std::vector<watcher> watchers{};
  std::uint32_t ended_links = 0;                // in watchers, of actors that are over
  std::map<std::uint64_t, cell_ptr> watched{};  // by this one, and not heard of
  std::uint64_t last_watch = 0;
  std::exception_ptr fails_anew{};  // what it fails with when it has been made anew

  // Its coroutines.
  std::stop_source stop{std::nostopstate};
  std::stop_token token{};
  intrusive_list<work> resumed{};  // those that go on; protected by the cell's guard
  intrusive_list<work> floor{};    // those that want to go on, when nobody keeps messages out

  // Its children.
  std::optional<restart_round> round{};
  std::deque<cell*> failed{};  // that wait for the round to end
  std::deque<time_point> restarts{};
  std::vector<std::pair<const cell*, watcher>> unheard{};  // its watches of those that are over

  // Its parent's: how long it waits before it is made anew, and how often it did so lately.
  std::chrono::nanoseconds backoff{0};
  std::uint32_t in_a_row = 0;
  time_point made_anew{};

  // What it keeps for later.
  envelope_list stash{};
  std::uint32_t stashed = 0;
  std::vector<std::unique_ptr<behaviour>> behaviours{};
  std::map<std::uint64_t, std::stop_source> timers{};
  std::uint64_t last_timer = 0;
};

}  // namespace sluice::detail
