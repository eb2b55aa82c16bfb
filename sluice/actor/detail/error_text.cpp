#include "sluice/actor/detail/error_text.hpp"

namespace sluice::detail {

std::string error_text(const std::exception_ptr& error) {
  if (error == nullptr) return "no exception";
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& e) {
    return e.what();
  } catch (...) {
    return "not a std::exception";
  }
}

}  // namespace sluice::detail
