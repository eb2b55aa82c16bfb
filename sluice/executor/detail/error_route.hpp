#pragma once

// Passes an exception to the `on_error` of an executor, or to standard error once the executor has
// ended. Created for the first failed future, and shared by the executor and all failed futures
// whose error was not read.

#include <cstdint>
#include <exception>
#include <string>
#include <utility>

#include "sluice/base/atomic.hpp"

namespace sluice {
class executor;
}

namespace sluice::detail {

class error_route {
 public:
  // With one reference, the executor's.
  explicit error_route(executor& target);

  // Any thread may call it at any time.
  void report(const std::exception_ptr& error) noexcept;
  // Called when the executor ends. Blocks until no report is in progress, then releases.
  void close() noexcept;

  void add_reference() noexcept { references_.fetch_add(1, relaxed); }  // the caller has one
  void release() noexcept {
    // acq_rel: the last release happens after all others.
    if (references_.fetch_sub(1, acq_rel) == 1) delete this;
  }

 private:
  ~error_route() = default;
  static constexpr std::uint32_t closed = 1U << 31;

  executor& target_;
  const std::string name_;
  atomic<std::uint32_t> references_{1};
  atomic<std::uint32_t> reports_{0};  // in progress; plus `closed` once the executor ends
};

// One reference. An empty one reports to standard error.
class error_route_ref {
 public:
  error_route_ref() noexcept = default;
  explicit error_route_ref(error_route* counted) noexcept : route_(counted) {}
  error_route_ref(error_route_ref&& other) noexcept
      : route_(std::exchange(other.route_, nullptr)) {}
  error_route_ref& operator=(error_route_ref&&) = delete;
  ~error_route_ref() {
    if (route_ != nullptr) route_->release();
  }
  void report(const std::exception_ptr& error) const noexcept;

 private:
  error_route* route_ = nullptr;
};

}  // namespace sluice::detail
