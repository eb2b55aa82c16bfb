#include "sluice/executor/executor.hpp"

#include <memory>
#include <new>
#include <string>

#include "sluice/base/detail/callback.hpp"

namespace sluice {
namespace {

constinit thread_local executor* this_executor = nullptr;

// A submission to an executor without a queue of submissions.
class posted_submission final : public work {
 public:
  posted_submission(submission&& f, executor& on) : f_(std::move(f)), on_(on) {}
  void run() noexcept override {
    const std::unique_ptr<posted_submission> self(this);
    try {
      f_();
    } catch (...) {
      on_.report_error(std::current_exception());
    }
  }

 private:
  submission f_;
  executor& on_;
};

}  // namespace

executor* executor::current() noexcept { return this_executor; }

executor::running::running(executor& here) noexcept
    : before_(std::exchange(this_executor, &here)) {}

executor::running::~running() { this_executor = before_; }

status executor::accept(submission& f, const wait_limits* limits) {
  check(static_cast<bool>(f), "sluice::executor", "a function to run");
  if (limits != nullptr && limits->stop.stop_requested()) return status::stopped;
  auto* const item = new posted_submission(std::move(f), *this);
  post(*item);
  return status::ok;
}

void executor::report_error(const std::exception_ptr& error) noexcept {
  report_to_stderr(name(), error);
}

detail::error_route_ref executor::errors() noexcept {
  // acquire: pairs with the release (acq_rel) of the thread that created it, below.
  auto* known = errors_.load(acquire);
  if (known == nullptr) {
    detail::error_route* made = nullptr;
    try {
      made = new detail::error_route(*this);
    } catch (const std::bad_alloc&) {
      return {};
    }
    if (errors_.compare_exchange_strong(known, made, acq_rel, acquire)) {
      known = made;
    } else {
      made->release();
    }
  }
  known->add_reference();
  return detail::error_route_ref(known);
}

void executor::end(const char* type) noexcept {
  if (const std::string users = users_.text(); !users.empty()) [[unlikely]] {
    const std::string expected = "no users at its end, found " + users +
                                 " (an executor must outlive its users)";
    check_named(false, type, std::string(name()).c_str(), expected.c_str());
  }
  if (load_untracked(errors_) == nullptr) return;
  // acquire: pairs with the release of the thread that created it, in `errors`.
  errors_.exchange(nullptr, acquire)->close();
}

void report_to_stderr(std::string_view executor_name, const std::exception_ptr& error) noexcept {
  detail::report_exception("a function submitted to executor", executor_name, error);
}

}  // namespace sluice
