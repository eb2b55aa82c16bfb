#pragma once

// The line for a place in memory, for coroutines that send to an actor that rests: its successor is
// made only when there is one.

#include "sluice/actor/detail/cell.hpp"

namespace sluice::detail {

class place_line {
 public:
  // False: who waits here takes up a place itself, and hears `full`.
  virtual bool lets_wait() const noexcept = 0;
  // Finished, or claimed: a place is kept for it, until it is done.
  virtual enlisted enlist(wait_node& at, waiter& who) noexcept = 0;
  virtual void retract(wait_node& at) noexcept = 0;
  // The successor, in the place that was kept. Empty: there is none, and never will be.
  // Again, if that one has rested before it had the message.
  virtual cell_ptr take() = 0;
  virtual void done() noexcept = 0;
  // All that have places there, as whoever watches knows them.
  virtual const void* of() const noexcept = 0;

 protected:
  place_line() = default;
  ~place_line() = default;
};

}  // namespace sluice::detail
