#include "sluice/base/random.hpp"

#include "sluice/base/seam.hpp"

namespace sluice {

random& thread_random() noexcept {
  thread_local random generator(seam::thread_number());
  return generator;
}

}  // namespace sluice
