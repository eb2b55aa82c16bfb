#include "jobs/deliver/detail/loop.hpp"

#include "sluice/base/deadline.hpp"
#include "sluice/base/this_thread.hpp"
#include "sluice/future/timers.hpp"

namespace sluice::jobs::detail {

loop::loop(clock& timers, std::string name)
    : timers_(timers),
      context_(std::make_shared<boost::asio::io_context>(1)),
      keep_(context_->get_executor()) {
  thread_ = seam::thread([this, name = std::move(name)] {
    seam::name_thread(name);
    context_->run();
  });
}

loop::~loop() {
  end();
}

void loop::end() {
  if (!thread_.joinable()) return;
  post([this] {
    due_.clear();
    rearm();
    keep_.reset();
  });
  thread_.join();
}

loop::alarm loop::at(time_point when, function f) {
  const alarm made{when, ++last_number_};
  due_.emplace(made, std::move(f));
  rearm();
  return made;
}

void loop::cancel(alarm& a) {
  due_.erase(std::exchange(a, {}));
  // Keeps the clock's timer: it fires at most once without effect, and most alarms are cancelled.
  if (due_.empty()) rearm();
}

// Keeps one timer of the clock, for the earliest alarm.
void loop::rearm() {
  const time_point wanted = due_.empty() ? time_point::max() : due_.begin()->first.when;
  if (wanted == armed_for_ || (wanted > armed_for_ && !due_.empty())) return;
  if (timer_.valid()) std::exchange(timer_, {}).cancel();
  armed_for_ = wanted;
  if (due_.empty()) return;
  timer_ = sluice::after(deadline::at(wanted, timers_)).then([context = context_, this] {
    boost::asio::post(*context, [this] { ring(); });
  });
}

void loop::ring() {
  armed_for_ = time_point::max();
  timer_ = {};
  while (!due_.empty() && due_.begin()->first.when <= now()) {
    function f = std::move(due_.begin()->second);
    due_.erase(due_.begin());
    f();
  }
  rearm();
}

}  // namespace sluice::jobs::detail
