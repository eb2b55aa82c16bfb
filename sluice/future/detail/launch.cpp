#include "sluice/future/detail/launch.hpp"

#include <memory>
#include <utility>

#include "sluice/future/future_error.hpp"

namespace sluice::detail {

struct launched::ending {
  void operator()(launched* unbegun) const noexcept { unbegun->drop(); }
};

template <class Submit>
status launched::hand_over(launched& item, std::int32_t priority, Submit&& submit) {
  submission start(priority, [owned = std::unique_ptr<launched, ending>(&item)]() mutable {
    owned.release()->begin();
  });
  const status submitted = submit(start);
  // If refused, the item is still in `start` and is dropped with it.
  if (!submitted && submitted != status::dropped) item.refused_ = submitted;
  return submitted;
}

status launch(start_on where, launched& item, const wait_limits& limits) {
  return launched::hand_over(item, where.priority, [&](submission& f) {
    return where.on.submit(std::move(f), limits);
  });
}

status try_launch(start_on where, launched& item) {
  return launched::hand_over(item, where.priority,
                             [&](submission& f) { return where.on.try_submit(std::move(f)); });
}

std::exception_ptr launched::why_dropped() const {
  const auto because = [](future_error::reason why, const char* detail) {
    return std::make_exception_ptr(future_error(why, detail));
  };
  switch (refused_) {
    case status::full: return because(future_error::rejected, "it is full");
    case status::closed: return because(future_error::rejected, "it is closed");
    case status::timed_out: return because(future_error::rejected, "no capacity in time");
    case status::stopped:
      return because(future_error::rejected, "stopped while waiting for capacity");
    default: return because(future_error::broken_promise, "its executor dropped the task");
  }
}

}  // namespace sluice::detail
