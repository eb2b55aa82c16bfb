#pragma once

// An item of a delay_queue, with the time before which no consumer gets it.

#include "sluice/base/clock.hpp"

namespace sluice {

template <class T>
struct delayed {
  T item;
  time_point at{};
};

}  // namespace sluice
