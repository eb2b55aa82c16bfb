// `sluice`: the primitives of sluice/sync. `sluice_fair` and `sluice_spin` are the other two
// mutexes, `sluice_spsc` the other queue.
#include "benchmarks/peers/sluice_queue.hpp"
#include "benchmarks/sync/workloads.hpp"
#include "sluice/sync/barrier.hpp"
#include "sluice/sync/counter.hpp"
#include "sluice/sync/fair_mutex.hpp"
#include "sluice/sync/lazy.hpp"
#include "sluice/sync/mutex.hpp"
#include "sluice/sync/semaphore.hpp"
#include "sluice/sync/shared_mutex.hpp"
#include "sluice/sync/snapshot.hpp"
#include "sluice/sync/spin_lock.hpp"

namespace sluice::bench {
namespace {

class sharded_counter {
 public:
  void add(std::int64_t n) { counter_.add(n); }
  std::uint64_t value() const { return static_cast<std::uint64_t>(counter_.sum()); }

 private:
  counter counter_;
};

class snapshot_cell {
 public:
  void publish(two_halves value) { value_.publish(value); }

  template <class F>
  void read(F f) const {
    f(*value_.load());
  }

 private:
  snapshot<two_halves> value_{two_halves{}};
};

class sluice_lazy {
 public:
  const int& get() { return value_.get(); }

 private:
  lazy<int> value_{[] { return 42; }};
};

template <class Mutex>
void add_mutex(suite& s, const std::string& who) {
  s.add("mutex_uncontended", who, nanoseconds_per_operation(lock_alone<Mutex>));
  s.add("mutex_contended", who, operations_per_second(lock_together<Mutex>));
}

const registration added{[](suite& s) {
  const std::string who = "sluice";
  add_mutex<mutex>(s, who);
  add_mutex<fair_mutex>(s, "sluice_fair");
  add_mutex<spin_lock>(s, "sluice_spin");
  s.add("try_push_try_pop", who, nanoseconds_per_operation(try_push_try_pop<sluice_queue>));
  s.add("try_push_try_pop", "sluice_spsc",
        nanoseconds_per_operation(try_push_try_pop<sluice_ring>));
  s.add("shared_mutex_read", who, operations_per_second([](seconds duration) {
          return read_together<shared_mutex>(duration, 0);
        }));
  s.add("shared_mutex_mixed", who, operations_per_second([](seconds duration) {
          return read_together<shared_mutex>(duration, 32);
        }));
  s.add("semaphore_uncontended", who, nanoseconds_per_operation(acquire_alone<semaphore>));
  s.add("semaphore_contended", who, operations_per_second(acquire_together<semaphore>));
  s.add("barrier", who, operations_per_second(barrier_phases<barrier>));
  s.add("snapshot_read", who, operations_per_second(read_published<snapshot_cell>));
  s.add("counter_add", who, operations_per_second(add_together<sharded_counter>));
  s.add("lazy_get", who, nanoseconds_per_operation(get_built<sluice_lazy>));
}};

}  // namespace
}  // namespace sluice::bench
