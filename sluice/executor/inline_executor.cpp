#include "sluice/executor/inline_executor.hpp"

#include <utility>

namespace sluice {

// Run by `run_here`, because the poster may be waking others at this moment, and they come first.
// What runs then must still find itself on this executor, and a `work` has no room to say so:
// hence a list beside the one of run_here, which runs one of these at each of its turns.
class inline_executor::turns final : public work {
 public:
  void add(work& item, inline_executor& on) noexcept {
    ready_.push_back(item);
    on_ = &on;  // the last one: its work is in the list, so it is still there
    if (std::exchange(in_line_, true)) return;
    run_here(*this);
  }
  void run() noexcept override {
    work& item = ready_.pop_front();
    inline_executor& on = *on_;
    in_line_ = !ready_.empty();
    if (in_line_) run_here(*this);  // behind what else is ready; it never runs before we return
    const running here(on);
    item.run();
  }

 private:
  intrusive_list<work> ready_;
  inline_executor* on_ = nullptr;
  bool in_line_ = false;
};

void inline_executor::post(work& item) noexcept {
  thread_local turns mine;
  mine.add(item, *this);
}

status inline_executor::accept(submission& f, const wait_limits* limits) {
  check(static_cast<bool>(f), "sluice::inline_executor", "a function to run");
  if (limits != nullptr && limits->stop.stop_requested()) return status::stopped;
  const running here(*this);
  submission mine = std::move(f);
  try {
    mine();
  } catch (...) {
    report_error(std::current_exception());
  }
  return status::ok;
}

}  // namespace sluice
