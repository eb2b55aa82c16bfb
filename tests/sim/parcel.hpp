#pragma once

// An item that reports every move to the simulator: an unsynchronized transfer is found as a race,
// wherever the item is stored in between.

#include <utility>

#include "sluice/base/race_checked.hpp"

namespace sluice::sim {

class parcel {
 public:
  explicit parcel(int number) noexcept : number_(number) { seam::writes_plain(this); }
  parcel(parcel&& other) noexcept : number_(other.take()) { seam::writes_plain(this); }
  parcel(const parcel& other) noexcept : number_(other.number()) { seam::writes_plain(this); }
  parcel& operator=(parcel&& other) noexcept {
    number_ = other.take();
    seam::writes_plain(this);
    return *this;
  }
  parcel& operator=(const parcel&) = delete;
  ~parcel() { seam::writes_plain(this); }

  int number() const noexcept {
    seam::reads_plain(this);
    return number_;
  }

 private:
  int take() noexcept {
    seam::writes_plain(this);
    return std::exchange(number_, 0);
  }

  int number_;  // 0 once it was moved from
};

}  // namespace sluice::sim
