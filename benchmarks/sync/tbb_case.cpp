// `tbb`: tbb::mutex and tbb::rw_mutex, which spin and then sleep, and concurrent_bounded_queue.
#include <oneapi/tbb/mutex.h>
#include <oneapi/tbb/rw_mutex.h>

#include "benchmarks/peers/tbb_queue.hpp"
#include "benchmarks/sync/workloads.hpp"

namespace sluice::bench {
namespace {

const registration added{[](suite& s) {
  const std::string who = "tbb";
  s.add("mutex_uncontended", who, nanoseconds_per_operation(lock_alone<tbb::mutex>));
  s.add("mutex_contended", who, operations_per_second(lock_together<tbb::mutex>));
  s.add("try_push_try_pop", who, nanoseconds_per_operation(try_push_try_pop<tbb_queue>));
  s.add("shared_mutex_read", who, operations_per_second([](seconds duration) {
          return read_together<tbb::rw_mutex>(duration, 0);
        }));
  s.add("shared_mutex_mixed", who, operations_per_second([](seconds duration) {
          return read_together<tbb::rw_mutex>(duration, 32);
        }));
}};

}  // namespace
}  // namespace sluice::bench
