#pragma once

// A call that waits inside the engine: for a job, for capacity, for an end. It leaves its lines and
// is answered once: by that event, its deadline, a stop request, or the engine's shutdown.

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

  explicit waiting(kind k) : purpose(k) {}
  virtual ~waiting() = default;

  // Answers with the reason for having changed nothing. It has already left its lines.
  virtual void refuse(error why, answers& out) = 0;
  // Visits the queues that must exist while it waits, besides the queues of its lines.
  virtual void each_queue(const std::function<void(queue_state&)>&) {}

  void join(line& where) { places_.emplace_back(&where, where.insert(where.end(), this)); }
  void leave_all() {
    for (auto& [where, at] : places_) where->erase(at);
    places_.clear();
    if (on_left) on_left();
  }

  // timer: the core fires its own heap, with the lock held.
  bool claim() noexcept final { return true; }
  // Another timer of the same time may have ended this wait.
  void fire() noexcept final {
    if (is_timed) on_deadline(*this);
  }

  std::function<void(waiting&)> on_deadline;
  std::function<void()> on_left;  // after it has left its lines
  bool is_timed = false;          // in the core's heap
  const kind purpose;
  std::uint64_t number = 0;
  std::uint64_t bytes = 0;  // of the caller's arguments, kept while it waits
  // Of a push: the queue of its line; other pushes wait behind it.
  queue_state* line_queue = nullptr;
  std::optional<stop_call> on_stop;    // of the caller's stop_token
  std::optional<stop_call> on_cancel;  // of the caller's future

 private:
  std::vector<std::pair<line*, line::iterator>> places_;
};

}  // namespace sluice::jobs::detail
