#pragma once

// One alternative of a select: a send or a receive on a channel, and the handler of its result.
//
// Made by `on_receive` and `on_send` (select.hpp). Used by one select at a time; a kept case may be
// used again by the next one. A select over a number of cases known only at run time takes a span
// of pointers to this type.

#include "sluice/sync/detail/wait_report.hpp"
#include "sluice/sync/spin_lock.hpp"
#include "sluice/sync/waiter.hpp"

namespace sluice {

class select_case {
 public:
  select_case(const select_case&) = delete;
  select_case& operator=(const select_case&) = delete;

 protected:
  select_case() = default;
  ~select_case() = default;

 private:
  friend class select_op;

  virtual spin_lock* lock() const noexcept = 0;  // null for a null channel: never ready
  virtual bool hint() const noexcept = 0;        // a guess without the lock: could be ready
  virtual bool meets() const noexcept = 0;       // capacity 0: served only while in the list
  virtual const wait_node* place() const noexcept = 0;
  virtual void finish() = 0;                     // chosen: calls the handler with the result
  virtual wait_report::subject wait_subject() const noexcept = 0;  // not for a null channel
  virtual void note_use() const noexcept = 0;

  // Must hold the channel's lock.
  virtual bool attempt(wake_batch& wakes) = 0;
  virtual void link(waiter& waiting) noexcept = 0;         // without committing the waiter
  virtual void leave(wake_batch& wakes) noexcept = 0;  // leaves the list, if still in it
  virtual bool woken(wake_batch& wakes) = 0;           // after a claim; true: finished
};

}  // namespace sluice
