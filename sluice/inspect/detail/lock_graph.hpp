#pragma once

// Records the order in which threads acquire locks while they hold others, and reports an order
// that is reversed, before two threads deadlock.
//
// An edge a -> b: a thread acquired b while it held a. A new edge that closes a cycle is an
// inversion. Locks acquired by a try do not count: a try never waits.
//
// Acquiring locks in a known order allocates nothing; a new order does.

#include <cstdint>
#include <functional>
#include <optional>
#include <unordered_map>
#include <vector>

#include "sluice/base/call_site.hpp"
#include "sluice/sync/detail/wait_report.hpp"
#include "sluice/sync/spin_lock.hpp"

namespace sluice::inspect::detail {

// A step of an inversion: the party that held `first` acquired `second` at `second_at`.
struct lock_step {
  const void* first = nullptr;
  const void* second = nullptr;
  const char* first_type = "";
  const char* second_type = "";
  call_site first_at{};
  call_site second_at{};
  wait_report::party by{};
};

// Receives the new step first, then the recorded steps from its end back to its beginning.
using inversion_report = std::function<void(const std::vector<lock_step>&)>;

class lock_graph {
 public:
  void start(inversion_report report);
  void clear() noexcept;

  // Called by the thread that acquired or released the lock.
  void took(const wait_report::hold& h) noexcept;
  void gave(const void* object) noexcept;
  void destroyed(const void* object) noexcept;

 private:
  using steps = std::vector<lock_step>;
  struct inversion {
    steps cycle;
    inversion_report report;
  };

  // Records the step. Returns the inversion that it closes, if any.
  std::optional<inversion> note(const lock_step& step);

  // Must hold guard_.
  bool add(const lock_step& step);  // false: already recorded
  bool find_path(const void* from, const void* target, steps& path) const;

  spin_lock guard_;
  std::unordered_map<const void*, steps> from_;  // protected by guard_
  inversion_report report_;                      // protected by guard_
  atomic<std::uint64_t> life_{0};  // incremented by start(): a thread's older list of locks is void
};

}  // namespace sluice::inspect::detail
