// `moodycamel`: LightweightSemaphore, and the queue that it bounds.
#include "benchmarks/peers/moodycamel_queue.hpp"
#include "benchmarks/sync/workloads.hpp"

namespace sluice::bench {
namespace {

class lightweight_semaphore {
 public:
  explicit lightweight_semaphore(int permits) : semaphore_(permits) {}
  void acquire() { semaphore_.wait(); }
  void release() { semaphore_.signal(); }

 private:
  moodycamel::LightweightSemaphore semaphore_;
};

const registration added{[](suite& s) {
  const std::string who = "moodycamel";
  s.add("try_push_try_pop", who, nanoseconds_per_operation(try_push_try_pop<moodycamel_queue>));
  s.add("semaphore_uncontended", who,
        nanoseconds_per_operation(acquire_alone<lightweight_semaphore>));
  s.add("semaphore_contended", who, operations_per_second(acquire_together<lightweight_semaphore>));
}};

}  // namespace
}  // namespace sluice::bench
