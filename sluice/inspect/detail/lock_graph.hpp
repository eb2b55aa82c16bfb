#pragma once

// The order in which threads take locks, while they hold others. When one takes them the other way
// round, two of them could wait for each other for ever: it is reported before that happens.
//
// An edge a -> b says that somebody took b while holding a. A new edge that closes a circle is an
// inversion. Locks taken by a try do not count, because a try never waits.
//
// Taking locks in an order that is known allocates nothing; one that is new does.

#include <cstdint>
#include <functional>
#include <optional>
#include <unordered_map>
#include <vector>

#include "sluice/base/call_site.hpp"
#include "sluice/sync/spin_lock.hpp"
#include "sluice/sync/watch.hpp"

namespace sluice::inspect::detail {

// One step of an inversion: `second` was taken at `second_at` by one who had taken `first`.
struct lock_step {
  const void* first = nullptr;
  const void* second = nullptr;
  const char* first_type = "";
  const char* second_type = "";
  call_site first_at{};
  call_site second_at{};
  watch::party by{};
};

// The step just taken comes first; the others, taken before, lead back from its end to its begin.
using inversion_report = std::function<void(const std::vector<lock_step>&)>;

class lock_graph {
 public:
  void start(inversion_report report);
  void clear() noexcept;

  // By the calling thread.
  void took(const watch::hold& h) noexcept;
  void gave(const void* object) noexcept;
  void gone(const void* object) noexcept;

 private:
  using steps = std::vector<lock_step>;
  struct inversion {
    steps circle;
    inversion_report report;
  };

  // The inversion that this step makes, if it does.
  std::optional<inversion> note(const lock_step& step);

  // All with guard_ held.
  bool add(const lock_step& step);  // false: it was known
  bool find_way(const void* from, const void* to, steps& way) const;

  spin_lock guard_;
  std::unordered_map<const void*, steps> from_;  // protected by guard_
  inversion_report report_;                      // protected by guard_
  atomic<std::uint64_t> life_{0};  // what a thread holds counts only in the life it took it in
};

}  // namespace sluice::inspect::detail
