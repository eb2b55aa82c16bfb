// `std`: std::mutex, std::condition_variable and a std::deque of std::function, the usual
// implementation. The queue has no bound.
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "benchmarks/executor/workloads.hpp"

namespace sluice::bench {
namespace {

class std_pool {
 public:
  explicit std_pool(unsigned threads) {
    for (unsigned i = 0; i < threads; ++i) threads_.emplace_back([this] { work(); });
  }
  template <class F>
  void submit(F&& f) {
    {
      const std::lock_guard hold(mutex_);
      queue_.emplace_back(std::forward<F>(f));
    }
    changed_.notify_one();
  }
  void finish() {
    {
      const std::lock_guard hold(mutex_);
      closed_ = true;
    }
    changed_.notify_all();
    threads_.clear();
  }

 private:
  void work() {
    for (;;) {
      std::function<void()> f;
      {
        std::unique_lock hold(mutex_);
        changed_.wait(hold, [this] { return closed_ || !queue_.empty(); });
        if (queue_.empty()) return;
        f = std::move(queue_.front());
        queue_.pop_front();
      }
      f();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> queue_;
  bool closed_ = false;
  std::vector<std::jthread> threads_;
};

const registration added{[](suite& s) {
  add_pool<std_pool>(s, "std");
  s.add("idle_cpu_ms", "std", idle_pool_cpu_ms<std_pool>);
}};

}  // namespace
}  // namespace sluice::bench
