// `std`: the baseline: threads around one std::deque of std::functions under a std::mutex; a join
// runs functions of the deque until its child is done. (std::async starts a thread for every call
// and cannot run this workload.)
#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "benchmarks/forkjoin/fib.hpp"

namespace sluice::bench {
namespace {

class std_pool {
 public:
  explicit std_pool(unsigned threads) {
    for (unsigned i = 1; i < threads; ++i) {  // the caller is one of them
      threads_.emplace_back([this](std::stop_token stop) {
        while (run_one(stop)) {
        }
      });
    }
  }
  ~std_pool() {
    for (auto& thread : threads_) thread.request_stop();
  }
  std_pool(const std_pool&) = delete;
  std_pool& operator=(const std_pool&) = delete;

  std::int64_t fib(int n) {
    if (n < 2) return n;
    std::int64_t first = 0;
    std::atomic<bool> done = false;
    submit([this, n, &first, &done] {
      first = fib(n - 1);
      done = true;
    });
    const auto second = fib(n - 2);
    while (!done) {
      if (!try_run_one()) std::this_thread::yield();
    }
    return first + second;
  }

 private:
  void submit(std::function<void()> f) {
    {
      const std::lock_guard hold(mutex_);
      functions_.push_back(std::move(f));
    }
    arrived_.notify_one();
  }
  bool try_run_one() {
    std::unique_lock hold(mutex_);
    if (functions_.empty()) return false;
    run_youngest(hold);
    return true;
  }
  bool run_one(const std::stop_token& stop) {
    std::unique_lock hold(mutex_);
    if (!arrived_.wait(hold, stop, [&] { return !functions_.empty(); })) return false;
    run_youngest(hold);
    return true;
  }
  // Runs the youngest first: the oldest are the largest, and nested joins would run deep.
  void run_youngest(std::unique_lock<std::mutex>& hold) {
    const auto f = std::move(functions_.back());
    functions_.pop_back();
    hold.unlock();
    f();
  }

  std::mutex mutex_;
  std::condition_variable_any arrived_;
  std::deque<std::function<void()>> functions_;  // protected by mutex_
  std::vector<std::jthread> threads_;
};

const registration added{[](suite& s) { add_fib<std_pool>(s, "std"); }};

}  // namespace
}  // namespace sluice::bench
