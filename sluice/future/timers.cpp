#include "sluice/future/timers.hpp"

#include <memory>
#include <optional>

#include "sluice/future/future_error.hpp"
#include "sluice/future/promise.hpp"

namespace sluice::detail {
namespace {

// Deletes itself: when it fires, or when a cancel disarms it first.
class completion final : public timer {
 public:
  explicit completion(clock& on) : on_(on) {}

  // No other party has the future yet, so it cannot be cancelled before it is armed.
  static future<void> start(clock& on, time_point when) {
    auto self = std::make_unique<completion>(on);
    auto result = self->promise_.get_future();
    self->cancelled_.emplace(self->promise_.stop_token(), ending{*self});
    if (on.arm(*self, when)) {
      (void)self.release();
    } else {
      self->promise_.set_value();
    }
    return result;
  }

  bool claim() noexcept override { return true; }
  void fire() noexcept override {
    promise<void> due = std::move(promise_);
    delete this;  // waits for a concurrent `ending`, whose disarm fails
    due.set_value();
  }

 private:
  struct ending {
    completion& self;
    void operator()() const noexcept {
      if (!self.on_.disarm(self)) return;
      promise<void> unwanted = std::move(self.promise_);
      delete &self;  // destroys the running stop_callback: allowed on its own thread
      unwanted.set_exception(future_error(future_error::cancelled));
    }
  };

  clock& on_;
  promise<void> promise_;
  std::optional<std::stop_callback<ending>> cancelled_;
};

}  // namespace

future<void> complete_at(deadline when) {
  return completion::start(when.on() != nullptr ? *when.on() : real_clock(), when.when());
}

}  // namespace sluice::detail
