#include "sluice/future/detail/task_root.hpp"

#include "sluice/future/future_error.hpp"

namespace sluice::detail {

bool is_cancelled(const std::exception_ptr& error) noexcept {
  if (error == nullptr) return false;
  try {
    std::rethrow_exception(error);
  } catch (const future_error& e) {
    return e.why() == future_error::cancelled;
  } catch (...) {
    return false;
  }
}

}  // namespace sluice::detail
