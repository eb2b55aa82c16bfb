#include "jobs/worker/handler.hpp"

#include <cxxabi.h>

#include <cstdlib>
#include <memory>
#include <typeinfo>

namespace sluice::jobs {
namespace {

std::string readable_name(const std::type_info* type) {
  if (type == nullptr) return "unknown";
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> name(
      abi::__cxa_demangle(type->name(), nullptr, nullptr, &status), &std::free);
  return status == 0 ? name.get() : type->name();
}

// Appends the nested exceptions, the outermost first.
void append_causes(std::string& text, const std::exception& outer) {
  try {
    std::rethrow_if_nested(outer);
  } catch (const std::exception& inner) {
    text += "caused by " + readable_name(&typeid(inner)) + ": " + inner.what() + "\n";
    append_causes(text, inner);
  } catch (...) {
    text += "caused by " + readable_name(abi::__cxa_current_exception_type()) + "\n";
  }
}

}  // namespace

failure failure_of(const error& why) {
  return {.type = std::string(to_string(why.code)), .message = why.message};
}

failure failure_of(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const job_failed& why) {
    failure failed = why.why();
    if (failed.type.empty()) failed.type = "failed";
    return failed;
  } catch (const std::exception& why) {
    failure failed{.type = readable_name(&typeid(why)), .message = why.what()};
    append_causes(failed.backtrace, why);
    return failed;
  } catch (...) {
    const std::string name = readable_name(abi::__cxa_current_exception_type());
    return {.type = name, .message = "a " + name + " was thrown"};
  }
}

}  // namespace sluice::jobs
