#pragma once

// Says which actors have much to do, and which are slow: for each of them how many messages wait,
// how long they waited, how long their handlers took, and what failed.
//
// Use it in a program that runs, always on. Prefer `actor_trace` to follow single messages.
//
// Guarantees: any thread may call anything. `read` gives the actors that live, parents before their
// children; what those that have ended had done is one sum. Quantiles are never below the true ones
// and at most 1/16 above. The time of a handler is the time from its beginning to its end: also
// what it waits, also in a coroutine; one that lets others in counts each of its parts. The time in
// the queue is counted when a message is begun, to 64 ns; what was put aside counts again when it
// is begun again.
// Cost: two locks and two looks at the clock a message; about 150 bytes for each actor that has
// handled one. Quantiles need 16 KB an actor: only the first `quantiles_max` that live have them,
// the others have count, sum and largest.
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

// How long something took.
struct actor_times {
  std::uint64_t count = 0;
  std::chrono::nanoseconds total{0};
  std::chrono::nanoseconds largest{0};
  std::optional<std::chrono::nanoseconds> p50{};  // none: too many actors
  std::optional<std::chrono::nanoseconds> p99{};
};

struct actor_count {
  actor_id id = 0;
  std::string name{};
  std::uint64_t queued = 0;  // messages that wait, and count against the bound
  std::uint64_t messages = 0;
  std::uint64_t failures = 0;
  std::uint64_t restarts = 0;
  std::uint64_t lost = 0;  // messages to it that nobody handled
  actor_times in_queue{};
  actor_times in_handler{};
};

enum class actor_order : std::uint8_t { queued, queue_time, handler_time, messages, failures };

// What was counted up to one moment: a plain value.
struct actor_counts {
  std::vector<actor_count> actors{};
  actor_count ended{};  // all that have ended, together

  // The first so many by that, the largest first. (Times: their sums.)
  actor_counts top(std::size_t count, actor_order by) const;
  // For people: a line each, columns in line.
  std::string table() const;
  // For programs: times in nanoseconds.
  std::string json() const;
};

class actor_counters final : public actor_observer {
 public:
  using options = actor_counters_options;

  explicit actor_counters(options o = {});

  // Of a system that it observes.
  actor_counts read(const actor_system& of);

  // ---- for the system

  unsigned note_bits() const noexcept override { return stamp_bits; }
  void ended(actor_id who, end_reason why) noexcept override;
  std::uint64_t sent(actor_id from, actor_id to, std::string_view message) noexcept override;
  void begun(actor_id who, std::string_view message, std::uint64_t note) noexcept override;
  void handled(actor_id who, std::string_view message, std::uint64_t note) noexcept override;
  void resumed(actor_id who, std::string_view message, std::uint64_t note) noexcept override;
  void failed(actor_id who, const std::exception_ptr& error) noexcept override;
  void restarted(actor_id who) noexcept override;
  void lost(actor_id to, std::string_view message, std::uint64_t note, loss why) noexcept override;

 private:
  // A note is the time of sending, in units of 64 ns, as far as it fits: it begins anew every 19 h.
  static constexpr unsigned stamp_bits = 40;
  static constexpr unsigned unit_bits = 6;

  struct quantiles {
    histogram in_queue;
    histogram in_handler;
  };
  struct entry {
    actor_count count{};
    time_point since{};  // of its message
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
