#pragma once

// The memory that long bodies may take together, over all connections of a server.
//
// A body that outgrows what any may have asks for all that it may yet become, and is not read
// further before it has it; so those that have are read to their end, whatever the others do, and
// nobody waits in a circle. First come, first served. One that is larger than the whole budget has
// its turn when no other has anything.
//
// Any thread; a share belongs to one of them.

#include <cstdint>
#include <deque>
#include <functional>

#include "sluice/sync/mutex.hpp"

namespace sluice::jobs::net {

class body_budget {
 public:
  // What one connection has of it, or waits for. Stays where it is.
  class share {
   public:
    share() = default;
    share(const share&) = delete;
    share& operator=(const share&) = delete;

   private:
    friend body_budget;
    std::uint64_t bytes_ = 0;
    bool granted_ = false;  // protected by the budget's lock
    std::function<void()> wake_;
  };

  explicit body_budget(std::uint64_t bytes) : bytes_(bytes) {}

  // True: it has them. False: it waits, and `wake` is called when it has, by whoever made room; it
  // must not call the budget.
  bool take(share& s, std::uint64_t bytes, std::function<void()> wake);
  bool has(const share& s) const;
  // Whether somebody waits: then whoever has a share should use it, or give it back.
  bool is_wanted() const;
  // What it has, or its place in the line. Once after each `take`.
  void give_back(share& s);

 private:
  bool fits(std::uint64_t bytes) const noexcept { return used_ == 0 || used_ + bytes <= bytes_; }

  const std::uint64_t bytes_;
  mutable mutex guard_;
  std::uint64_t used_ = 0;      // protected by guard_, as is all below
  std::deque<share*> waiting_;  // at most one for each connection
};

}  // namespace sluice::jobs::net
