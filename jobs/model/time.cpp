#include "jobs/model/time.hpp"

#include <algorithm>

namespace sluice::jobs {
namespace {

class system_time final : public time_source {
 public:
  wall_time exact_now() const noexcept override { return std::chrono::system_clock::now(); }
  clock& timers() noexcept override { return real_clock(); }
};

}  // namespace

unix_time time_source::now() const noexcept {
  return {std::chrono::floor<milliseconds>(exact_now()).time_since_epoch().count()};
}

unix_time time_source::after(std::chrono::nanoseconds wait) const noexcept {
  return {std::chrono::ceil<milliseconds>(exact_now() + wait).time_since_epoch().count()};
}

std::chrono::nanoseconds time_source::until(unix_time due) const noexcept {
  constexpr milliseconds longest = std::chrono::years(100);
  const wall_time now = exact_now();
  const auto whole = std::chrono::floor<milliseconds>(now);
  const milliseconds left(due.ms - whole.time_since_epoch().count());
  return std::clamp(left, -longest, longest) - (now - whole);
}

time_source& real_time() noexcept {
  static system_time time;
  return time;
}

manual_time::manual_time(unix_time start) : start_(start), clock_start_(clock_.now()) {}

time_source::wall_time manual_time::exact_now() const noexcept {
  return wall_time(milliseconds(start_.ms)) + (clock_.now() - clock_start_);
}

}  // namespace sluice::jobs
