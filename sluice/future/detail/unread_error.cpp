#include "sluice/future/detail/unread_error.hpp"

#include <new>

#include "sluice/future/future_error.hpp"

namespace sluice::detail {
namespace {

bool is_no_failure(const std::exception_ptr& error) noexcept {
  try {
    std::rethrow_exception(error);
  } catch (const future_error& e) {
    return e.why() == future_error::cancelled || e.why() == future_error::rejected ||
           e.why() == future_error::broken_promise;
  } catch (...) {
    return false;
  }
}

}  // namespace

unread_error* unread_error::make(const std::exception_ptr& error, executor* on) noexcept {
  if (is_no_failure(error)) return nullptr;
  return new (std::nothrow)
      unread_error(error, on != nullptr ? on->errors() : error_route_ref());
}

void unread_error::end(unread_error* ended) noexcept {
  if (!ended->was_read_.load(relaxed)) ended->route_.report(ended->error_);
  delete ended;
}

}  // namespace sluice::detail
