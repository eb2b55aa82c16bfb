#include "jobs/model/time.hpp"

namespace sluice::jobs {
namespace {

class system_time final : public time_source {
 public:
  unix_time now() const noexcept override {
    const auto since = std::chrono::system_clock::now().time_since_epoch();
    return {std::chrono::duration_cast<milliseconds>(since).count()};
  }
  clock& timers() noexcept override { return real_clock(); }
};

}  // namespace

time_source& real_time() noexcept {
  static system_time time;
  return time;
}

manual_time::manual_time(unix_time start) : start_(start), clock_start_(clock_.now()) {}

unix_time manual_time::now() const noexcept {
  return start_ + std::chrono::duration_cast<milliseconds>(clock_.now() - clock_start_);
}

}  // namespace sluice::jobs
