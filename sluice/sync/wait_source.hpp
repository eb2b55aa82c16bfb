#pragma once

// Lets a part of the library that keeps its own account of waits (actors) have them listed beside
// the others: a wait of one party for another, through something that is no object of its own.
//
// Parties and waits are numbered by their source alone: actor 1 of one system is not that of
// another. `foreign_waits` tells them apart.
// A source is asked when somebody looks, and never otherwise. Any thread may add, remove and look;
// when `remove_source` has returned, the source is not being asked and will not be.

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "sluice/base/intrusive_list.hpp"
#include "sluice/sync/watch.hpp"

namespace sluice::watch {

struct foreign_wait {
  party who{};
  std::string name{};  // of who waits
  party for_whom{};
  std::string for_name{};
  const char* type = "";             // "sluice::actor"
  const char* wants = "";            // "answer", "room"
  std::chrono::nanoseconds time{0};  // for which it has waited
  std::uint64_t number = 0;          // of the wait, among those of its source
};

class wait_source : public list_hook {
 public:
  wait_source() = default;
  wait_source(const wait_source&) = delete;
  wait_source& operator=(const wait_source&) = delete;

  // Adds those that wait right now. Must not wait for what is waited for.
  virtual void add_waits(std::vector<foreign_wait>& to) const = 0;

 protected:
  ~wait_source() = default;

 private:
  friend void add_source(wait_source& s);
  friend std::vector<foreign_wait> foreign_waits();
  std::uint64_t number_ = 0;
};

void add_source(wait_source& s);
void remove_source(wait_source& s) noexcept;
// All waits of all sources. Of two sources no party and no number is the same.
std::vector<foreign_wait> foreign_waits();
// Of such a party: what its source knows it by.
inline std::uint64_t number_in_source(party p) noexcept {
  return p.id() & ((std::uint64_t{1} << 44) - 1);
}

}  // namespace sluice::watch
