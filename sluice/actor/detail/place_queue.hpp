#pragma once

// The queue for a place in memory, for coroutines that send to a passivated actor: its successor is
// created only when a place is free.

#include "sluice/actor/detail/cell.hpp"

namespace sluice::detail {

class place_queue {
 public:
  // False: the caller occupies a place itself, and gets `full`.
  virtual bool may_wait() const noexcept = 0;
  // Finished, or claimed: a place is reserved for the waiter until it calls done().
  virtual enlisted enlist(wait_node& node, waiter& waiting) noexcept = 0;
  virtual void retract(wait_node& node) noexcept = 0;
  // Returns the successor, in the reserved place. Empty: it has no successor, now and later.
  // Call again if that one was passivated before it got the message.
  virtual cell_ptr take() = 0;
  virtual void done() noexcept = 0;
  // The object that wait reports name as the owner of the places.
  virtual const void* owner() const noexcept = 0;

 protected:
  place_queue() = default;
  ~place_queue() = default;
};

}  // namespace sluice::detail
