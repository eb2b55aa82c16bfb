#include "sluice/future/detail/run_loop.hpp"

#include <memory>
#include <utility>

#include "sluice/sync/named.hpp"

namespace sluice::detail {
namespace {

class submitted_function final : public work {
 public:
  submitted_function(submission&& f, std::string_view executor_name, atomic<std::size_t>& count)
      : f_(std::move(f)), name_(executor_name), count_(count) {}
  void run() noexcept override {
    const std::unique_ptr<submitted_function> self(this);
    count_.fetch_sub(1, relaxed);  // only a count: orders nothing
    try {
      f_();
    } catch (...) {
      report_to_stderr(name_, std::current_exception());
    }
  }

 private:
  submission f_;
  std::string_view name_;
  atomic<std::size_t>& count_;
};

}  // namespace

run_loop::~run_loop() {
  // Work posted during the last step must still run: another party may wait for it.
  while (try_run_next()) {
  }
  const std::lock_guard hold(guard_);  // a post may still have to release it
  end("sluice::sync_wait");
  wait_report::destroyed(this);
}

void run_loop::post(work& item) noexcept {
  wake_batch wakes;
  const std::lock_guard hold(guard_);
  ready_.push_back(item);
  count_.store(count_.load(relaxed) + 1, relaxed);
  if (auto* const owner = claim_front(owner_)) wakes.add(*owner->waiting);
}

status run_loop::accept(submission& f, const wait_limits* limits) {
  check(static_cast<bool>(f), "sluice::executor", "a function to run");
  if (limits != nullptr && limits->stop.stop_requested()) return status::stopped;
  if (submitted_.fetch_add(1, relaxed) >= submissions_max) {
    submitted_.fetch_sub(1, relaxed);
    return status::full;
  }
  std::unique_ptr<submitted_function> item;
  try {
    item = std::make_unique<submitted_function>(std::move(f), name(), submitted_);
  } catch (...) {
    submitted_.fetch_sub(1, relaxed);
    throw;
  }
  post(*item.release());
  return status::ok;
}

work* run_loop::take_locked() noexcept {
  if (ready_.empty()) return nullptr;
  count_.store(count_.load(relaxed) - 1, relaxed);
  return &ready_.pop_front();
}

work* run_loop::take() noexcept {
  const std::lock_guard hold(guard_);
  return take_locked();
}

bool run_loop::run_taken(work* item) noexcept {
  if (item == nullptr) return false;
  const running here(*this);
  item->run();
  return true;
}

status run_loop::run_next(const wait_limits& limits) {
  op next(*this);
  const status ended = block_on(next, limits);
  run_taken(next.taken());
  return ended;
}

enlisted run_loop::op::enlist(waiter& waiting) noexcept {
  const std::lock_guard hold(loop_.guard_);
  taken_ = loop_.take_locked();
  if (taken_ != nullptr) return enlisted::finished;
  return link_waiter(loop_.owner_, node_, waiting);
}

void run_loop::op::retract() noexcept {
  const std::lock_guard hold(loop_.guard_);
  if (node_.linked()) node_.unlink();
}

}  // namespace sluice::detail
