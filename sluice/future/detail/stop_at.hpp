#pragma once

// Asks to stop at a deadline, whatever the one who is asked is doing then.

#include <stop_token>

#include "sluice/base/deadline.hpp"

namespace sluice::detail {

class stop_at {
 public:
  // Not armed yet.
  explicit stop_at(std::stop_source whom) noexcept : whom_(std::move(whom)) {}
  stop_at(const stop_at&) = delete;
  stop_at& operator=(const stop_at&) = delete;
  ~stop_at() { disarm(); }

  // False: the deadline has passed already, and nobody was asked.
  [[nodiscard]] bool arm(const deadline& until);
  // True: the deadline came first, and it has asked or is just asking.
  bool disarm() noexcept;

 private:
  class alarm;

  std::stop_source whom_;
  clock* clock_ = nullptr;  // null: not armed
  alarm* alarm_ = nullptr;  // shared with the clock while armed
  bool came_ = false;
};

}  // namespace sluice::detail
