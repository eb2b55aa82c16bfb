#include "sluice/base/seam.hpp"

#include <linux/membarrier.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <mutex>
#include <vector>

#include "sluice/base/check.hpp"
#include "sluice/base/detail/run_local.hpp"

namespace sluice::seam {
namespace {

// The number and the parker of a running thread. Returned to the pool when the thread ends, reused
// by another thread, and never freed: a waker may still touch the parker after the woken thread has
// run on and ended.
struct thread_record {
  std::uint32_t number = 0;
  parker parking{};
};

class record_pool {
 public:
  thread_record* take() {
    const std::lock_guard hold(mutex_);
    if (free_.empty()) {
      check(made_ < thread_number_max, "sluice::seam", "fewer than 2^24 - 1 threads at a time");
      free_.reserve(made_ + 1);  // so that give_back never allocates
      return new thread_record{.number = ++made_};
    }
    auto* const record = free_.back();
    free_.pop_back();
    return record;
  }
  void give_back(thread_record* record) noexcept {
    const std::lock_guard hold(mutex_);
    free_.push_back(record);
  }

 private:
  std::mutex mutex_;
  std::vector<thread_record*> free_;  // protected by mutex_
  std::uint32_t made_ = 0;            // protected by mutex_
};

// Never destroyed: threads may end after the destructors of statics have run.
record_pool& records() {
  static auto* pool = new record_pool;
  return *pool;
}

constinit thread_local thread_record* own_record = nullptr;

// Returns the thread's record to the pool when the thread ends. A pthread key, because its
// destructor runs after the destructors of all thread_local objects, which may lock and so need the
// number.
pthread_key_t record_key() noexcept {
  static const pthread_key_t key = [] {
    pthread_key_t made{};
    const int error = ::pthread_key_create(&made, [](void* record) {
      own_record = nullptr;
      known_thread_number = 0;
      records().give_back(static_cast<thread_record*>(record));
    });
    check(error == 0, "sluice::seam", "a free pthread key");
    return made;
  }();
  return key;
}

thread_record& this_record() noexcept {
  if (own_record == nullptr) {
    own_record = records().take();
    known_thread_number = own_record->number;
    const int error = ::pthread_setspecific(record_key(), own_record);
    check(error == 0, "sluice::seam", "memory for the thread's number");
  }
  return *own_record;
}

bool register_membarrier() noexcept {
  const long offered = ::syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);
  if (offered < 0 || (offered & MEMBARRIER_CMD_PRIVATE_EXPEDITED) == 0) return false;
  return ::syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
}

}  // namespace

namespace detail {
// False, so that light_barrier is a full fence, until the registration below has run.
constinit std::atomic<bool> free_light_barrier{false};
}  // namespace detail

namespace {
[[maybe_unused]] const bool membarrier_registered = [] {
  const bool registered = register_membarrier();
  detail::free_light_barrier.store(registered, relaxed);
  return registered;
}();
}  // namespace

time_point now() noexcept {
  return std::chrono::steady_clock::now();
}

constinit thread_local std::uint32_t known_thread_number = 0;

std::uint32_t first_thread_number() noexcept {
  return this_record().number;
}

void yield() noexcept {
  ::sched_yield();
}

void nap(std::chrono::microseconds duration) noexcept {
  std::this_thread::sleep_for(duration);
}

bool can_spin() noexcept {
  static const bool several = std::thread::hardware_concurrency() > 1;
  return several;
}

bool light_barrier_is_free() noexcept {
  return detail::free_light_barrier.load(relaxed);
}

void heavy_barrier() noexcept {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (detail::free_light_barrier.load(relaxed)) {
    ::syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
  }
}

parker& this_parker() noexcept {
  return this_record().parking;
}

void run_forever(void (*body)(void*), void* argument) {
  thread([body, argument] { body(argument); }).detach();
}

}  // namespace sluice::seam
