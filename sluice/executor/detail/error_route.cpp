#include "sluice/executor/detail/error_route.hpp"

#include "sluice/executor/executor.hpp"
#include "sluice/sync/backoff.hpp"

namespace sluice::detail {

error_route::error_route(executor& target) : target_(target), name_(target.name()) {}

void error_route::report(const std::exception_ptr& error) noexcept {
  // acquire: pairs with the acq_rel in `close`.
  if ((reports_.fetch_add(1, acquire) & closed) == 0) {
    target_.report_error(error);
  } else {
    report_to_stderr(name_, error);
  }
  reports_.fetch_sub(1, sluice::release);  // release: pairs with the acquire in `close`
}

void error_route::close() noexcept {
  reports_.fetch_add(closed, acq_rel);
  for (backoff again; reports_.load(acquire) != closed;) again.pause();
  release();
}

void error_route_ref::report(const std::exception_ptr& error) const noexcept {
  if (route_ != nullptr) {
    route_->report(error);
  } else {
    report_to_stderr({}, error);
  }
}

}  // namespace sluice::detail
