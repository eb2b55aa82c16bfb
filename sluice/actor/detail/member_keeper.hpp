#pragma once

// The parent of the members of a group: creates them, replaces ended members, and adapts their
// number to the load. It takes no messages: everything runs in its turn, so nothing here needs a
// lock, and its end leaves no dead letters.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "sluice/actor/actor.hpp"
#include "sluice/actor/detail/member_table.hpp"
#include "sluice/base/clock.hpp"

namespace sluice::detail {

class member_keeper : public actor<member_keeper> {
 public:
  explicit member_keeper(std::shared_ptr<member_table> table);
  // Called when its members have ended and it ends or restarts.
  void stopping();

  // Creates a keeper and its members, as a child of `parent`.
  static cell_ptr begin(cell& parent, const std::shared_ptr<member_table>& table);

  // Any thread.
  static void report_load(const cell_ptr& keeper);
  static void request_resize(const cell_ptr& keeper, std::size_t members);

 private:
  struct tracked_member {
    member info;
    std::uint32_t begun = 0;  // at the last check
    time_point used_at{};     // the last check at which it had worked
  };

  template <class F>
  static void run_in_turn(const cell_ptr& keeper, F f);
  template <class F>
  void after(std::chrono::nanoseconds wait, F f);

  void add_member();
  std::uint64_t free_slot() const noexcept;
  void member_ended(const cell* ended);
  void fill();
  void drain(std::size_t at);
  void resize(std::size_t members);
  void check_load();
  void schedule_load_check();
  bool grow_if_loaded();
  void drain_idle();
  void schedule_idle_check();
  void publish();
  time_point now() const noexcept;

  const std::shared_ptr<member_table> table_;
  std::size_t target_size_;
  std::vector<tracked_member> members_;
  std::vector<member> draining_;
  std::deque<time_point> replacements_;
  time_point grown_at_;
  bool has_fill_timer_ = false;
  bool has_idle_timer_ = false;
};

}  // namespace sluice::detail
