#include "sluice/base/random.hpp"

#include "sluice/base/seam.hpp"

namespace sluice {

random& thread_random() noexcept {
  thread_local random mine(seam::thread_number());
  return mine;
}

}  // namespace sluice
