// `boost`: Boost.Thread's mutexes and bounded queue.
#include <boost/thread/mutex.hpp>
#include <boost/thread/shared_mutex.hpp>

#include "benchmarks/peers/boost_queue.hpp"
#include "benchmarks/sync/workloads.hpp"

namespace sluice::bench {
namespace {

const registration added{[](suite& s) {
  const std::string who = "boost";
  s.add("mutex_uncontended", who, nanoseconds_per_operation(lock_alone<boost::mutex>));
  s.add("mutex_contended", who, operations_per_second(lock_together<boost::mutex>));
  s.add("try_push_try_pop", who, nanoseconds_per_operation(try_push_try_pop<boost_queue>));
  s.add("shared_mutex_read", who, operations_per_second([](seconds duration) {
          return read_together<boost::shared_mutex>(duration, 0);
        }));
  s.add("shared_mutex_mixed", who, operations_per_second([](seconds duration) {
          return read_together<boost::shared_mutex>(duration, 32);
        }));
}};

}  // namespace
}  // namespace sluice::bench
