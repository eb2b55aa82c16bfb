#include "sluice/executor/inline_executor.hpp"

#include <utility>

namespace sluice {

// Posts are run by `run_here`, after the waiters that the poster is waking at the moment. While a
// post runs, `current()` must be its executor, and a `work` has no member for that: hence this
// second list, of which run_here runs one item at a time.
class inline_executor::turns final : public work {
 public:
  void add(work& item, inline_executor& on) noexcept {
    ready_.push_back(item);
    on_ = &on;  // the executor of the last item: it exists, because the item is in the list
    if (std::exchange(is_queued_, true)) return;
    run_here(*this);
  }
  void run() noexcept override {
    work& item = ready_.pop_front();
    inline_executor& on = *on_;
    is_queued_ = !ready_.empty();
    if (is_queued_) run_here(*this);  // behind other ready work; never runs before we return
    const running here(on);
    item.run();
  }

 private:
  intrusive_list<work> ready_;
  inline_executor* on_ = nullptr;
  bool is_queued_ = false;
};

void inline_executor::post(work& item) noexcept {
  thread_local turns pending;
  pending.add(item, *this);
}

status inline_executor::accept(submission& f, const wait_limits* limits) {
  check(static_cast<bool>(f), "sluice::inline_executor", "a function to run");
  if (limits != nullptr && limits->stop.stop_requested()) return status::stopped;
  const running here(*this);
  submission taken = std::move(f);
  try {
    taken();
  } catch (...) {
    report_error(std::current_exception());
  }
  return status::ok;
}

}  // namespace sluice
