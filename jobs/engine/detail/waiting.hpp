#pragma once

// A call that waits inside the engine: for a job, for room, for an end. It leaves its places and is
// answered once: by what it waits for, by its deadline, by a stop, or by the engine closing.

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <stop_token>
#include <utility>
#include <vector>

#include "jobs/engine/detail/answers.hpp"
#include "sluice/base/clock.hpp"
#include "sluice/sync/waiter.hpp"

namespace sluice::jobs::detail {

struct queue_state;

class waiting : public timer {
 public:
  enum class kind : std::uint8_t { lease, push, other };

  using line = std::list<waiting*>;
  using stop_call = std::stop_callback<std::function<void()>>;

  explicit waiting(kind k) : what(k) {}
  virtual ~waiting() = default;

  // Answers with a reason for having done nothing. Its places in lines were left before.
  virtual void refuse(error why, answers& out) = 0;
  // The queues that must stay while it waits, beside those in whose lines it stands.
  virtual void each_queue(const std::function<void(queue_state&)>&) {}

  void join(line& where) { places_.emplace_back(&where, where.insert(where.end(), this)); }
  void leave_all() {
    for (auto& [where, at] : places_) where->erase(at);
    places_.clear();
    if (on_left) on_left();
  }

  // timer: the core asks its own heap, with the lock held.
  bool claim() noexcept final { return true; }
  // Another one that was due at the same moment may have ended this wait.
  void fire() noexcept final {
    if (is_timed) on_deadline(*this);
  }

  std::function<void(waiting&)> on_deadline;
  std::function<void()> on_left;  // after it has left its lines
  bool is_timed = false;          // in the core's heap
  const kind what;
  std::uint64_t number = 0;
  std::uint64_t bytes = 0;             // of what the caller gave, kept while it waits
  queue_state* in = nullptr;           // of a push: the queue whose line others stand in behind it
  std::optional<stop_call> on_stop;    // of the caller's stop_token
  std::optional<stop_call> on_cancel;  // of the future that the caller holds

 private:
  std::vector<std::pair<line*, line::iterator>> places_;
};

}  // namespace sluice::jobs::detail
