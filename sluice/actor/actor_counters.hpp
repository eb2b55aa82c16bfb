#pragma once

// Shows which actors are overloaded or slow: for each actor the number of waiting messages, their
// time in the queue, the time of the handlers, and the failures.
//
// Use it in production, always on. Prefer `actor_trace` to follow single messages.
//
// Guarantees: any thread may call anything. `read` returns the live actors, parents before their
// children, and one sum for all actors that have ended. Quantiles are never below the true ones and
// at most 1/16 above. The time of a handler is the time from its beginning to its end, including
// waits, and also of a coroutine; each part between `reentrant` waits counts by itself. The time in
// the queue is counted when a message is begun, to 64 ns; a stashed message counts again when it is
// begun again.
// Cost: two locks and two clock readings a message; about 150 bytes for each actor that has handled
// a message. Quantiles need 16 KB an actor: only the first `quantiles_max` live actors have them,
// the others have count, sum and maximum.
//
//     actor_counters counters;
//     actor_system system(pool, {.observer = &counters});
//     work();
//     std::cout << counters.read(system).top(10, actor_order::handler_time).table();

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/actor/actor_observer.hpp"
#include "sluice/actor/detail/actor_table.hpp"
#include "sluice/base/atomic.hpp"
#include "sluice/base/clock.hpp"
#include "sluice/sync/guarded.hpp"
#include "sluice/sync/histogram.hpp"

namespace sluice {

class actor_system;

struct actor_counters_options {
  std::size_t quantiles_max = 256;  // actors
  clock* time = nullptr;            // null: the real clock
};

// Durations, in the queue or in the handler.
struct actor_times {
  std::uint64_t count = 0;
  std::chrono::nanoseconds total{0};
  std::chrono::nanoseconds largest{0};
  std::optional<std::chrono::nanoseconds> p50{};  // none beyond quantiles_max
  std::optional<std::chrono::nanoseconds> p99{};
};

struct actor_count {
  actor_id id = 0;
  std::string name{};
  std::uint64_t queued = 0;  // waiting messages that count against the bound
  std::uint64_t messages = 0;
  std::uint64_t failures = 0;
  std::uint64_t restarts = 0;
  std::uint64_t lost = 0;  // messages to this actor that were not handled
  actor_times in_queue{};
  actor_times in_handler{};
};

enum class actor_order : std::uint8_t { queued, queue_time, handler_time, messages, failures };

// A snapshot of the counters: a plain value.
struct actor_counts {
  std::vector<actor_count> actors{};
  actor_count ended{};  // the sum of all actors that have ended

  // Returns the first `count` actors by `by`, the largest first. Times are compared by their sums.
  actor_counts top(std::size_t count, actor_order by) const;
  // Returns a table for people: a line for each actor, in aligned columns.
  std::string table() const;
  // Returns JSON for programs; times are in nanoseconds.
  std::string json() const;
};

class actor_counters final : public actor_observer {
 public:
  using options = actor_counters_options;

  explicit actor_counters(options o = {});

  // `of` must be a system that this object observes.
  actor_counts read(const actor_system& of);

  // ---- for the system

  unsigned note_bits() const noexcept override { return stamp_bits; }
  void ended(actor_id id, end_reason why) noexcept override;
  std::uint64_t sent(actor_id from, actor_id receiver, std::string_view message) noexcept override;
  void begun(actor_id id, std::string_view message, std::uint64_t note) noexcept override;
  void handled(actor_id id, std::string_view message, std::uint64_t note) noexcept override;
  void resumed(actor_id id, std::string_view message, std::uint64_t note) noexcept override;
  void failed(actor_id id, const std::exception_ptr& error) noexcept override;
  void restarted(actor_id id) noexcept override;
  void lost(actor_id receiver, std::string_view message, std::uint64_t note,
            loss why) noexcept override;

 private:
  // A note is the time of sending in units of 64 ns, modulo 2^40: it wraps around every 19 h.
  static constexpr unsigned stamp_bits = 40;
  static constexpr unsigned unit_bits = 6;

  struct quantiles {
    histogram in_queue;
    histogram in_handler;
  };
  struct entry {
    actor_count count{};
    time_point since{};  // of the current message
    std::unique_ptr<quantiles> exact{};
    bool is_known = false;
  };

  entry& known(entry& e);
  std::uint64_t stamp() const noexcept;

  // Constant after construction.
  const std::size_t quantiles_max_;
  clock& time_;

  atomic<std::size_t> with_quantiles_{0};
  detail::actor_table<entry> entries_;
  guarded<actor_count> ended_;
};

}  // namespace sluice
