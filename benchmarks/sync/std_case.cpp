// `std`: the standard library's primitives, or the usual substitutes written with them.
#include <atomic>
#include <barrier>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <semaphore>
#include <shared_mutex>

#include "benchmarks/peers/std_ring.hpp"
#include "benchmarks/sync/workloads.hpp"

namespace sluice::bench {
namespace {

// For the contended semaphore: with more than one permit and more than one waiter, the
// std::counting_semaphore of libstdc++ 12 can leave a waiter asleep beside a free permit, because
// it notifies only the release that finds no permit left. So this is the usual substitute.
class mutex_semaphore {
 public:
  explicit mutex_semaphore(int permits) : permits_(permits) {}

  void acquire() {
    std::unique_lock lock(mutex_);
    available_.wait(lock, [this] { return permits_ > 0; });
    --permits_;
  }

  void release() {
    {
      const std::lock_guard lock(mutex_);
      ++permits_;
    }
    available_.notify_one();
  }

 private:
  std::mutex mutex_;
  std::condition_variable available_;
  int permits_;  // protected by mutex_
};

class atomic_counter {
 public:
  void add(std::uint64_t n) { value_.fetch_add(n, std::memory_order_relaxed); }
  std::uint64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> value_ = 0;
};

class atomic_shared_ptr_cell {
 public:
  void publish(two_halves value) { value_.store(std::make_shared<const two_halves>(value)); }

  template <class F>
  void read(F f) const {
    f(*value_.load());
  }

 private:
  std::atomic<std::shared_ptr<const two_halves>> value_ = std::make_shared<const two_halves>();
};

class call_once_lazy {
 public:
  const int& get() {
    std::call_once(built_, [this] { value_ = 42; });
    return *value_;
  }

 private:
  std::once_flag built_;
  std::optional<int> value_;
};

const registration added{[](suite& s) {
  const std::string who = "std";
  s.add("mutex_uncontended", who, nanoseconds_per_operation(lock_alone<std::mutex>));
  s.add("mutex_contended", who, operations_per_second(lock_together<std::mutex>));
  s.add("try_push_try_pop", who, nanoseconds_per_operation(try_push_try_pop<std_ring>));
  s.add("shared_mutex_read", who, operations_per_second([](seconds duration) {
          return read_together<std::shared_mutex>(duration, 0);
        }));
  s.add("shared_mutex_mixed", who, operations_per_second([](seconds duration) {
          return read_together<std::shared_mutex>(duration, 32);
        }));
  s.add("semaphore_uncontended", who,
        nanoseconds_per_operation(acquire_alone<std::counting_semaphore<>>));
  s.add("semaphore_contended", who, operations_per_second(acquire_together<mutex_semaphore>));
  s.add("barrier", who, operations_per_second(barrier_phases<std::barrier<>>));
  s.add("snapshot_read", who, operations_per_second(read_published<atomic_shared_ptr_cell>));
  s.add("counter_add", who, operations_per_second(add_together<atomic_counter>));
  s.add("lazy_get", who, nanoseconds_per_operation(get_built<call_once_lazy>));
}};

}  // namespace
}  // namespace sluice::bench
