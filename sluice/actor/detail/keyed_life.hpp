#pragma once

// The life of one actor that is kept by key: loaded before its first message, saved before it goes.
//
// It is one cell from load to end, and the cell's mailbox is open all that time. Whatever it waits
// for, a load or a save, it waits for as a coroutine of a handler would: as a task of the cell that
// has the floor. So messages gather in the mailbox meanwhile, by its own bound and order, and no
// thread is held.
//   load   -> make_state; or the messages there are get the error, and the cell stops
//   rest   -> save; then, if no message has come meanwhile, the mailbox is closed and the cell
//             stops. If one has, it goes on as if nothing had been
//   an end for another reason (stopped, closed, the system's) -> save, as the last thing
// A sender that finds the mailbox closed asks for the successor: the next cell of this key, which
// does not load before this one is over. So there are never two states of one key.

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sluice/actor/detail/cell.hpp"
#include "sluice/actor/detail/place_line.hpp"
#include "sluice/actor/keyed_options.hpp"
#include "sluice/base/clock.hpp"
#include "sluice/base/intrusive_list.hpp"
#include "sluice/future/promise.hpp"
#include "sluice/future/settled.hpp"

namespace sluice::detail {

class keyed_core;

class keyed_life : private list_hook, public place_line {
 public:
  // Before: of the same key, and perhaps not over.
  keyed_life(cell& self, keyed_core& of, std::string key, cell_ptr before);
  keyed_life(const keyed_life&) = delete;
  keyed_life& operator=(const keyed_life&) = delete;

  cell& self() const noexcept { return self_; }
  const std::string& key() const noexcept { return key_; }
  // Once, after the core has it in its map. False: it is born dead, since everything ends.
  bool start() {
    begin_life_of_cell();
    return was_begun_;
  }

  // ---- any thread
  bool lets_wait() const noexcept override;
  enlisted enlist(wait_node& at, waiter& who) noexcept override;
  void retract(wait_node& at) noexcept override;
  cell_ptr take() override;
  void done() noexcept override;
  const void* of() const noexcept override;

  // ---- in the actor's turn
  future<void> save_now();
  void rest();
  void forget(promise<void> done);

 protected:
  virtual ~keyed_life();

  virtual void begin_life_of_cell() = 0;
  virtual void make_state(const std::string* saved) = 0;  // may throw
  virtual std::string state_to_save() const = 0;          // may throw
  virtual bool may_rest() const = 0;                      // may throw

  // What the cell asks for.
  void begin_loading();
  bool saved_at_end() noexcept;
  cell_ptr next_one();
  cell_ptr next_one_within(const wait_limits* limits, status& how);
  bool has_state() const noexcept { return has_state_; }
  void state_is_gone() noexcept { has_state_ = false; }

 private:
  friend class keyed_core;
  friend class intrusive_list<keyed_life>;

  void end_with_floor() noexcept;
  void load() noexcept;
  void loaded(settled<std::optional<std::string>> found) noexcept;
  void rested(const std::exception_ptr& error) noexcept;
  future<void> remove_state();
  void begun_anew(const std::exception_ptr& error) noexcept;
  void told_forgotten(std::vector<promise<void>> those, const std::exception_ptr& error) noexcept;
  // Calls it in the actor's turn with what the future ended with.
  template <class T, class Then>
  void then_in_turn(future<T> f, Then then);

  // Constant.
  cell& self_;
  const std::shared_ptr<keyed_core> core_;
  const std::string key_;
  // From before its start until it is loaded: it removes the state in the place of loading it.
  std::vector<promise<void>> forgotten_first_;
  bool was_begun_ = false;  // set by its start

  // The actor's own turn alone touches them.
  cell_ptr before_;
  bool has_state_ = false;
  bool is_gone_ = false;   // takes nothing any more: what is asked for is for the next one
  bool is_saved_ = false;  // and nothing has happened since
  std::vector<promise<void>> forgetting_;  // any: its state is removed in the place of a save

  // Protected by the core's lock. The hook: in the list of those that may be told to rest.
  time_point used_at_{};
  std::uint32_t accepted_then_ = 0;  // messages, with the one that the last use is for
  bool never_lived_ = false;         // it was born dead
  bool is_leaving_ = false;          // it was told to rest, and has not said how that ended
};

keyed_life& life_under_construction() noexcept;

}  // namespace sluice::detail
