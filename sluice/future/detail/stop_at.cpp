#include "sluice/future/detail/stop_at.hpp"

#include <utility>

#include "sluice/base/atomic.hpp"

namespace sluice::detail {

// Shared by `stop_at` and the clock, so that neither has to wait for the other: the clock may be in
// the middle of firing when the wait is over.
class stop_at::alarm final : public timer {
 public:
  explicit alarm(std::stop_source whom) noexcept : whom_(std::move(whom)) {}
  bool claim() noexcept override { return true; }
  void fire() noexcept override {
    whom_.request_stop();
    drop(1);
  }
  void drop(int shares) noexcept {
    // acq_rel: whoever deletes sees that the other is done with it.
    if (shares_.fetch_sub(shares, acq_rel) == shares) delete this;
  }

 private:
  ~alarm() = default;

  std::stop_source whom_;
  atomic<int> shares_{2};
};

bool stop_at::arm(const deadline& until) {
  if (until.is_never()) return true;
  clock& on = until.on() != nullptr ? *until.on() : real_clock();
  auto* const shared = new alarm(whom_);
  bool armed = false;
  try {
    armed = on.arm(*shared, until.when());
  } catch (...) {
    shared->drop(2);
    throw;
  }
  if (!armed) {
    shared->drop(2);
    return false;
  }
  alarm_ = shared;
  clock_ = &on;
  return true;
}

bool stop_at::disarm() noexcept {
  if (clock_ == nullptr) return came_;
  came_ = !std::exchange(clock_, nullptr)->disarm(*alarm_);
  alarm_->drop(came_ ? 1 : 2);
  return came_;
}

}  // namespace sluice::detail
