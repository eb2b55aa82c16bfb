#include "sluice/future/detail/stop_at.hpp"

#include <utility>

#include "sluice/base/atomic.hpp"

namespace sluice::detail {

// Shared by `stop_at` and the clock, so that neither has to wait for the other: the clock may be
// firing when `stop_at` is destroyed.
class stop_at::alarm final : public timer {
 public:
  explicit alarm(std::stop_source source) noexcept : source_(std::move(source)) {}
  bool claim() noexcept override { return true; }
  void fire() noexcept override {
    source_.request_stop();
    drop(1);
  }
  void drop(int shares) noexcept {
    // acq_rel: the last owner deletes it after the other has finished.
    if (shares_.fetch_sub(shares, acq_rel) == shares) delete this;
  }

 private:
  ~alarm() = default;

  std::stop_source source_;
  atomic<int> shares_{2};
};

bool stop_at::arm(const deadline& until) {
  if (until.is_never()) return true;
  clock& on = until.on() != nullptr ? *until.on() : real_clock();
  auto* const shared = new alarm(source_);
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
  if (clock_ == nullptr) return fired_;
  fired_ = !std::exchange(clock_, nullptr)->disarm(*alarm_);
  alarm_->drop(fired_ ? 1 : 2);
  return fired_;
}

}  // namespace sluice::detail
