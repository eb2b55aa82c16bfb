#pragma once

// The parent of the members of a group: makes them, replaces those that end, and has their number
// follow the load. It takes no messages; what is to be done is done in its turn, so that nothing
// here needs a lock, and its own end leaves no dead letters.

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
  explicit member_keeper(std::shared_ptr<member_table> of);
  // Its members have ended: it ends, or is made anew.
  void stopping();

  // Makes a keeper and its members, as a child of `parent`.
  static cell_ptr begin(cell& parent, const std::shared_ptr<member_table>& of);

  // Any thread.
  static void tell_load_rose(const cell_ptr& keeper);
  static void tell_resize(const cell_ptr& keeper, std::size_t members);

 private:
  struct kept {
    member is;
    std::uint32_t begun = 0;  // as it was when it was looked at
    time_point used_at{};     // when it was last seen to have done something
  };

  template <class F>
  static void in_turn(const cell_ptr& keeper, F f);
  template <class F>
  void after(std::chrono::nanoseconds wait, F f);

  void add_member();
  std::uint64_t free_slot() const noexcept;
  void member_ended(const cell* who);
  void fill();
  void drain(std::size_t at);
  void resize(std::size_t members);
  void look_at_load();
  void go_on_looking();
  bool grow_if_loaded();
  void look_for_idle();
  void watch_for_idle();
  void publish();
  time_point now() const noexcept;

  const std::shared_ptr<member_table> table_;
  std::size_t wanted_;
  std::vector<kept> members_;
  std::vector<member> draining_;
  std::deque<time_point> replacements_;
  time_point grown_at_;
  bool fills_later_ = false;
  bool looks_for_idle_ = false;
};

}  // namespace sluice::detail
