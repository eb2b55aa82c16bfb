#pragma once

// What few actors have: a name, children that failed, coroutines, a stash, timers. Made when it is
// first needed, so that the others do not pay for it. The actor's own turn alone touches it, but
// for what is constant.

#include <chrono>
#include <cstdint>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
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
  enum class kind : std::uint8_t { lasting, of_this_life };  // the latter: gone at a restart
  unique_function<void(const actor_end&)> tell;
  std::stop_token life;
  kind how_long;
};

// Handlers that `become` has put in the place of others.
class behaviour {
 public:
  behaviour() = default;
  behaviour(const behaviour&) = delete;
  behaviour& operator=(const behaviour&) = delete;
  virtual ~behaviour() = default;
  // By the number of the message in the actor's list; null: the actor's own handler.
  using handler = void (*)(behaviour& self, cell& to, envelope& e);
  virtual handler find(std::size_t message) const noexcept = 0;
};

class cell_extra {
 public:
  // Constant after construction.
  std::string name{};
  std::optional<supervision> children{};
  std::uint32_t stash_capacity = mailbox_options{}.stash_capacity;
  std::unique_ptr<thread_pool> own_thread{};

  // Its end.
  std::exception_ptr error{};
  end_reason reason = end_reason::stopped;
  std::vector<watcher> watchers{};

  // Its coroutines.
  std::stop_source stop{std::nostopstate};
  std::stop_token token{};
  intrusive_list<work> floor{};  // those that want to go on, when nobody keeps messages out

  // Its children.
  std::optional<restart_round> round{};
  std::deque<cell*> failed{};  // that wait for the round to end
  std::deque<time_point> restarts{};

  // Its parent's: how long it waits before it is made anew, and how often it did so lately.
  std::chrono::nanoseconds backoff{0};
  std::uint32_t in_a_row = 0;
  time_point made_anew{};

  // What it keeps for later.
  envelope_list stash{};
  std::uint32_t stashed = 0;
  std::vector<std::unique_ptr<behaviour>> behaviours{};
  std::vector<std::unique_ptr<behaviour>> old_behaviours{};  // of which a handler may still run
  std::map<std::uint64_t, std::stop_source> timers{};
  std::uint64_t last_timer = 0;
};

}  // namespace sluice::detail
