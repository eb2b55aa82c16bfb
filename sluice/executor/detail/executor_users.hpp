#pragma once

// Counts the users of an executor by kind, so that the destructor of an executor can name the
// remaining ones.
//
// Guarantees: any thread may count. `count` is exact for every change that happened before the
// call. A thread may uncount a user that another thread counted.
// Cost: one relaxed load and store in a cache line that only the calling thread writes, if the
// object has lines (pools do); otherwise, and for threads with a number above `lines`, one relaxed
// atomic addition.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "sluice/base/atomic.hpp"
#include "sluice/base/detail/per_thread.hpp"
#include "sluice/base/seam.hpp"

namespace sluice {

enum class executor_user : std::uint8_t {
  task,          // spawned, or moved there by resume_on
  timer,         // an `every`
  scope_child,   // started and not ended
  stage,         // a function attached to a future that has no result yet
  strand,
  router_worker,
  batcher,
  pipeline,
  actor_system,
  actor,         // on an executor other than that of its system
};

namespace detail {

class executor_users {
 public:
  static constexpr std::size_t kinds = 10;
  static constexpr std::size_t lines = 63;  // for threads with the numbers 1 to `lines`

  enum class spread : bool { one_place, line_a_thread };
  explicit executor_users(spread s);

  void add(executor_user kind) noexcept { change(kind, 1); }
  void remove(executor_user kind) noexcept { change(kind, ~std::uint32_t{0}); }

  // Never negative: a change that overlaps the call may be seen in part.
  std::size_t count(executor_user kind) const noexcept;
  // For a message, as in "1 spawned task, 2 strands". Empty without users.
  std::string text() const;

 private:
  using number = uncontrolled_atomic<std::uint32_t>;  // wraps around: a difference is still right
  using numbers = std::array<number, kinds>;
  struct alignas(64) line {
    numbers of_thread{};
  };

  SLUICE_PER_THREAD void change(executor_user kind, std::uint32_t by) noexcept {
    const auto at = static_cast<std::size_t>(kind);
    // relaxed: the reader has synchronized with every change that it must see. A thread that gets
    // the number of an ended thread sees its last values (base/seam.cpp).
    if (const auto me = seam::thread_number(); lines_ != nullptr && me <= lines) [[likely]] {
      number& own = lines_[me - 1].of_thread[at];
      own.store(own.load(relaxed) + by, relaxed);
    } else {
      shared_[at].fetch_add(by, relaxed);
    }
  }

  const std::unique_ptr<line[]> lines_;  // null: no lines
  numbers shared_{};
};

}  // namespace detail
}  // namespace sluice
