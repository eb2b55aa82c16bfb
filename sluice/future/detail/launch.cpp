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
  submission start(priority, [mine = std::unique_ptr<launched, ending>(&item)]() mutable {
    mine.release()->begin();
  });
  const status how = submit(start);
  // Not taken: it is still in `start`, and is dropped with it.
  if (!how && how != status::dropped) item.refused_ = how;
  return how;
}

status launch(start_on where, launched& item, const wait_limits& limits) {
  return launched::hand_over(item, where.priority, [&](submission& f) {
    return where.on.submit_within(f, limits);
  });
}

status try_launch(start_on where, launched& item) {
  return launched::hand_over(item, where.priority,
                             [&](submission& f) { return where.on.try_submit_ref(f); });
}

std::exception_ptr launched::why_dropped() const {
  const auto because = [](future_error::reason why, const char* detail) {
    return std::make_exception_ptr(future_error(why, detail));
  };
  switch (refused_) {
    case status::full: return because(future_error::rejected, "it is full");
    case status::closed: return because(future_error::rejected, "it is closed");
    case status::timed_out: return because(future_error::rejected, "no room in time");
    case status::stopped: return because(future_error::rejected, "stopped while waiting for room");
    default: return because(future_error::broken_promise, "its executor dropped the task");
  }
}

}  // namespace sluice::detail
