#include "sluice/executor/executor.hpp"

#include <cstdio>
#include <memory>

namespace sluice {
namespace {

constinit thread_local executor* this_executor = nullptr;

// A submission to an executor that has no queue of its own for them.
class posted_submission final : public work {
 public:
  posted_submission(submission&& f, executor& on) : f_(std::move(f)), on_(on) {}
  void run() noexcept override {
    const std::unique_ptr<posted_submission> self(this);
    try {
      f_();
    } catch (...) {
      report_to_stderr(on_.name(), std::current_exception());
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

void report_to_stderr(std::string_view executor_name, const std::exception_ptr& error) noexcept {
  const auto say = [&](const char* what) {
    std::fprintf(stderr, "sluice: a function submitted to executor '%.*s' threw: %s\n",
                 static_cast<int>(executor_name.size()), executor_name.data(), what);
  };
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& e) {
    say(e.what());
  } catch (...) {
    say("something that is not a std::exception");
  }
}

}  // namespace sluice
