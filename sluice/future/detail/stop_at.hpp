#pragma once

// Requests a stop_source at a deadline, from the clock's thread.

#include <stop_token>

#include "sluice/base/deadline.hpp"

namespace sluice::detail {

class stop_at {
 public:
  // Starts unarmed.
  explicit stop_at(std::stop_source source) noexcept : source_(std::move(source)) {}
  stop_at(const stop_at&) = delete;
  stop_at& operator=(const stop_at&) = delete;
  ~stop_at() { disarm(); }

  // Returns false if the deadline has passed already; it then requests nothing.
  [[nodiscard]] bool arm(const deadline& until);
  // Returns true if the deadline was first: the source is requested or is just being requested.
  bool disarm() noexcept;

 private:
  class alarm;

  std::stop_source source_;
  clock* clock_ = nullptr;  // null: not armed
  alarm* alarm_ = nullptr;  // shared with the clock while armed
  bool fired_ = false;
};

}  // namespace sluice::detail
