#pragma once

// The life cycle of one actor that is kept by key: loaded before its first message, saved before it
// leaves memory.
//
// It is one cell from load to end, and the mailbox is open all that time. A load or a save is a
// task of the cell with the exclusive turn, like a coroutine of a handler. Messages gather in the
// mailbox meanwhile, by its own bound and order, and no thread is blocked.
//   load       -> make_state; on an error the queued requests get it, and the cell stops
//   passivate  -> save; then, if no message has arrived meanwhile, the mailbox is closed and the
//                 cell stops. Otherwise it stays live
//   an end for another reason (stopped, closed, system stopped) -> save, as the last step
// A sender that finds the mailbox closed gets the successor: the next cell of this key, which does
// not load before this one has terminated. So a key never has two states.

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sluice/actor/detail/cell.hpp"
#include "sluice/actor/detail/place_queue.hpp"
#include "sluice/actor/keyed_options.hpp"
#include "sluice/base/clock.hpp"
#include "sluice/base/intrusive_list.hpp"
#include "sluice/future/promise.hpp"
#include "sluice/future/settled.hpp"

namespace sluice::detail {

class keyed_core;

class keyed_life : private list_hook, public place_queue {
 public:
  // `predecessor`: a cell of the same key, which may not have terminated; or empty.
  keyed_life(cell& self, keyed_core& core, std::string key, cell_ptr predecessor);
  keyed_life(const keyed_life&) = delete;
  keyed_life& operator=(const keyed_life&) = delete;

  cell& self() const noexcept { return self_; }
  const std::string& key() const noexcept { return key_; }
  // Called once, when it is in the core's map. Returns false if the system is ending and the actor
  // never starts.
  bool start() {
    begin_life_of_cell();
    return has_started_;
  }

  // ---- any thread
  bool may_wait() const noexcept override;
  enlisted enlist(wait_node& node, waiter& waiting) noexcept override;
  void retract(wait_node& node) noexcept override;
  cell_ptr take() override;
  void done() noexcept override;
  const void* owner() const noexcept override;

  // ---- in the actor's turn
  future<void> save_now();
  void passivate();
  void forget(promise<void> done);

 protected:
  virtual ~keyed_life();

  virtual void begin_life_of_cell() = 0;
  virtual void make_state(const std::string* saved) = 0;  // may throw
  virtual std::string state_to_save() const = 0;          // may throw
  virtual bool may_passivate() const = 0;                 // may throw

  // Called by the cell.
  void begin_loading();
  bool save_at_end() noexcept;
  cell_ptr find_successor();
  cell_ptr find_successor_within(const wait_limits* limits, status& result);
  bool has_state() const noexcept { return has_state_; }
  void state_destroyed() noexcept { has_state_ = false; }

 private:
  friend class keyed_core;
  friend class intrusive_list<keyed_life>;

  void end_exclusive_task() noexcept;
  void load() noexcept;
  void loaded(settled<std::optional<std::string>> found) noexcept;
  void passivated(const std::exception_ptr& error) noexcept;
  future<void> remove_state();
  void removed_before_load(const std::exception_ptr& error) noexcept;
  void finish_removal(std::vector<promise<void>> requests,
                      const std::exception_ptr& error) noexcept;
  // Calls `then` in the actor's turn with the result of the future.
  template <class T, class Then>
  void then_in_turn(future<T> f, Then then);

  // Constant.
  cell& self_;
  const std::shared_ptr<keyed_core> core_;
  const std::string key_;
  // Set before its start, until loaded: if not empty, the state is removed instead of loaded.
  std::vector<promise<void>> remove_before_load_;
  bool has_started_ = false;  // set when it starts

  // Touched only in the actor's own turn.
  cell_ptr predecessor_;
  bool has_state_ = false;
  bool is_closed_ = false;  // its mailbox is closed: requests to forget go to the successor
  bool is_saved_ = false;   // its state is saved, and no message was handled since
  // If not empty, its state is removed at the end instead of saved
  std::vector<promise<void>> remove_requests_;

  // Protected by the core's lock_. The list_hook is in the core's by_use_.
  time_point used_at_{};
  std::uint32_t accepted_at_use_ = 0;  // accepted() at its last use, plus the message of that use
  bool never_started_ = false;         // the parent accepted no children
  bool is_passivating_ = false;        // ordered to passivate, without a result yet
};

keyed_life& life_under_construction() noexcept;

}  // namespace sluice::detail
